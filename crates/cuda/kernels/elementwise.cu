// A chain of operators on elements at the same place, inputs broadcast to the output's shape. The host generates:
//
//   PARAMETERS     the inputs' pointers, in order; ARGUMENTS are their names
//   MOVES          for each input, 1 where it moves along the innermost axis, 0 where it stays
//   READ(COUNT)    reads COUNT neighbours of every input from `places` on, as `x0`, `x1`, ...
//   EVALUATE(i)    calls `evaluate` for neighbour `i`
//   NUMBERS        the parameters of `evaluate`, one number per input, and STATEMENTS its body, which returns a RESULT
//
// and defines INPUTS, RANK, OUTPUT (a storage type) and WIDTH (neighbours per thread).

struct Shape {
    // The innermost axis first.
    Divider sizes[RANK];
    u32 strides[INPUTS][RANK];
};

// An input that stays is the same for all neighbours.
template <typename T> struct Single {
    T only;
};

template <int COUNT, typename T> DEVICE Vector<T, COUNT> moving(const T *from) {
    return *reinterpret_cast<const Vector<T, COUNT> *>(from);
}

template <typename T> DEVICE Single<T> staying(const T *from) { return {*from}; }

// Elements as the numbers that are computed with.
template <typename T> DEVICE auto number(T x) {
    if constexpr (IsFloat<T>::value) return to_float(x);
    else return x;
}
template <typename T, int COUNT> DEVICE auto at(const Vector<T, COUNT> &x, int i) { return number(x.at[i]); }
template <typename T> DEVICE auto at(const Single<T> &x, int) { return number(x.only); }

// A finite number that the output's type cannot hold becomes the largest that it can: a mask of large negative numbers
// must not turn into infinities, whose differences are no numbers.
template <typename T> DEVICE T within_range(T x) {
    constexpr bool is_half = IsSame<OUTPUT, __half>::value, is_bfloat = IsSame<OUTPUT, __nv_bfloat16>::value;
    if constexpr (is_half || is_bfloat) {
        float most = is_half ? 65504.f : __int_as_float(0x7f7f0000);
        return fabsf(x) < __int_as_float(0x7f800000) ? fminf(fmaxf(x, -most), most) : x;
    } else return x;
}

DEVICE RESULT evaluate(NUMBERS) { STATEMENTS }

template <int COUNT> DEVICE void run(u32 index, const u32 (&places)[INPUTS], OUTPUT *output, PARAMETERS) {
    READ(COUNT)
    Vector<OUTPUT, COUNT> y;
#pragma unroll
    for (int i = 0; i < COUNT; i++) y.at[i] = converted<OUTPUT>(within_range(EVALUATE(i)));
    *reinterpret_cast<Vector<OUTPUT, COUNT> *>(output + index) = y;
}

KERNEL(elementwise)(OUTPUT *output, Shape shape, u32 count, PARAMETERS) {
    constexpr u32 moves[INPUTS] = {MOVES};
    u32 first = (BLOCK_X * BLOCK_THREADS + threadIdx.x) * WIDTH;
    u32 rest = first;
    u32 places[INPUTS];
#pragma unroll
    for (int axis = 0; axis < RANK; axis++) {
        u32 coordinate = axis + 1 < RANK ? take_remainder(rest, shape.sizes[axis]) : rest;
#pragma unroll
        for (int input = 0; input < INPUTS; input++)
            places[input] = axis == 0 ? coordinate * moves[input] : places[input] + coordinate * shape.strides[input][axis];
    }
    release_successor();
    await_predecessor();
    if (first + WIDTH <= count) {
        run<WIDTH>(first, places, output, ARGUMENTS);
    } else {
        for (u32 index = first; index < count; index++) {
            run<1>(index, places, output, ARGUMENTS);
#pragma unroll
            for (int input = 0; input < INPUTS; input++) places[input] += moves[input];
        }
    }
}
