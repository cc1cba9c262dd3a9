// Matrix products and convolutions on tensor cores.
//
//     output[m][n] = activation(sum over k of left(m, k) * right(n, k) + bias[n] + residual[m][n])
//
// Where CONVOLUTION is set, `left` is a channels-last image: m counts output pixels, k counts taps and channels, and
// the matrix is never formed: every load finds its pixel. Otherwise `left` is a matrix with k contiguous.
// `right` is a matrix with k contiguous, or, where RIGHT_BY_ROWS, with n contiguous.
//
// A block computes one tile of TILE_M x TILE_N. Each warp multiplies a part of it by `mma.sync`; or, where BY_WARPGROUP
// is set, each four warps multiply 64 rows at a time by Hopper's `wgmma`. Threads copy their parts of the tiles, each for
// itself; or, where BULK_RIGHT and BULK_LEFT are set, one thread has the copy engine bring whole tiles. Loads run ahead
// by as many steps as there are stages to spare.
//
// The sum over k may be split over several blocks: with REDUCTION_CLUSTER they form a cluster and add their parts through
// its shared memory; with REDUCTION_WORKSPACE each writes its part to memory, and the last to arrive adds them up. Parts
// are always added in the same order.
//
// One launch computes a stack of products whose operands lie at equal distances, or a GROUP of products of the same sizes
// with operands of their own.
//
// Parameters:
//   STORAGE, MATH                    how numbers are stored and multiplied
//   BY_WARPGROUP, BULK_LEFT, BULK_RIGHT, REDUCTION, GROUP    as above
//   TILE_M, TILE_N, WARPS_M, WARPS_N, STAGES, ROW_BYTES      the tile; ROW_BYTES of k per step: 64 or 128
//   CONVOLUTION, TAPS, KERNEL_X, IS_DILATED                  the image; TAPS of a filter, KERNEL_X of its rows
//   LOAD_BYTES, RIGHT_LOAD_BYTES     of one load from `left` and from `right`: 4, 8 or 16
//   RIGHT_BY_ROWS, RIGHT_IS_WEIGHTS  the right matrix
//   STORE_ELEMENTS, ACTIVATION, HAS_BIAS, BIAS, HAS_RESIDUAL what follows the sums; BIAS is the bias's type
//   IS_ROUNDED_FIRST                 sums are finished in registers, and go to shared memory as they are stored

KERNEL_OF(THREADS, gemm)(CONSTANT(Problem) p, CONSTANT(Operands) operands,
                         float *workspace, u32 *counters
#if BULK_RIGHT
         ,
                         CONSTANT(TileMap) first_right_map
#if GROUP > 1
         ,
                         CONSTANT(TileMap) second_right_map
#endif
#if GROUP > 2
         ,
                         CONSTANT(TileMap) third_right_map
#endif
#if GROUP > 3
         ,
                         CONSTANT(TileMap) fourth_right_map
#endif
#endif
#if BULK_LEFT
         ,
                         CONSTANT(TileMap) left_map
#endif
    ) {
    extern __shared__ __align__(1024) u8 shared_memory[];
    u8 *shared = shared_memory;
#if BULK_RIGHT
    // Tiles lie at multiples of the pattern that the copy engine writes; the host has left room for that.
    shared += -shared_address(shared) & 1023;
    __shared__ __align__(8) u64 barriers[STAGES];
    static_assert(GROUP <= 4, "each product has a description of its right matrix");
#endif
    int tiles_n = (p.n + TILE_N - 1) / TILE_N;
    int tile_m = BLOCK_X / tiles_n, tile_n = BLOCK_X - tile_m * tiles_n;
    int split = BLOCK_Y;
    int group = GROUP > 1 ? BLOCK_Z : 0, stacked = GROUP > 1 ? 0 : BLOCK_Z;
#if BULK_RIGHT
    const TileMap *right_map = &first_right_map;
#if GROUP > 1
    if (group == 1) right_map = &second_right_map;
#endif
#if GROUP > 2
    if (group == 2) right_map = &third_right_map;
#endif
#if GROUP > 3
    if (group == 3) right_map = &fourth_right_map;
#endif
#endif
    const BIAS *__restrict__ bias = FOUND(operands.of[group].bias);
    const STORAGE *residual = FOUND(operands.of[group].residual) + stacked * p.output_step;
    STORAGE *output = FOUND(operands.of[group].output) + stacked * p.output_step;

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
#if IS_ROUNDED_FIRST
    // Residuals come while there are stages, and lie beside them.
    Results results(shared + (HAS_RESIDUAL ? min(steps, STAGES) * STAGE_BYTES : 0), tile_m * TILE_M, tile_n * TILE_N);
#else
    Finish finish;
    finish.first_m = tile_m * TILE_M;
    finish.first_n = tile_n * TILE_N;
    finish.first_row = 0;
    finish.stores = TILE_M * ROW_STORES;
#if REDUCTION == REDUCTION_CLUSTER
    // The blocks of a cluster share the rows of their tile.
    int rows_of_block = (TILE_M + (int)GRID_Y - 1) / (int)GRID_Y;
    finish.first_row = split * rows_of_block;
    finish.stores = max(min(TILE_M - finish.first_row, rows_of_block), 0) * ROW_STORES;
#endif
#endif
    release_successor();
#if !RIGHT_IS_WEIGHTS
    await_predecessor();
#endif
#if BULK_RIGHT
    if (threadIdx.x == 0) {
        for (int s = 0; s < STAGES; s++) start_barrier(shared_address(&barriers[s]));
        show_barriers();
        show_to_copy_engine(*right_map);
#if BULK_LEFT
        show_to_copy_engine(left_map);
#endif
    }
    __syncthreads();
    auto load_right = [&](int step, int to) {
        if (threadIdx.x != 0) return;
        u32 barrier = shared_address(&barriers[to]);
        expect_bytes(barrier, RIGHT_BYTES + (BULK_LEFT ? LEFT_BYTES : 0));
        copy_tile(tiles + to * STAGE_BYTES + LEFT_BYTES, *right_map, (first_step + step) * TILE_K, tile_n * TILE_N, barrier);
    };
#else
    right_loader.start(p, FOUND(operands.of[group].right) + stacked * p.right_step, tile_n, first_step * TILE_K);
    auto load_right = [&](int, int to) {
        right_loader.load(p, tiles + to * STAGE_BYTES + LEFT_BYTES, tile_n);
        right_loader.advance();
    };
#endif
#if BULK_LEFT && CONVOLUTION
    // The window of the tile's first row.
    u32 image = divided(tile_m * TILE_M, p.by_output_area);
    u32 pixel = tile_m * TILE_M - image * p.by_output_area.divisor;
    u32 output_y = divided(pixel, p.by_output_width), output_x = pixel - output_y * p.by_output_width.divisor;
    int first_y = (int)output_y * p.stride_y - p.pad_y, first_x = (int)output_x * p.stride_x - p.pad_x;
    auto load_left = [&](int step, int to) {
        if (threadIdx.x != 0) return;
        u32 k = (first_step + step) * TILE_K, tap = divided(k, p.by_channels), channel = k - tap * p.by_channels.divisor;
        int dy = tap / KERNEL_X * (IS_DILATED ? p.dilation_y : 1), dx = tap % KERNEL_X * (IS_DILATED ? p.dilation_x : 1);
        copy_windows(tiles + to * STAGE_BYTES, left_map, channel, first_x, first_y, image, dx, dy, shared_address(&barriers[to]));
    };
#elif BULK_LEFT
    auto load_left = [&](int step, int to) {
        if (threadIdx.x != 0) return;
        copy_tile(tiles + to * STAGE_BYTES, left_map, (first_step + step) * TILE_K, tile_m * TILE_M, shared_address(&barriers[to]));
    };
#else
    left_loader.start(p, FOUND(operands.of[group].left) + stacked * p.left_step, tile_m, first_step * TILE_K);
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
#if IS_ROUNDED_FIRST && HAS_RESIDUAL
        if (s == STEPS_AHEAD - 1) results.copy(p, residual);
#endif
        commit_copies();
    }
#if IS_ROUNDED_FIRST
    results.load_bias(p, bias);
#else
    finish.load_bias(p, bias, threadIdx.x);
    if (REDUCTION != REDUCTION_WORKSPACE) finish.load_residuals(p, residual, threadIdx.x);
#endif

    float sums[MMA_M][MMA_N][4];
#if !BY_WARPGROUP
#pragma unroll
    for (int i = 0; i < MMA_M; i++)
#pragma unroll
        for (int j = 0; j < MMA_N; j++)
#pragma unroll
            for (int e = 0; e < 4; e++) sums[i][j][e] = 0.f;
#endif

#if BY_WARPGROUP
    int group_of_warps = same_in_warp(threadIdx.x / 128);
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
        multiply_step(sums, left_tile, right_tile, group_of_warps, step == 0);
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

#if IS_ROUNDED_FIRST
#pragma unroll
    for (int i = 0; i < MMA_M; i++) results.finish(p, row_of(i), column_of(0), sums[i]);
    __syncthreads();
    results.store(p, output);
#else
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
    i64 tile = (i64)BLOCK_Z * GRID_X + BLOCK_X;
    float *parts = workspace + tile * (int)GRID_Y * (TILE_M * TILE_N);
    for (int at = threadIdx.x * 4; at < TILE_M * TILE_N; at += THREADS * 4) {
        float4 value = *(float4 *)&sum_tile[at / TILE_N * SUM_STRIDE + at % TILE_N];
        __stcg((float4 *)&parts[(i64)split * (TILE_M * TILE_N) + at], value);
    }
    __threadfence();
    __syncthreads();
    bool *is_last = (bool *)shared;
    if (threadIdx.x == 0) {
        *is_last = atomicAdd(&counters[tile], 1) == (int)GRID_Y - 1;
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
            for (int part = 0; part < (int)GRID_Y; part++) {
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
#endif
}
