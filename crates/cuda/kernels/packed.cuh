// Neighbouring elements as they are loaded: those of 16 bits as words of two. Elements of their own would be taken out of
// the words and put together again on the way.

template <bool IS_FIRST, typename First, typename Second> struct Either {
    typedef First Type;
};
template <typename First, typename Second> struct Either<false, First, Second> {
    typedef Second Type;
};

template <typename T> DEVICE float2 pair_to_floats(u32 pair);
template <> DEVICE float2 pair_to_floats<__half>(u32 pair) { return __half22float2(*(__half2 *)&pair); }
template <> DEVICE float2 pair_to_floats<__nv_bfloat16>(u32 pair) {
    return make_float2(__uint_as_float(pair << 16), __uint_as_float(pair & 0xffff0000));
}

// The greater of each; NaN where one of them is.
template <typename T> DEVICE u32 greater_pair(u32 x, u32 y);
template <> DEVICE u32 greater_pair<__half>(u32 x, u32 y) {
    u32 result;
    asm("max.NaN.f16x2 %0, %1, %2;" : "=r"(result) : "r"(x), "r"(y));
    return result;
}
template <> DEVICE u32 greater_pair<__nv_bfloat16>(u32 x, u32 y) {
    u32 result;
    asm("max.NaN.bf16x2 %0, %1, %2;" : "=r"(result) : "r"(x), "r"(y));
    return result;
}

template <typename T, int COUNT> struct Packed {
    static constexpr bool IN_PAIRS = sizeof(T) == 2 && COUNT % 2 == 0;
    static constexpr int WORDS = IN_PAIRS ? COUNT / 2 : COUNT;
    typedef typename Either<IN_PAIRS, u32, T>::Type Word;
    Vector<Word, WORDS> words;

    // Of copies of one element.
    DEVICE void fill(float element) {
        Vector<T, COUNT> elements;
#pragma unroll
        for (int e = 0; e < COUNT; e++) elements.at[e] = from_float<T>(element);
        words = *(Vector<Word, WORDS> *)&elements;
    }
    DEVICE void load(const T *from) { words = *(const Vector<Word, WORDS> *)from; }
    DEVICE void store(T *to) const { *(Vector<Word, WORDS> *)to = words; }

    DEVICE void to_floats(float (&to)[COUNT]) const {
#pragma unroll
        for (int w = 0; w < WORDS; w++) {
            if constexpr (IN_PAIRS) {
                float2 pair = pair_to_floats<T>(words.at[w]);
                to[2 * w] = pair.x;
                to[2 * w + 1] = pair.y;
            } else {
                to[w] = to_float(words.at[w]);
            }
        }
    }
    // Becomes the greater of each.
    DEVICE void raise(const Packed &other) {
#pragma unroll
        for (int w = 0; w < WORDS; w++) {
            if constexpr (IN_PAIRS) words.at[w] = greater_pair<T>(words.at[w], other.words.at[w]);
            else words.at[w] = from_float<T>(greater(to_float(words.at[w]), to_float(other.words.at[w])));
        }
    }
};
