// Where the largest (LARGEST) or smallest element along an axis stands: [outer, along, inner] becomes [outer, inner]
// indices. Of equal elements the first counts, or with LAST the last. A line whose first element is not a number has
// that as its extreme, and one further on never is. FROM is the storage type, NUMBER what is compared.

struct Best {
    NUMBER value;
    // Negative where there is none yet.
    int place;
};

template <typename T> DEVICE NUMBER number(T x) {
    if constexpr (IsFloat<T>::value) return to_float(x);
    else return (NUMBER)x;
}

DEVICE bool beats(NUMBER a, NUMBER b) { return LARGEST ? a > b : a < b; }

DEVICE Best better(Best a, Best b) {
    if (b.place < 0 || b.value != b.value) return a;
    if (a.place < 0 || a.value != a.value) return b;
    if (beats(a.value, b.value)) return a;
    if (beats(b.value, a.value)) return b;
    return (a.place < b.place) != bool(LAST) ? a : b;
}

DEVICE long long place_of(Best best, NUMBER first) { return first != first || best.place < 0 ? 0 : best.place; }

// A warp per row of contiguous elements.
KERNEL(extreme_rows)(const FROM *from, long long *to, u32 outer, u32 along) {
    u32 row = (BLOCK_X * BLOCK_THREADS + threadIdx.x) / 32;
    release_successor();
    await_predecessor();
    if (row >= outer) return;
    const FROM *line = from + size_t(row) * along;
    Best best = {(NUMBER)0, -1};
    for (u32 i = threadIdx.x % 32; i < along; i += 32) best = better(best, {number(line[i]), int(i)});
#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2) {
        Best other = {__shfl_xor_sync(0xffffffffu, best.value, distance), __shfl_xor_sync(0xffffffffu, best.place, distance)};
        best = better(best, other);
    }
    if (threadIdx.x % 32 == 0) to[row] = place_of(best, number(line[0]));
}

// A thread per line whose elements lie `inner` apart.
KERNEL(extreme_strided)(const FROM *from, long long *to, u32 outer, u32 along, u32 inner) {
    u32 index = BLOCK_X * BLOCK_THREADS + threadIdx.x;
    release_successor();
    await_predecessor();
    if (index >= outer * inner) return;
    const FROM *line = from + size_t(index / inner) * along * inner + index % inner;
    Best best = {(NUMBER)0, -1};
    for (u32 i = 0; i < along; i++) best = better(best, {number(line[size_t(i) * inner]), int(i)});
    to[index] = place_of(best, number(line[0]));
}
