// Products of many tenants' matrices with one vector each, in one launch and in f32: every warp computes a few outputs of
// one product, whose operands it finds in a table. A product is weights [m][k] times input [k].
//
// Parameters:
//   ROWS    outputs of a warp
//   WARPS   warps of a block
//   DEPTH   reads of a row that a lane asks for before it waits for any of them
//   WIDE    rows are multiples of 16 bytes

struct alignas(16) Entry {
    const float *weights;
    const float *input;
    float *output;
    u64 padding;
};

constexpr int WIDTH = WIDE ? 4 : 1;
// Terms that a warp reads before it waits for any of them.
constexpr int STEP = DEPTH * 32 * WIDTH;
typedef Vector<float, WIDTH> Read;

DEVICE Read read_global(const float *from) {
    Read read;
    if constexpr (WIDE)
        asm volatile("ld.global.v4.f32 {%0, %1, %2, %3}, [%4];"
                     : "=f"(read.at[0]), "=f"(read.at[1 % WIDTH]), "=f"(read.at[2 % WIDTH]), "=f"(read.at[3 % WIDTH])
                     : "l"(from));
    else
        asm volatile("ld.global.f32 %0, [%1];" : "=f"(read.at[0]) : "l"(from));
    return read;
}

template <bool IS_WHOLE>
DEVICE void add_terms(float (&sums)[ROWS][WIDTH], const float *const (&rows)[ROWS], const float *input, int begin, int k) {
    Read weights[DEPTH][ROWS], inputs[DEPTH];
#pragma unroll
    for (int deep = 0; deep < DEPTH; deep++) {
        int at = begin + deep * 32 * WIDTH;
        if (IS_WHOLE || at < k) {
#pragma unroll
            for (int row = 0; row < ROWS; row++) weights[deep][row] = read_global(rows[row] + at);
            inputs[deep] = read_global(input + at);
        } else {
#pragma unroll
            for (int row = 0; row < ROWS; row++) weights[deep][row] = Read{};
            inputs[deep] = Read{};
        }
    }
#pragma unroll
    for (int deep = 0; deep < DEPTH; deep++)
#pragma unroll
        for (int row = 0; row < ROWS; row++)
#pragma unroll
            for (int e = 0; e < WIDTH; e++) {
                sums[row][e] = fmaf(weights[deep][row].at[e], inputs[deep].at[e], sums[row][e]);
            }
}

extern "C" __global__ void __launch_bounds__(32 * WARPS) sgemv(const Entry *entries, int m, int k) {
    int lane = threadIdx.x % 32, first = (blockIdx.x * WARPS + threadIdx.x / 32) * ROWS;
    release_successor();
    await_predecessor();
    if (first >= m) return;
    Entry entry = entries[blockIdx.y];
    // Rows past the last read the last one, and are not stored.
    const float *rows[ROWS];
#pragma unroll
    for (int row = 0; row < ROWS; row++) rows[row] = entry.weights + (i64)min(first + row, m - 1) * k;

    float parts[ROWS][WIDTH] = {};
    // Whole steps of the warp, and then what is left.
    int begin = 0;
#pragma unroll 1
    for (; begin + STEP <= k; begin += STEP) add_terms<true>(parts, rows, entry.input, begin + lane * WIDTH, k);
    if (begin < k) add_terms<false>(parts, rows, entry.input, begin + lane * WIDTH, k);
    float sums[ROWS] = {};
#pragma unroll
    for (int row = 0; row < ROWS; row++) {
#pragma unroll
        for (int e = 0; e < WIDTH; e++) sums[row] += parts[row][e];
#pragma unroll
        for (int distance = 16; distance > 0; distance /= 2) sums[row] += __shfl_xor_sync(~0u, sums[row], distance);
    }
    float mine = sums[0];
#pragma unroll
    for (int row = 1; row < ROWS; row++) mine = lane == row ? sums[row] : mine;
    if (lane < ROWS && first + lane < m) entry.output[first + lane] = mine;
}
