// Lines of elements become shares of one, or the logarithms of such shares: [outer, along, inner], along the middle axis.
// The host defines STORAGE, LOGARITHM (0 or 1), WIDTH (neighbours read at once) and what each kernel lists.

#define NEGATIVE_INFINITY __int_as_float(0xff800000)

// What becomes of an element, given the line's peak and the sum of exponentials relative to it.
struct Share {
    float peak, scale;
};

DEVICE Share share_of(float peak, float sum) { return {peak, LOGARITHM ? logf(sum) : 1.f / sum}; }

DEVICE STORAGE shared_out(float x, Share share) {
    float relative = x - share.peak;
    return from_float<STORAGE>(LOGARITHM ? relative - share.scale : __expf(relative) * share.scale);
}

// A warp per row of contiguous elements, which it keeps in registers: VECTORS vectors per thread.
#ifdef VECTORS
KERNEL(softmax_warp)(const STORAGE *from, STORAGE *to, u32 rows, u32 columns) {
    u32 row = (BLOCK_X * BLOCK_THREADS + threadIdx.x) / 32;
    u32 lane = threadIdx.x % 32;
    release_successor();
    await_predecessor();
    if (row >= rows) return;
    const STORAGE *line = from + size_t(row) * columns;
    float x[VECTORS][WIDTH];
    float peak = NEGATIVE_INFINITY;
#pragma unroll
    for (int i = 0; i < VECTORS; i++) {
        u32 column = (i * 32 + lane) * WIDTH;
        if (column < columns) {
            Vector<STORAGE, WIDTH> read = *reinterpret_cast<const Vector<STORAGE, WIDTH> *>(line + column);
#pragma unroll
            for (int j = 0; j < WIDTH; j++) x[i][j] = to_float(read.at[j]);
        } else {
#pragma unroll
            for (int j = 0; j < WIDTH; j++) x[i][j] = NEGATIVE_INFINITY;
        }
#pragma unroll
        for (int j = 0; j < WIDTH; j++) peak = fmaxf(peak, x[i][j]);
    }
    peak = warp_max(peak);
    float sum = 0.f;
#pragma unroll
    for (int i = 0; i < VECTORS; i++) {
        if ((i * 32 + lane) * WIDTH < columns) {
#pragma unroll
            for (int j = 0; j < WIDTH; j++) sum += __expf(x[i][j] - peak);
        }
    }
    Share share = share_of(peak, warp_sum(sum));
#pragma unroll
    for (int i = 0; i < VECTORS; i++) {
        u32 column = (i * 32 + lane) * WIDTH;
        if (column < columns) {
            Vector<STORAGE, WIDTH> written;
#pragma unroll
            for (int j = 0; j < WIDTH; j++) written.at[j] = shared_out(x[i][j], share);
            *reinterpret_cast<Vector<STORAGE, WIDTH> *>(to + size_t(row) * columns + column) = written;
        }
    }
}
#endif

// A block per row, which is read three times.
#ifdef THREADS
KERNEL_OF(THREADS, softmax_block)(const STORAGE *from, STORAGE *to, u32 rows, u32 columns) {
    constexpr int warps = THREADS / 32;
    __shared__ float of_warp[2][warps];
    const STORAGE *line = from + size_t(BLOCK_X) * columns;
    STORAGE *target = to + size_t(BLOCK_X) * columns;
    release_successor();
    await_predecessor();
    float peak = NEGATIVE_INFINITY;
    for (u32 i = threadIdx.x * WIDTH; i < columns; i += THREADS * WIDTH) {
        Vector<STORAGE, WIDTH> read = *reinterpret_cast<const Vector<STORAGE, WIDTH> *>(line + i);
#pragma unroll
        for (int j = 0; j < WIDTH; j++) peak = fmaxf(peak, to_float(read.at[j]));
    }
    peak = block_max<warps>(peak, of_warp[0]);
    float sum = 0.f;
    for (u32 i = threadIdx.x * WIDTH; i < columns; i += THREADS * WIDTH) {
        Vector<STORAGE, WIDTH> read = *reinterpret_cast<const Vector<STORAGE, WIDTH> *>(line + i);
#pragma unroll
        for (int j = 0; j < WIDTH; j++) sum += __expf(to_float(read.at[j]) - peak);
    }
    Share share = share_of(peak, block_sum<warps>(sum, of_warp[1]));
    for (u32 i = threadIdx.x * WIDTH; i < columns; i += THREADS * WIDTH) {
        Vector<STORAGE, WIDTH> read = *reinterpret_cast<const Vector<STORAGE, WIDTH> *>(line + i);
        Vector<STORAGE, WIDTH> written;
#pragma unroll
        for (int j = 0; j < WIDTH; j++) written.at[j] = shared_out(to_float(read.at[j]), share);
        *reinterpret_cast<Vector<STORAGE, WIDTH> *>(target + i) = written;
    }
}
#endif

// A thread per line whose elements lie `inner` apart, read three times.
KERNEL(softmax_strided)(const STORAGE *from, STORAGE *to, u32 outer, u32 along, u32 inner) {
    u32 index = BLOCK_X * BLOCK_THREADS + threadIdx.x;
    release_successor();
    await_predecessor();
    if (index >= outer * inner) return;
    size_t start = size_t(index / inner) * along * inner + index % inner;
    float peak = NEGATIVE_INFINITY;
    for (u32 i = 0; i < along; i++) peak = fmaxf(peak, to_float(from[start + size_t(i) * inner]));
    float sum = 0.f;
    for (u32 i = 0; i < along; i++) sum += __expf(to_float(from[start + size_t(i) * inner]) - peak);
    Share share = share_of(peak, sum);
    for (u32 i = 0; i < along; i++)
        to[start + size_t(i) * inner] = shared_out(to_float(from[start + size_t(i) * inner]), share);
}
