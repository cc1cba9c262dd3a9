// Matrix products and convolutions by Hopper's `wgmma`, by blocks that stay: each computes one tile after another, so that
// operands of the next tiles come while one is multiplied, and results of the last leave.
//
//     output[m][n] = activation(sum over k of left(m, k) * right(n, k) + bias[n] + residual[m][n])
//
// `left` is a matrix with k contiguous, or, where CONVOLUTION is set, windows of channels-last images; `right` is a matrix of weights
// with k contiguous. A tile belongs to one of TEAMS teams in turns. A team has GROUPS_M warpgroups, each of which has PARTS_M times 64
// rows of the tile.
//
// One warp has the copy engine bring STAGES steps of k ahead of the teams, which multiply in turns: a team begins when the one before it
// has all of its tile, since whether a stage is full can be told of its next use alone. Each team has a place for the results of a tile, and a
// warp that has the copy engine store them from there, and bring residuals to it before.
//
// Where one launch computes several entries, the tiles of all that are not empty are shared out evenly. A block has neighbours, most of them
// of one entry, and goes from one entry to the next as from tile to tile: operands of the next are brought while the last is multiplied.
//
// Parameters:
//   STORAGE, MATH                       how numbers are stored and multiplied, both of 16 bits
//   TEAMS, GROUPS_M, PARTS_M, TILE_N, STAGES    as above; TILE_N is 64, 128 or 256
//   CONVOLUTION, KERNEL_X, IS_DILATED   the images; KERNEL_X taps of a row of a filter
//   ACTIVATION, HAS_BIAS, BIAS, HAS_RESIDUAL    what follows the sums; BIAS is the bias's type
//   GROUP                               1

static_assert(BY_WARPGROUP && GROUP == 1 && sizeof(STORAGE) == 2, "as `wgmma` has it");

constexpr int TILE_M = 64 * PARTS_M * GROUPS_M, TILE_K = 64, ROW_BYTES = 128;
constexpr int GROUPS = TEAMS * GROUPS_M, THREADS = GROUPS * 128 + 32 + TEAMS * 32;
constexpr int LEFT_BYTES = TILE_M * ROW_BYTES, STAGE_BYTES = LEFT_BYTES + TILE_N * ROW_BYTES;
// Results lie as the copy engine takes them: boxes of 64 columns, whose rows have 128 bytes.
constexpr int BOX_COLUMNS = 64, BOX_BYTES = TILE_M * ROW_BYTES, BOXES = TILE_N / BOX_COLUMNS;
constexpr int RESULT_BYTES = BOXES * BOX_BYTES;

// What lies outside of the matrix is not stored.
DEVICE void store_box(const TileMap &map, int column, int row, u32 from) {
    asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%1, %2}], [%3];" ::"l"(&map), "r"(column), "r"(row), "r"(from)
                 : "memory");
}
DEVICE void commit_stores() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
// What was to be stored has been read, or is where it belongs.
DEVICE void await_stores_read() { asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory"); }
DEVICE void await_stores() { asm volatile("cp.async.bulk.wait_group 0;" ::: "memory"); }

// Two numbers as one word.
union Pair {
    Vector<STORAGE, 2> numbers;
    u32 word;
};
DEVICE u32 read_word(u32 address) {
    u32 word;
    asm volatile("ld.shared.u32 %0, [%1];" : "=r"(word) : "r"(address) : "memory");
    return word;
}
DEVICE void write_word(u32 address, u32 word) { asm volatile("st.shared.u32 [%0], %1;" ::"r"(address), "r"(word) : "memory"); }

// Where a tile begins, and whose it is.
struct Tile {
    int entry, first_m, first_n;
};

KERNEL_OF(THREADS, stream_gemm)(CONSTANT(Problem) p, CONSTANT(Operands) operands, CONSTANT(TileMaps) right_maps, CONSTANT(TileMaps) left_maps,
                                CONSTANT(TileMaps) output_maps
#if HAS_RESIDUAL
                                ,
                                CONSTANT(TileMaps) residual_maps
#endif
                                ,
                                int all_blocks
#ifdef ENTRY_BLOCKS
                                ,
                                const u64 *entry_count
#endif
) {
    extern __shared__ __align__(1024) u8 shared_memory[];
    // The pattern of the copy engine repeats after 1024 bytes; the host has left room for that.
    u32 stages = shared_address(shared_memory);
    stages += -stages & 1023;
    u32 results = stages + STAGES * STAGE_BYTES;
    // A stage has been brought, and has been multiplied; it is a team's turn; its place for results is theirs, and has all of them.
    __shared__ __align__(8) u64 full[STAGES], empty[STAGES], turn[TEAMS], ready[TEAMS], finished[TEAMS];
    __shared__ __align__(16) float biases[GROUPS][HAS_BIAS ? TILE_N : 1];

    int tiles_n = (p.n + TILE_N - 1) / TILE_N, tiles = (p.m + TILE_M - 1) / TILE_M * tiles_n;
    // Where not all blocks are launched, each has its own tiles all the same.
    int blocks = all_blocks > 0 ? all_blocks : (int)GRID_X;
    // A block's tiles among those of all entries, which follow each other.
    int first = BLOCK_X, stride = blocks, end = tiles;
#ifdef ENTRY_BLOCKS
    int entries = (int)__ldg(entry_count);
    if (entries > 1) {
        int all = entries * tiles, least = all / blocks, left_over = all - least * blocks, block = BLOCK_X;
        first = block * least + min(block, left_over);
        stride = 1;
        end = first + least + (block < left_over);
    }
#endif
    auto tile_at = [&](int number) -> Tile {
        int entry = 0;
#ifdef ENTRY_BLOCKS
        entry = number / tiles;
        number -= entry * tiles;
#endif
        int row = number / tiles_n;
        return {entry, row * TILE_M, (number - row * tiles_n) * TILE_N};
    };
    int steps = p.steps;
    int warp = same_in_warp(threadIdx.x / 32), lane = threadIdx.x % 32;

    release_successor();
    if (threadIdx.x == 0) {
        for (int s = 0; s < STAGES; s++) {
            start_barrier(shared_address(&full[s]));
            start_barrier(shared_address(&empty[s]), GROUPS_M);
        }
        for (int t = 0; t < TEAMS; t++) {
            start_barrier(shared_address(&turn[t]), GROUPS_M);
            start_barrier(shared_address(&ready[t]));
            start_barrier(shared_address(&finished[t]), GROUPS_M * 128);
        }
        show_barriers();
    }
    __syncthreads();

    if (warp == GROUPS * 4) {
        if (lane != 0) return;
        TileMapInUse right_map(right_maps), left_map(left_maps);
        auto bring_right = [&](const Tile &tile, int step, int stage) {
            u32 barrier = shared_address(&full[stage]);
            expect_bytes(barrier, STAGE_BYTES);
            copy_tile(stages + stage * STAGE_BYTES + LEFT_BYTES, right_map.of(tile.entry), step * TILE_K, tile.first_n, barrier);
        };
        auto bring_left = [&](const Tile &tile, int step, int stage) {
            u32 barrier = shared_address(&full[stage]), to = stages + stage * STAGE_BYTES;
            const TileMap &map = left_map.of(tile.entry);
            int first_m = tile.first_m;
#if CONVOLUTION
            u32 image = divided(first_m, p.by_output_area), pixel = first_m - image * p.by_output_area.divisor;
            u32 output_y = divided(pixel, p.by_output_width), output_x = pixel - output_y * p.by_output_width.divisor;
            int first_y = (int)output_y * p.stride_y - p.pad_y, first_x = (int)output_x * p.stride_x - p.pad_x;
            u32 k = step * TILE_K, tap = divided(k, p.by_channels), channel = k - tap * p.by_channels.divisor;
            int dy = tap / KERNEL_X * (IS_DILATED ? p.dilation_y : 1), dx = tap % KERNEL_X * (IS_DILATED ? p.dilation_x : 1);
            copy_windows(to, map, channel, first_x, first_y, image, dx, dy, barrier);
#else
            copy_tile(to, map, step * TILE_K, first_m, barrier);
#endif
        };
        int number, step;
        Tile tile;
        auto begin = [&] {
            number = first, step = 0;
            tile = tile_at(number);
        };
        auto advance = [&] {
            if (++step < steps) return;
            number += stride, step = 0;
            tile = tile_at(number);
        };
        // Weights are there from the start; only what the predecessor computes has to be waited for.
        begin();
#pragma unroll 1
        for (int stage = 0; stage < STAGES && number < end; stage++) {
            bring_right(tile, step, stage);
            advance();
        }
        await_predecessor();
        begin();
#pragma unroll 1
        for (int stage = 0; stage < STAGES && number < end; stage++) {
            bring_left(tile, step, stage);
            advance();
        }
        int stage = 0;
        u32 parity = 0;
        while (number < end) {
            await_barrier(shared_address(&empty[stage]), parity);
            bring_right(tile, step, stage);
            bring_left(tile, step, stage);
            stage = stage + 1 == STAGES ? 0 : stage + 1;
            parity ^= stage == 0;
            advance();
        }
        return;
    }

    if (warp > GROUPS * 4) {
        if (lane != 0) return;
        int team = warp - GROUPS * 4 - 1;
        u32 result = results + team * RESULT_BYTES, is_ready = shared_address(&ready[team]);
        TileMapInUse output_map(output_maps);
#if HAS_RESIDUAL
        TileMapInUse residual_map(residual_maps);
        auto bring_residuals = [&](const Tile &tile) {
            const TileMap &map = residual_map.of(tile.entry);
            expect_bytes(is_ready, RESULT_BYTES);
            for (int box = 0; box < BOXES; box++)
                copy_tile(result + box * BOX_BYTES, map, tile.first_n + box * BOX_COLUMNS, tile.first_m, is_ready);
        };
#endif
        await_predecessor();
        u32 parity = 0;
        int number = first + team * stride;
        Tile tile = tile_at(number);
#if HAS_RESIDUAL
        if (number < end) bring_residuals(tile);
#endif
        while (number < end) {
            const TileMap &map = output_map.of(tile.entry);
            await_barrier(shared_address(&finished[team]), parity);
            parity ^= 1;
            for (int box = 0; box < BOXES; box++)
                store_box(map, tile.first_n + box * BOX_COLUMNS, tile.first_m, result + box * BOX_BYTES);
            commit_stores();
            number += TEAMS * stride;
            if (number >= end) break;
            tile = tile_at(number);
            await_stores_read();
#if HAS_RESIDUAL
            bring_residuals(tile);
#else
            arrive(is_ready);
#endif
        }
        await_stores();
        return;
    }

    int group = warp / 4, team = group / GROUPS_M;
    int first_row = group % GROUPS_M * (64 * PARTS_M), in_group = threadIdx.x % 128;
    // A thread's sums are those of two rows, eight apart, in each part, and of pairs of columns, every eight.
    int row = first_row + warp % 4 * 16 + lane / 4;
    u32 result = results + team * RESULT_BYTES + row * ROW_BYTES + lane % 4 * 4;
    // Places of a fresh team are theirs, unless residuals come first.
    u32 ready_parity = HAS_RESIDUAL ? 0 : 1;
    // The first turn is the first team's.
    u32 turn_parity = team == 0;
    u32 own_turn = shared_address(&turn[team]), next_turn = shared_address(&turn[team + 1 == TEAMS ? 0 : team + 1]);
    int begun = team * steps;
    float sums[PARTS_M][TILE_N / 2];
#pragma unroll 1
    for (int number = first + team * stride; number < end; number += TEAMS * stride) {
        Tile tile = tile_at(number);
        int first_n = tile.first_n;
        constexpr int OWN = (TILE_N + 127) / 128;
        float own_bias[OWN];
        if (HAS_BIAS) {
            const BIAS *__restrict__ bias = FOUND_OF(operands.of[0].bias, tile.entry);
#pragma unroll
            for (int b = 0; b < OWN; b++) {
                int n = b * 128 + in_group;
                own_bias[b] = n < TILE_N && first_n + n < p.n ? to_float(bias[first_n + n]) : 0.f;
            }
        }
        int stage = begun % STAGES, before = 0;
        u32 parity = begun / STAGES & 1;
        begun += TEAMS * steps;
        if (TEAMS > 1) await_barrier(own_turn, turn_parity);
        turn_parity ^= 1;
#pragma unroll 1
        for (int step = 0; step < steps; step++) {
            await_barrier(shared_address(&full[stage]), parity);
            u64 left = tile_description(stages + stage * STAGE_BYTES + first_row * ROW_BYTES);
            u64 right = tile_description(stages + stage * STAGE_BYTES + LEFT_BYTES);
            fence_warpgroup();
#pragma unroll
            for (int k = 0; k < ROW_BYTES / 32; k++)
#pragma unroll
                for (int part = 0; part < PARTS_M; part++)
                    warpgroup_mma<TILE_N>(sums[part], left + part * (64 * ROW_BYTES >> 4) + k * DESCRIBED_STEP, right + k * DESCRIBED_STEP,
                                          step > 0 || k > 0);
            commit_warpgroup();
            // The step before has been multiplied.
            await_warpgroup<1>();
            if (step > 0 && in_group == 0) arrive(shared_address(&empty[before]));
            before = stage;
            stage = stage + 1 == STAGES ? 0 : stage + 1;
            parity ^= stage == 0;
        }
        if (TEAMS > 1 && in_group == 0) arrive(next_turn);
        await_warpgroup<0>();
        if (in_group == 0) arrive(shared_address(&empty[before]));

        // Also says that all of the team have read the biases of the tile before: its results have left.
        await_barrier(shared_address(&ready[team]), ready_parity);
        ready_parity ^= 1;
        if (HAS_BIAS) {
#pragma unroll
            for (int b = 0; b < OWN; b++)
                if (b * 128 + in_group < TILE_N) biases[group][b * 128 + in_group] = own_bias[b];
            await_group(group);
        }
#pragma unroll
        for (int j = 0; j < TILE_N / 8; j++) {
            float2 added = HAS_BIAS ? *(const float2 *)&biases[group][j * 8 + lane % 4 * 2] : make_float2(0.f, 0.f);
            // Chunks of 16 bytes lie in a pattern that repeats after eight rows.
            u32 column = result + j / 8 * BOX_BYTES + ((j % 8 ^ lane / 4) << 4);
#pragma unroll
            for (int half = 0; half < 2 * PARTS_M; half++) {
                u32 address = column + (half / 2 * 64 + half % 2 * 8) * ROW_BYTES;
                Pair residual, stored;
                if (HAS_RESIDUAL) residual.word = read_word(address);
#pragma unroll
                for (int e = 0; e < 2; e++) {
                    float value = sums[half / 2][j * 4 + half % 2 * 2 + e] + (e ? added.y : added.x);
                    if (HAS_RESIDUAL) value += to_float(residual.numbers.at[e]);
                    stored.numbers.at[e] = from_float<STORAGE>(activate<ACTIVATION, STORAGE>(value, p.activation));
                }
                write_word(address, stored.word);
            }
        }
        // The copy engine reads what this thread has written.
        show_to_tensor_cores();
        arrive(shared_address(&finished[team]));
    }
}
