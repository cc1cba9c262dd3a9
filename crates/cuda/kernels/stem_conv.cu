// Convolution of images of few channels, as a network's first one is, or of few more with windows of one pixel:
// channels-last, by `mma.sync` straight from the image.
//
// A block computes ROWS x 16 neighbouring pixels of 32 * WARPS_N filters. What their windows cover is copied to shared
// memory as it lies. There the values of a window's row are neighbours, and windows lie an even number of values apart, so
// that every thread reads its pairs of values where they are. A row of a window is summed in QUADS of four such pairs; what
// is read of them beside the window has weights of zero. Weights are in registers.
//
// Parameters: STORAGE, MATH, CHANNELS, KERNEL_Y, KERNEL_X, STRIDE_Y, STRIDE_X, PAD_X, LOAD_BYTES (by which rows of the
// image are copied), ROWS, WARPS_N, STORE_ELEMENTS, ACTIVATION, HAS_BIAS.

constexpr int WARPS = 4, THREADS = WARPS * 32, WARPS_M = WARPS / WARPS_N;
constexpr int COLUMNS = 16;
constexpr int FILTERS_OF_WARP = 32, FILTERS_OF_THREAD = 8;

// From one window to the next.
constexpr int STEP = STRIDE_X * CHANNELS;
static_assert(STEP % 2 == 0, "windows lie an even number of values apart");

constexpr int LOAD = LOAD_BYTES / sizeof(STORAGE);
constexpr int ALIGNMENT = LOAD < 2 ? 2 : LOAD;
// Values that are copied from before the first pixel on, so that copies are aligned, and those of them before the first window.
constexpr int BEFORE = (PAD_X * CHANNELS + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
constexpr int LEAD = BEFORE - PAD_X * CHANNELS;

constexpr int ROW_QUADS = (LEAD % 2 + KERNEL_X * CHANNELS + 7) / 8;
constexpr int QUADS = KERNEL_Y * ROW_QUADS;
// Two quads are multiplied at once.
constexpr int STEPS = (QUADS + 1) / 2;

constexpr int REGION_ROWS = (ROWS - 1) * STRIDE_Y + KERNEL_Y;
constexpr int REGION_LOADS = (LEAD / 2 * 2 + (COLUMNS - 1) * STEP + ROW_QUADS * 8 + LOAD - 1) / LOAD;
// Rows begin where wide copies can.
constexpr int REGION_ROW = (REGION_LOADS * LOAD + 7) / 8 * 8;

constexpr int ROWS_OF_WARP = ROWS / WARPS_M;
static_assert(ROWS_OF_WARP * WARPS_M == ROWS, "warps share the rows");
// Rows whose sums one warp keeps at a time: two where their windows share most of what they cover.
constexpr int AT_ONCE = ROWS_OF_WARP % 2 == 0 && KERNEL_Y > 2 * STRIDE_Y ? 2 : 1;

struct Problem {
    // Blocks of filters, and tiles along the columns and rows of the output: what a block's number is made of. Blocks that
    // write to the same pixels follow each other, so that memory is written in long runs.
    Divider by_filter_blocks, by_tile_columns, by_tile_rows;
    int height, width, output_height, output_width, filters;
    int pad_y;
    ActivationParameters activation;
};

// The windows of a tile, zero where they leave the image.
DEVICE void load_region(const Problem &p, const STORAGE *image, int first_row, int first_value, STORAGE *region) {
    for (int at = threadIdx.x; at < REGION_ROWS * REGION_LOADS; at += THREADS) {
        int row = at / REGION_LOADS, value = at % REGION_LOADS * LOAD;
        STORAGE *to = region + row * REGION_ROW + value;
        int y = first_row + row, x = first_value + value;
        bool is_inside = (u32)y < (u32)p.height && (u32)x < (u32)(p.width * CHANNELS);
        const STORAGE *from = is_inside ? image + (i64)y * (p.width * CHANNELS) + x : image;
        if constexpr (LOAD_BYTES >= 4) copy_async<LOAD_BYTES>(shared_address(to), from, is_inside ? LOAD_BYTES : 0);
        else *to = is_inside ? *from : from_float<STORAGE>(0.f);
    }
    commit_copies();
}

KERNEL_OF(THREADS, stem_conv)(CONSTANT(Problem) p, const STORAGE *input, const uint4 *__restrict__ weights,
                              const float *__restrict__ bias, STORAGE *__restrict__ output) {
    __shared__ alignas(16) STORAGE region[REGION_ROWS * REGION_ROW];
    release_successor();
    u32 number = BLOCK_X;
    int filter_block = take_remainder(number, p.by_filter_blocks);
    int first_x = take_remainder(number, p.by_tile_columns) * COLUMNS;
    int first_y = take_remainder(number, p.by_tile_rows) * ROWS;
    int image = number;
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    // A thread has pairs `pair` of quads, of windows `column` and 8 after it.
    int column = lane / 4, pair = lane % 4;
    int filters_at = filter_block * WARPS_N + warp % WARPS_N;

    // For each step the pairs of two quads of four filters, as `mma.sync` takes them.
    uint4 right[STEPS][2];
#pragma unroll
    for (int step = 0; step < STEPS; step++)
#pragma unroll
        for (int half = 0; half < 2; half++) right[step][half] = weights[((filters_at * STEPS + step) * 2 + half) * 32 + lane];
    // What sums start from, in shared memory since the weights leave few registers.
    __shared__ alignas(16) float starts[WARPS_N * FILTERS_OF_WARP];
    if (threadIdx.x < WARPS_N * FILTERS_OF_WARP) {
        int of = filter_block * WARPS_N * FILTERS_OF_WARP + threadIdx.x;
        starts[threadIdx.x] = HAS_BIAS && of < p.filters ? bias[of] : 0.f;
    }

    await_predecessor();
    input += (i64)image * p.height * p.width * CHANNELS;
    load_region(p, input, first_y * STRIDE_Y - p.pad_y, first_x * STEP - BEFORE, region);
    await_copies<0>();
    __syncthreads();

    // The weights are placed so that a thread ends up with the sums of neighbouring filters.
    const float *start = starts + warp % WARPS_N * FILTERS_OF_WARP + pair * FILTERS_OF_THREAD;
    int filter = filters_at * FILTERS_OF_WARP + pair * FILTERS_OF_THREAD;
    // Pairs of values of the thread's first window.
    const u32 *windows = (const u32 *)(region + LEAD / 2 * 2 + column * STEP + pair * 2);
#pragma unroll 1
    for (int first = warp / WARPS_N * ROWS_OF_WARP, i = 0; i < ROWS_OF_WARP; i += AT_ONCE) {
        int row = first + i;
        float sums[AT_ONCE][4][4];
#pragma unroll
        for (int r = 0; r < AT_ONCE; r++)
#pragma unroll
            for (int e = 0; e < FILTERS_OF_THREAD; e++) sums[r][e / 2][e % 2] = sums[r][e / 2][2 + e % 2] = start[e];
#pragma unroll
        for (int step = 0; step < STEPS; step++)
#pragma unroll
            for (int r = 0; r < AT_ONCE; r++) {
                u32 left[4] = {};
#pragma unroll
                for (int half = 0; half < 2; half++) {
                    int quad = step * 2 + half;
                    if (quad >= QUADS) break;
                    int at = quad / ROW_QUADS * REGION_ROW + quad % ROW_QUADS * 8;
                    const u32 *pairs = windows + ((row + r) * STRIDE_Y * REGION_ROW + at) / 2;
                    left[half * 2] = pairs[0];
                    left[half * 2 + 1] = pairs[8 * STEP / 2];
                }
                mma_once(sums[r][0], left, right[step][0].x, right[step][0].y);
                mma_once(sums[r][1], left, right[step][0].z, right[step][0].w);
                mma_once(sums[r][2], left, right[step][1].x, right[step][1].y);
                mma_once(sums[r][3], left, right[step][1].z, right[step][1].w);
            }
#pragma unroll
        for (int r = 0; r < AT_ONCE; r++)
#pragma unroll
            for (int half = 0; half < 2; half++) {
                int y = first_y + row + r, x = first_x + column + half * 8;
                if (y >= p.output_height || x >= p.output_width) continue;
                STORAGE *to = output + ((i64)(image * p.output_height + y) * p.output_width + x) * p.filters + filter;
#pragma unroll
                for (int e = 0; e < FILTERS_OF_THREAD; e += STORE_ELEMENTS) {
                    if (filter + e >= p.filters) break;
                    Vector<STORAGE, STORE_ELEMENTS> stored;
#pragma unroll
                    for (int s = 0; s < STORE_ELEMENTS; s++) {
                        float sum = sums[r][(e + s) / 2][half * 2 + (e + s) % 2];
                        stored.at[s] = from_float<STORAGE>(activate<ACTIVATION>(sum, p.activation));
                    }
                    *(Vector<STORAGE, STORE_ELEMENTS> *)(to + e) = stored;
                }
            }
    }
}
