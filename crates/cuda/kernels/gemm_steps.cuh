// One step of a product's sum, by warps or by warpgroups.

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
DEVICE void multiply_step(float (&sums)[MMA_M][MMA_N][4], u32 left_tile, u32 right_tile, int group, bool is_first) {
    u64 left = tile_description(left_tile + group * GROUP_M * ROW_BYTES), right = tile_description(right_tile);
    fence_warpgroup();
#pragma unroll
    for (int k = 0; k < MMA_STEPS; k++)
#pragma unroll
        for (int i = 0; i < MMA_M; i++) {
            u64 a = left + i * (64 * ROW_BYTES >> 4) + k * DESCRIBED_STEP;
            warpgroup_mma<TILE_N>(&sums[i][0][0], a, right + k * DESCRIBED_STEP, !is_first || k > 0);
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
