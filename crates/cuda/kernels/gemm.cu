// Matrix products and convolutions on tensor cores.
//
//     output[m][n] = activation(sum over k of left(m, k) * right(n, k) + bias[n] + residual[m][n])
//
// Where CONVOLUTION is set, `left` is a channels-last image: m counts output pixels, k counts taps and channels, and
// the matrix is never formed: every load finds its pixel. Otherwise `left` is a matrix with k contiguous.
// `right` is a matrix with k contiguous, or, where RIGHT_BY_ROWS, with n contiguous.
//
// A block computes one tile of TILE_M x TILE_N. Each warp multiplies a part of it by `mma.sync`; or, where BY_WARPGROUP is
// set, each four warps multiply 64 rows at a time by Hopper's `wgmma`. Loads run ahead by as many steps as there are
// stages to spare. The sum over k may be split over
// `splits` blocks: with REDUCTION_CLUSTER they form a cluster and add their parts through its shared memory; with
// REDUCTION_WORKSPACE each writes its part to memory, and the last to arrive adds them up. Parts are always added in
// the same order.
//
// One launch computes a stack of products whose operands lie at equal distances, or a GROUP of products of the same sizes
// with operands of their own.
//
// Threads copy their parts of the tiles, each for itself; or, where BULK_RIGHT and BULK_LEFT are set, one thread has the
// copy engine bring whole tiles.
//
// Parameters: STORAGE, MATH, GROUP, BY_WARPGROUP, BULK_LEFT, BULK_RIGHT, TILE_M, TILE_N, WARPS_M, WARPS_N, STAGES, ROW_BYTES (of k per step: 64 or 128),
// CONVOLUTION, CHANNELS, TAPS and KERNEL_X (of a filter, and of its rows), IS_DILATED, LOAD_BYTES (of one load from `left`: 4, 8 or 16), RIGHT_BY_ROWS, RIGHT_LOAD_BYTES, RIGHT_IS_WEIGHTS,
// STORE_ELEMENTS (neighbours that are stored at once), REDUCTION, ACTIVATION, HAS_BIAS, BIAS (its type), HAS_RESIDUAL.

#define REDUCTION_NONE 0
#define REDUCTION_CLUSTER 1
#define REDUCTION_WORKSPACE 2

constexpr int THREADS = WARPS_M * WARPS_N * 32;
constexpr int ELEMENT_BYTES = sizeof(STORAGE);
constexpr int TILE_K = ROW_BYTES / ELEMENT_BYTES;
// A step of the tensor cores takes 32 bytes of k: 16 numbers of 2 bytes, or 8 of 4.
constexpr int MMA_STEPS = ROW_BYTES / 32;
#if BY_WARPGROUP
// What one warp finds of the sums in its registers: 16 of every 64 rows of its group, and all columns.
constexpr int WARP_M = TILE_M / WARPS_M;
constexpr int WARP_N = TILE_N;
constexpr int GROUP_M = 4 * WARP_M;
// A stage is written again only when the step before the last has been multiplied.
constexpr int STEPS_AHEAD = STAGES - 2;
static_assert(ROW_BYTES == 128 && !RIGHT_BY_ROWS && WARPS_N == 1 && WARPS_M % 4 == 0, "as the hardware lays tiles out");
#else
constexpr int WARP_M = TILE_M / WARPS_M;
constexpr int WARP_N = TILE_N / WARPS_N;
constexpr int STEPS_AHEAD = STAGES - 1;
#endif
constexpr int MMA_M = WARP_M / 16;
constexpr int MMA_N = WARP_N / 8;
constexpr int LEFT_BYTES = TILE_M * ROW_BYTES;
constexpr int RIGHT_BYTES = TILE_N * ROW_BYTES;
constexpr int STAGE_BYTES = LEFT_BYTES + RIGHT_BYTES;
// The tile of sums in shared memory: padded so that neither writing fragments nor reading rows meets a bank twice.
constexpr int SUM_STRIDE = TILE_N + 8;

static_assert(WARP_M % 16 == 0 && WARP_N % 16 == 0, "a warp's tile is made of 16 x 16 pieces");

struct Problem {
    int m, n, k;
    int left_stride, right_stride, output_stride;
    int height, width;
    int stride_y, stride_x, pad_y, pad_x, dilation_y, dilation_x;
    Divider by_output_width, by_output_area;
    int steps, steps_per_split;
    i64 left_step, right_step, output_step;
    ActivationParameters activation;
};

// One product's operands; those that are absent are null.
struct Operands {
    struct {
        const STORAGE *left, *right;
        const BIAS *bias;
        const STORAGE *residual;
        STORAGE *output;
    } of[GROUP];
};

// --- Finding what to load ------------------------------------------------------------------------------------------

constexpr int LEFT_COLUMNS = ROW_BYTES / LOAD_BYTES;
constexpr int LEFT_ROWS = THREADS / LEFT_COLUMNS;
constexpr int LEFT_LOADS = (TILE_M + LEFT_ROWS - 1) / LEFT_ROWS;
constexpr int LOAD_ELEMENTS = LOAD_BYTES / ELEMENT_BYTES;

// Large tiles have steps enough to make up for finding out beforehand which taps lie inside the image.
#define USES_TAP_MASKS (BY_WARPGROUP && TAPS <= 32 && !IS_DILATED)

// The bits from `first` up to, not including, `end`, both of which may lie outside of 0 to LIMIT.
template <int LIMIT> DEVICE u32 bits_between(int first, int end) {
    first = min(max(first, 0), LIMIT);
    end = min(max(end, first), LIMIT);
    return (u32)((1ull << end) - (1ull << first));
}

// One thread's part of the left tiles: the same column of every LEFT_ROWS-th row.
struct LeftLoader {
    const STORAGE *base;
    int offset[LEFT_LOADS];
#if CONVOLUTION
#if USES_TAP_MASKS
    // One bit for each tap: whether it lies inside the image.
    u32 taps_inside[LEFT_LOADS];
#else
    int y[LEFT_LOADS], x[LEFT_LOADS];
#endif
#endif
    int k;

    DEVICE void start(const Problem &p, const STORAGE *left, int tile_m, int first_k) {
        base = left;
        k = first_k + (threadIdx.x % LEFT_COLUMNS) * LOAD_ELEMENTS;
#pragma unroll
        for (int i = 0; i < LEFT_LOADS; i++) {
            int row = tile_m * TILE_M + threadIdx.x / LEFT_COLUMNS + i * LEFT_ROWS;
#if CONVOLUTION
            u32 image = divided(row, p.by_output_area);
            u32 pixel = row - image * p.by_output_area.divisor;
            u32 output_y = divided(pixel, p.by_output_width);
            u32 output_x = pixel - output_y * p.by_output_width.divisor;
            int first_y = (int)output_y * p.stride_y - p.pad_y, first_x = (int)output_x * p.stride_x - p.pad_x;
            offset[i] = (((int)image * p.height + first_y) * p.width + first_x) * CHANNELS;
            // A row past the end lies outside of every image.
            if (row >= p.m) first_y = -(1 << 24);
#if USES_TAP_MASKS
            // Where a row of the filter begins, if it lies inside; times the columns that do.
            constexpr u32 ROWS_BEGIN = (u32)(((1ull << TAPS) - 1) / ((1ull << KERNEL_X) - 1));
            u32 rows = ROWS_BEGIN & bits_between<TAPS>(-first_y * KERNEL_X, (p.height - first_y) * KERNEL_X);
            taps_inside[i] = rows * bits_between<KERNEL_X>(-first_x, p.width - first_x);
#else
            y[i] = first_y;
            x[i] = first_x;
#endif
#else
            offset[i] = row < p.m ? row * p.left_stride : -1;
#endif
        }
    }

    DEVICE void load(const Problem &p, u32 tile) const {
        int column = threadIdx.x % LEFT_COLUMNS;
        int row = threadIdx.x / LEFT_COLUMNS;
        int chunk = column * LOAD_BYTES / 16, inside = column * LOAD_BYTES % 16;
#if CONVOLUTION
        u32 tap = (u32)k / CHANNELS, channel = (u32)k % CHANNELS;
        int dy = tap / KERNEL_X * (IS_DILATED ? p.dilation_y : 1), dx = tap % KERNEL_X * (IS_DILATED ? p.dilation_x : 1);
        int shift = (dy * p.width + dx) * CHANNELS + channel;
#endif
#pragma unroll
        for (int i = 0; i < LEFT_LOADS; i++, row += LEFT_ROWS) {
            if (TILE_M % LEFT_ROWS != 0 && row >= TILE_M) break;
#if CONVOLUTION
#if USES_TAP_MASKS
            bool is_inside = k < p.k && taps_inside[i] >> tap & 1;
#else
            bool is_inside = (u32)(y[i] + dy) < (u32)p.height && (u32)(x[i] + dx) < (u32)p.width && k < p.k;
#endif
            const STORAGE *from = is_inside ? base + offset[i] + shift : base;
            int valid = is_inside ? LOAD_BYTES : 0;
#else
            int left = offset[i] >= 0 ? (p.k - k) * ELEMENT_BYTES : 0;
            int valid = left < 0 ? 0 : (left < LOAD_BYTES ? left : LOAD_BYTES);
            const STORAGE *from = valid > 0 ? base + offset[i] + k : base;
#endif
            // Neighbouring taps of a filter read the same pixels.
            copy_async<LOAD_BYTES, (BY_WARPGROUP && TAPS > 1)>(tile + place<ROW_BYTES / 16>(row, chunk) * 16 + inside, from, valid);
        }
    }

    DEVICE void advance() { k += TILE_K; }
};

#if RIGHT_BY_ROWS
constexpr int RIGHT_ROW_BYTES = TILE_N * ELEMENT_BYTES;
constexpr int RIGHT_TILE_ROWS = TILE_K;
#else
constexpr int RIGHT_ROW_BYTES = ROW_BYTES;
constexpr int RIGHT_TILE_ROWS = TILE_N;
#endif
constexpr int RIGHT_COLUMNS = RIGHT_ROW_BYTES / RIGHT_LOAD_BYTES;
constexpr int RIGHT_ROWS = THREADS / RIGHT_COLUMNS;
constexpr int RIGHT_LOADS = (RIGHT_TILE_ROWS + RIGHT_ROWS - 1) / RIGHT_ROWS;
constexpr int RIGHT_LOAD_ELEMENTS = RIGHT_LOAD_BYTES / ELEMENT_BYTES;

struct RightLoader {
    const STORAGE *base;
    int k;

    DEVICE void start(const Problem &p, const STORAGE *right, int tile_n, int first_k) {
#if RIGHT_BY_ROWS
        base = right + tile_n * TILE_N;
#else
        base = right + (i64)tile_n * TILE_N * p.right_stride;
#endif
        k = first_k;
    }

    DEVICE void load(const Problem &p, u32 tile, int tile_n) const {
        int column = threadIdx.x % RIGHT_COLUMNS;
        int row = threadIdx.x / RIGHT_COLUMNS;
        int chunk = column * RIGHT_LOAD_BYTES / 16, inside = column * RIGHT_LOAD_BYTES % 16;
        int n_left = p.n - tile_n * TILE_N;
#pragma unroll
        for (int i = 0; i < RIGHT_LOADS; i++, row += RIGHT_ROWS) {
            if (RIGHT_TILE_ROWS % RIGHT_ROWS != 0 && row >= RIGHT_TILE_ROWS) break;
#if RIGHT_BY_ROWS
            int left = k + row < p.k ? (n_left - column * RIGHT_LOAD_ELEMENTS) * ELEMENT_BYTES : 0;
            const STORAGE *at = base + (i64)(k + row) * p.right_stride + column * RIGHT_LOAD_ELEMENTS;
#else
            int left = row < n_left ? (p.k - k - column * RIGHT_LOAD_ELEMENTS) * ELEMENT_BYTES : 0;
            const STORAGE *at = base + row * p.right_stride + k + column * RIGHT_LOAD_ELEMENTS;
#endif
            int valid = left < 0 ? 0 : (left < RIGHT_LOAD_BYTES ? left : RIGHT_LOAD_BYTES);
            const STORAGE *from = valid > 0 ? at : base;
            copy_async<RIGHT_LOAD_BYTES>(tile + place<RIGHT_ROW_BYTES / 16>(row, chunk) * 16 + inside, from, valid);
        }
    }

    DEVICE void advance() { k += TILE_K; }
};

// --- Multiplying ---------------------------------------------------------------------------------------------------

// The row and column, in the tile, of the first of a thread's sums in piece (i, j).
DEVICE int row_of(int i) {
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
#if BY_WARPGROUP
    return warp / 4 * GROUP_M + i * 64 + warp % 4 * 16 + lane / 4;
#else
    return warp / WARPS_N * WARP_M + i * 16 + lane / 4;
#endif
}
DEVICE int column_of(int j) {
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    return warp % WARPS_N * WARP_N + j * 8 + lane % 4 * 2;
}

#if BY_WARPGROUP

// One step of k for all rows of the warpgroup, left running.
DEVICE void multiply_step(float (&sums)[MMA_M][MMA_N][4], u32 left_tile, u32 right_tile, bool is_first) {
    int group = threadIdx.x / 128;
    fence_warpgroup();
#pragma unroll
    for (int k = 0; k < MMA_STEPS; k++)
#pragma unroll
        for (int i = 0; i < MMA_M; i++) {
            u64 a = tile_description(left_tile + (group * GROUP_M + i * 64) * ROW_BYTES + k * 32);
            u64 b = tile_description(right_tile + k * 32);
            warpgroup_mma<TILE_N>(&sums[i][0][0], a, b, !is_first || k > 0);
        }
    commit_warpgroup();
}

#else

struct Fragments {
    u32 a[MMA_M][4];
    u32 b[MMA_N / 2][4];

    DEVICE void load(u32 left, u32 right, int warp_m, int warp_n, int step) {
        int lane = threadIdx.x % 32;
        int matrix = lane / 8;
#pragma unroll
        for (int i = 0; i < MMA_M; i++) {
            int row = warp_m * WARP_M + i * 16 + lane % 8 + (matrix & 1) * 8;
            load_matrices(a[i], left + place<ROW_BYTES / 16>(row, step * 2 + (matrix >> 1)) * 16);
        }
#pragma unroll
        for (int j = 0; j < MMA_N / 2; j++) {
            int column = warp_n * WARP_N + j * 16;
#if !RIGHT_BY_ROWS
            int row = column + lane % 8 + (matrix >> 1) * 8;
            load_matrices(b[j], right + place<ROW_BYTES / 16>(row, step * 2 + (matrix & 1)) * 16);
#elif MATH == MATH_F16 || MATH == MATH_BF16
            int row = step * 16 + lane % 8 + (matrix & 1) * 8;
            load_matrices_transposed(b[j], right + place<RIGHT_ROW_BYTES / 16>(row, column / 8 + (matrix >> 1)) * 16);
#else
#pragma unroll
            for (int part = 0; part < 4; part++) {
                int row = step * 8 + lane % 4 + (part & 1) * 4;
                int at = column + (part >> 1) * 8 + lane / 4;
                u32 address = right + place<RIGHT_ROW_BYTES / 16>(row, at / 4) * 16 + at % 4 * 4;
                asm volatile("ld.shared.b32 %0, [%1];" : "=r"(b[j][part]) : "r"(address));
            }
#endif
        }
    }
};

DEVICE void multiply_fragments(float (&sums)[MMA_M][MMA_N][4], const Fragments &f) {
#if MATH == MATH_F16 || MATH == MATH_BF16
#pragma unroll
    for (int i = 0; i < MMA_M; i++)
#pragma unroll
        for (int j = 0; j < MMA_N; j++) mma_once(sums[i][j], f.a[i], f.b[j / 2][j % 2 * 2], f.b[j / 2][j % 2 * 2 + 1]);
#else
    LeftParts left[MMA_M];
    RightParts right[MMA_N];
#pragma unroll
    for (int i = 0; i < MMA_M; i++) left[i] = split_left(f.a[i]);
#pragma unroll
    for (int j = 0; j < MMA_N; j++) right[j] = split_right(f.b[j / 2][j % 2 * 2], f.b[j / 2][j % 2 * 2 + 1]);
#pragma unroll
    for (int i = 0; i < MMA_M; i++)
#pragma unroll
        for (int j = 0; j < MMA_N; j++) mma_split(sums[i][j], left[i], right[j]);
#endif
}

// One step of k for the warp's part of the tile.
DEVICE void multiply_step(float (&sums)[MMA_M][MMA_N][4], u32 left_tile, u32 right_tile) {
    int warp = threadIdx.x / 32;
    int warp_m = warp / WARPS_N, warp_n = warp % WARPS_N;
    Fragments fragments[2];
    fragments[0].load(left_tile, right_tile, warp_m, warp_n, 0);
#pragma unroll
    for (int k = 0; k < MMA_STEPS; k++) {
        if (k + 1 < MMA_STEPS) fragments[(k + 1) % 2].load(left_tile, right_tile, warp_m, warp_n, k + 1);
        multiply_fragments(sums, fragments[k % 2]);
    }
}

#endif

// --- Finishing -----------------------------------------------------------------------------------------------------

typedef Vector<STORAGE, STORE_ELEMENTS> Stored;
constexpr int ROW_STORES = TILE_N / STORE_ELEMENTS;
constexpr int STORES_OF_THREAD = (TILE_M * ROW_STORES + THREADS - 1) / THREADS;
// Residuals that one thread asks for before it waits for any of them. Blocks of a cluster have few rows to finish.
constexpr int BATCH = !HAS_RESIDUAL || REDUCTION == REDUCTION_CLUSTER ? 1 : STORES_OF_THREAD < 4 ? STORES_OF_THREAD : 4;

// What follows the sums of one tile: each thread finishes neighbours in a row, the same columns in every row it has.
struct Finish {
    int first_m, first_n;
    // The rows of the tile that this block finishes.
    int first_row, stores;
    float bias[STORE_ELEMENTS];
    Stored residuals[BATCH];

    DEVICE int row(int at) const { return first_row + at / ROW_STORES; }
    DEVICE int column(int at) const { return at % ROW_STORES * STORE_ELEMENTS; }
    DEVICE bool is_inside(const Problem &p, int at) const {
        return at < stores && first_m + row(at) < p.m && first_n + column(at) < p.n;
    }

    DEVICE void load_bias(const Problem &p, const BIAS *from, int at) {
#if HAS_BIAS
        int n = first_n + column(at);
        if (n < p.n) {
            Vector<BIAS, STORE_ELEMENTS> read = *(const Vector<BIAS, STORE_ELEMENTS> *)(from + n);
#pragma unroll
            for (int e = 0; e < STORE_ELEMENTS; e++) bias[e] = to_float(read.at[e]);
        }
#endif
    }

    DEVICE void load_residuals(const Problem &p, const STORAGE *from, int first) {
#if HAS_RESIDUAL
#pragma unroll
        for (int b = 0; b < BATCH; b++) {
            int at = first + b * THREADS;
            i64 place = (i64)(first_m + row(at)) * p.output_stride + first_n + column(at);
            if (is_inside(p, at)) residuals[b] = *(const Stored *)(from + place);
        }
#endif
    }

    // Adds bias and residual, applies the activation, and stores.
    DEVICE void store(const Problem &p, const float (&sums)[STORE_ELEMENTS], int b, int at, STORAGE *output) const {
        Stored stored;
#pragma unroll
        for (int e = 0; e < STORE_ELEMENTS; e++) {
            float value = sums[e];
            if (HAS_BIAS) value += bias[e];
            if (HAS_RESIDUAL) value += to_float(residuals[b].at[e]);
            stored.at[e] = from_float<STORAGE>(activate<ACTIVATION>(value, p.activation));
        }
        i64 place = (i64)(first_m + row(at)) * p.output_stride + first_n + column(at);
        *(Stored *)(output + place) = stored;
    }
};

// Clusters are there from Hopper on; elsewhere the host launches nothing that asks for them.
#define HAS_CLUSTERS (__CUDA_ARCH__ >= 900)

DEVICE void cluster_barrier() {
#if HAS_CLUSTERS
    asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::: "memory");
#endif
}
// Four floats in the shared memory of another block of the cluster.
DEVICE float4 read_remote(u32 address, u32 rank) {
    float4 value = make_float4(0.f, 0.f, 0.f, 0.f);
#if HAS_CLUSTERS
    u32 remote;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(remote) : "r"(address), "r"(rank));
    asm volatile("ld.shared::cluster.v4.f32 {%0, %1, %2, %3}, [%4];"
                 : "=f"(value.x), "=f"(value.y), "=f"(value.z), "=f"(value.w)
                 : "r"(remote));
#endif
    return value;
}

extern "C" __global__ void __launch_bounds__(THREADS)
    gemm(const __grid_constant__ Problem p, const __grid_constant__ Operands operands,
         float *workspace, u32 *counters
#if BULK_RIGHT
         ,
         const __grid_constant__ TileMap right_map
#endif
#if BULK_LEFT
         ,
         const __grid_constant__ TileMap left_map
#endif
    ) {
    extern __shared__ __align__(1024) u8 shared_memory[];
    u8 *shared = shared_memory;
#if BULK_RIGHT
    // Tiles lie at multiples of the pattern that the copy engine writes; the host has left room for that.
    shared += -shared_address(shared) & 1023;
    __shared__ __align__(8) u64 barriers[STAGES];
#endif
    int tiles_n = (p.n + TILE_N - 1) / TILE_N;
    int tile_m = blockIdx.x / tiles_n, tile_n = blockIdx.x - tile_m * tiles_n;
    int split = blockIdx.y;
    int group = GROUP > 1 ? blockIdx.z : 0, stacked = GROUP > 1 ? 0 : blockIdx.z;
    const BIAS *__restrict__ bias = operands.of[group].bias;
    const STORAGE *residual = operands.of[group].residual + stacked * p.output_step;
    STORAGE *output = operands.of[group].output + stacked * p.output_step;

    int first_step = split * p.steps_per_split;
    int steps = p.steps - first_step;
    steps = steps < 0 ? 0 : (steps < p.steps_per_split ? steps : p.steps_per_split);

    u32 tiles = shared_address(shared);
#if !BULK_LEFT
    LeftLoader left_loader;
#endif
#if !BULK_RIGHT
    RightLoader right_loader;
#endif
    Finish finish;
    finish.first_m = tile_m * TILE_M;
    finish.first_n = tile_n * TILE_N;
    finish.first_row = 0;
    finish.stores = TILE_M * ROW_STORES;
#if REDUCTION == REDUCTION_CLUSTER
    // The blocks of a cluster share the rows of their tile.
    int rows_of_block = (TILE_M + (int)gridDim.y - 1) / (int)gridDim.y;
    finish.first_row = split * rows_of_block;
    finish.stores = max(min(TILE_M - finish.first_row, rows_of_block), 0) * ROW_STORES;
#endif
    release_successor();
#if !RIGHT_IS_WEIGHTS
    await_predecessor();
#endif
#if BULK_RIGHT
    if (threadIdx.x == 0) {
        for (int s = 0; s < STAGES; s++) start_barrier(shared_address(&barriers[s]));
        show_barriers();
    }
    __syncthreads();
    auto load_right = [&](int step, int to) {
        if (threadIdx.x != 0) return;
        u32 barrier = shared_address(&barriers[to]);
        expect_bytes(barrier, RIGHT_BYTES + (BULK_LEFT ? LEFT_BYTES : 0));
        copy_tile(tiles + to * STAGE_BYTES + LEFT_BYTES, right_map, (first_step + step) * TILE_K, tile_n * TILE_N, barrier);
    };
#else
    right_loader.start(p, operands.of[group].right + stacked * p.right_step, tile_n, first_step * TILE_K);
    auto load_right = [&](int, int to) {
        right_loader.load(p, tiles + to * STAGE_BYTES + LEFT_BYTES, tile_n);
        right_loader.advance();
    };
#endif
#if BULK_LEFT
    auto load_left = [&](int step, int to) {
        if (threadIdx.x != 0) return;
        copy_tile(tiles + to * STAGE_BYTES, left_map, (first_step + step) * TILE_K, tile_m * TILE_M, shared_address(&barriers[to]));
    };
#else
    left_loader.start(p, operands.of[group].left + stacked * p.left_step, tile_m, first_step * TILE_K);
    auto load_left = [&](int, int to) {
        left_loader.load(p, tiles + to * STAGE_BYTES);
        left_loader.advance();
    };
#endif
// Not unrolled: what runs once should be short, since fetching its instructions takes longer than running them.
#pragma unroll 1
    for (int s = 0; s < STEPS_AHEAD; s++) {
        if (s < steps) load_right(s, s);
    }
#if RIGHT_IS_WEIGHTS
    // Weights are there from the start; only what the predecessor computes has to be waited for.
    await_predecessor();
#endif
#pragma unroll 1
    for (int s = 0; s < STEPS_AHEAD; s++) {
        if (s < steps) load_left(s, s);
        commit_copies();
    }
    finish.load_bias(p, bias, threadIdx.x);
    if (REDUCTION != REDUCTION_WORKSPACE) finish.load_residuals(p, residual, threadIdx.x);

    float sums[MMA_M][MMA_N][4];
#if !BY_WARPGROUP
#pragma unroll
    for (int i = 0; i < MMA_M; i++)
#pragma unroll
        for (int j = 0; j < MMA_N; j++)
#pragma unroll
            for (int e = 0; e < 4; e++) sums[i][j][e] = 0.f;
#endif

    int stage = 0, next_stage = STEPS_AHEAD;
    u32 parity = 0;
#pragma unroll 1
    for (int step = 0; step < steps; step++) {
#if BULK_RIGHT
        await_barrier(shared_address(&barriers[stage]), parity);
#endif
#if !BULK_LEFT
        await_copies<STEPS_AHEAD - 1>();
#if BY_WARPGROUP
        show_to_tensor_cores();
#endif
#endif
        __syncthreads();
        u32 left_tile = tiles + stage * STAGE_BYTES, right_tile = left_tile + LEFT_BYTES;
#if BY_WARPGROUP
        multiply_step(sums, left_tile, right_tile, step == 0);
        await_warpgroup<1>();
#endif
        if (step + STEPS_AHEAD < steps) {
            load_right(step + STEPS_AHEAD, next_stage);
            load_left(step + STEPS_AHEAD, next_stage);
        }
        commit_copies();
#if !BY_WARPGROUP
        multiply_step(sums, left_tile, right_tile);
#endif
        stage = stage + 1 == STAGES ? 0 : stage + 1;
        parity ^= stage == 0;
        next_stage = next_stage + 1 == STAGES ? 0 : next_stage + 1;
    }
#if BY_WARPGROUP
    await_warpgroup<0>();
#endif
    await_copies<0>();
    __syncthreads();

    // Sums go to shared memory, so that whole rows can be finished and stored at once.
    float *sum_tile = (float *)shared;
#pragma unroll
    for (int i = 0; i < MMA_M; i++)
#pragma unroll
        for (int j = 0; j < MMA_N; j++) {
            int row = row_of(i), column = column_of(j);
            *(float2 *)&sum_tile[row * SUM_STRIDE + column] = make_float2(sums[i][j][0], sums[i][j][1]);
            *(float2 *)&sum_tile[(row + 8) * SUM_STRIDE + column] = make_float2(sums[i][j][2], sums[i][j][3]);
        }
#if REDUCTION == REDUCTION_CLUSTER
    cluster_barrier();
#else
    __syncthreads();
#endif
#if REDUCTION == REDUCTION_WORKSPACE
    // Each split's part lies in the workspace as it lies in shared memory, without the padding.
    i64 tile = (i64)blockIdx.z * gridDim.x + blockIdx.x;
    float *parts = workspace + tile * (int)gridDim.y * (TILE_M * TILE_N);
    for (int at = threadIdx.x * 4; at < TILE_M * TILE_N; at += THREADS * 4) {
        float4 value = *(float4 *)&sum_tile[at / TILE_N * SUM_STRIDE + at % TILE_N];
        __stcg((float4 *)&parts[(i64)split * (TILE_M * TILE_N) + at], value);
    }
    __threadfence();
    __syncthreads();
    bool *is_last = (bool *)shared;
    if (threadIdx.x == 0) {
        *is_last = atomicAdd(&counters[tile], 1) == (int)gridDim.y - 1;
        if (*is_last) counters[tile] = 0;
    }
    __syncthreads();
    if (!*is_last) return;
    __threadfence();
#endif

    if (REDUCTION == REDUCTION_WORKSPACE) finish.load_residuals(p, residual, threadIdx.x);
#pragma unroll 1
    for (int first = threadIdx.x; first < finish.stores; first += BATCH * THREADS) {
#pragma unroll
        for (int b = 0; b < BATCH; b++) {
            int at = first + b * THREADS;
            int row = finish.row(at), column = finish.column(at);
            if (!finish.is_inside(p, at)) continue;
            float values[STORE_ELEMENTS];
#if REDUCTION == REDUCTION_NONE
#pragma unroll
            for (int e = 0; e < STORE_ELEMENTS; e++) values[e] = sum_tile[row * SUM_STRIDE + column + e];
#else
#pragma unroll
            for (int e = 0; e < STORE_ELEMENTS; e++) values[e] = 0.f;
#pragma unroll 4
            for (int part = 0; part < (int)gridDim.y; part++) {
#pragma unroll
                for (int e = 0; e < STORE_ELEMENTS; e += 4) {
                    // Fewer than four neighbours are read with those beside them, which lie in the same tile.
                    int aligned = (column + e) / 4 * 4;
#if REDUCTION == REDUCTION_CLUSTER
                    float4 value = read_remote(shared_address(&sum_tile[row * SUM_STRIDE + aligned]), part);
#else
                    float4 value = __ldcg((const float4 *)&parts[(i64)part * (TILE_M * TILE_N) + row * TILE_N + aligned]);
#endif
                    const float four[4] = {value.x, value.y, value.z, value.w};
#pragma unroll
                    for (int f = 0; f < (STORE_ELEMENTS < 4 ? STORE_ELEMENTS : 4); f++)
                        values[e + f] += STORE_ELEMENTS < 4 ? (column % 4 + f == 0   ? four[0]
                                                               : column % 4 + f == 1 ? four[1]
                                                               : column % 4 + f == 2 ? four[2]
                                                                                     : four[3])
                                                            : four[f];
                }
            }
#endif
            if (THREADS % ROW_STORES != 0) finish.load_bias(p, bias, at);
            finish.store(p, values, b, at, output);
        }
        finish.load_residuals(p, residual, first + BATCH * THREADS);
    }
#if REDUCTION == REDUCTION_CLUSTER
    // No block may leave while another still reads its sums.
    cluster_barrier();
#endif
}
