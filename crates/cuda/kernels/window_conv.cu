// Convolution of channels-last images whose windows move by one pixel, by Hopper's `wgmma`: what the windows of a tile cover
// is brought to shared memory once for each 64 channels, and multiplied there for every tap.
//
//     output[pixel][filter] = activation(sum over taps and channels of image * weights + bias[filter] + residual)
//
// Filters are the rows of a product, pixels its columns. A tile has ROWS x COLUMNS pixels for each warpgroup along the
// pixels. The pixels of its region, with the margins that windows reach into, follow each other in shared memory, so that
// the windows at one tap are a run of RUN neighbours whose start depends on the tap alone. Where a run goes from one row to
// the next it has sums of windows over both, which are not stored. The region's rows lie 128 bytes apart, in a pattern that
// repeats after eight of them by their addresses, wherever a run begins.
//
// One warp has the copy engine bring regions and weights: STAGES tiles of weights, one for each tap of 64 channels, and
// REGIONS regions, ahead of the warpgroups that multiply.
//
// Parameters:
//   STORAGE, MATH                     how numbers are stored and multiplied, both of 16 bits
//   KERNEL_Y, KERNEL_X                taps of a filter
//   ROWS, COLUMNS, RUN                of a warpgroup's tile; RUN is what reaches from its first pixel to its last, rounded up to eight
//   FILTER_GROUPS, PIXEL_GROUPS       warpgroups with filters of their own, 64 each, and with pixels of their own
//   STAGES, REGIONS                   as above; there are two regions where there is more than one to bring
//   ACTIVATION, HAS_BIAS, HAS_RESIDUAL what follows the sums
//   IS_POOLED                         of every two by two pixels the greatest is stored; ROWS and COLUMNS are even
//
// The host generates what `multiply` says of a thread's sums, and of what follows them: SUM_NAMES and SUM_OPERANDS, LEFT_NAME,
// RIGHT_NAME, IS_ADDED_NAME, and RUN_NAME.

static_assert(BY_WARPGROUP && RUN % 8 == 0 && RUN <= 256, "as `wgmma` has it");

// The product of 64 filters and a run becomes a thread's sums, or is added to them.
DEVICE void multiply(float (&d)[RUN / 2], u64 left, u64 right, int is_added) {
    asm volatile("{\n.reg .pred is_added;\nsetp.ne.b32 is_added, " IS_ADDED_NAME ", 0;\n" WARPGROUP_SHAPE(RUN_NAME)
                 "{" SUM_NAMES "}, " LEFT_NAME ", " RIGHT_NAME WARPGROUP_TAIL
                 : SUM_OPERANDS
                 : "l"(left), "l"(right), "r"(is_added));
}

constexpr int GROUPS = FILTER_GROUPS * PIXEL_GROUPS, THREADS = GROUPS * 128 + 32;
constexpr int CHANNELS = 64, ROW_BYTES = 128;
constexpr int TAPS = KERNEL_Y * KERNEL_X;
constexpr int PITCH = COLUMNS + KERNEL_X - 1;
constexpr int REGION_ROWS = ROWS * PIXEL_GROUPS + KERNEL_Y - 1;
constexpr int COPIED_BYTES = REGION_ROWS * PITCH * ROW_BYTES;
// The last run may reach past the last pixel.
constexpr int LAST_RUN = (PIXEL_GROUPS - 1) * ROWS * PITCH + (KERNEL_Y - 1) * PITCH + KERNEL_X - 1 + RUN;
constexpr int REGION_PIXELS = LAST_RUN > REGION_ROWS * PITCH ? LAST_RUN : REGION_ROWS * PITCH;
constexpr int REGION_BYTES = (REGION_PIXELS * ROW_BYTES + 1023) / 1024 * 1024;
constexpr int FILTERS = FILTER_GROUPS * 64;
constexpr int STAGE_BYTES = FILTERS * ROW_BYTES;
// Results on their way to memory: the filters of a pixel, padded so that eight pixels lie in different banks.
constexpr int RESULT_STRIDE = 64 + 8;
constexpr int RESULT_BYTES = RUN * RESULT_STRIDE * 2;
// Residuals are there while the sums are computed; results alone take the place of regions.
constexpr int RESULTS_AT = HAS_RESIDUAL ? STAGES * STAGE_BYTES + REGIONS * REGION_BYTES : STAGES * STAGE_BYTES;

struct Problem {
    // What a block's number is made of: blocks of filters, tiles along columns and rows.
    Divider by_filter_blocks, by_tile_columns, by_tile_rows;
    // Of the output.
    int height, width, filters;
    int pad_y, pad_x;
    // Of 64.
    int channel_blocks;
    ActivationParameters activation;
};

// All threads that multiply.
DEVICE void await_groups() { asm volatile("bar.sync %0, %1;" ::"n"(GROUPS + 1), "n"(GROUPS * 128) : "memory"); }
// A part of an image, from the pixel (x, y) on; what lies outside of the image is zero.
DEVICE void copy_region(u32 to, const TileMap &map, int channel, int x, int y, int image, u32 barrier) {
    asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4, %5}], [%6];" ::"r"(to),
                 "l"(&map), "r"(channel), "r"(x), "r"(y), "r"(image), "r"(barrier)
                 : "memory");
}
// Four matrices of 8 x 8, whose columns become rows in shared memory.
DEVICE void store_matrices_transposed(u32 address, u32 a, u32 b, u32 c, u32 d) {
    asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(address), "r"(a), "r"(b), "r"(c), "r"(d)
                 : "memory");
}

// Two numbers as one word.
union Pair {
    Vector<STORAGE, 2> numbers;
    u32 word;
};

KERNEL_OF(THREADS, window_conv)(CONSTANT(Problem) p, const float *__restrict__ bias, const STORAGE *residual, STORAGE *output,
                                CONSTANT(TileMap) weights_map, CONSTANT(TileMap) image_map) {
    extern __shared__ __align__(1024) u8 shared_memory[];
    u32 stages = shared_address(shared_memory);
    // The pattern of the copy engine repeats after 1024 bytes; the host has left room for that.
    stages += -stages & 1023;
    u32 regions = stages + STAGES * STAGE_BYTES, results = stages + RESULTS_AT;
    // Those that the copy engine ends and those that warpgroups arrive at when they have read.
    __shared__ __align__(8) u64 stage_full[STAGES], stage_empty[STAGES], region_full[REGIONS], region_empty[REGIONS];

    u32 number = BLOCK_X;
    int first_filter = take_remainder(number, p.by_filter_blocks) * FILTERS;
    int first_x = take_remainder(number, p.by_tile_columns) * COLUMNS;
    int first_y = take_remainder(number, p.by_tile_rows) * (ROWS * PIXEL_GROUPS);
    int image = number;
    int warp = same_in_warp(threadIdx.x / 32), lane = threadIdx.x % 32;
    int steps = p.channel_blocks * TAPS;

    release_successor();
    if (threadIdx.x == 0) {
        for (int s = 0; s < STAGES; s++) {
            start_barrier(shared_address(&stage_full[s]));
            start_barrier(shared_address(&stage_empty[s]), GROUPS);
        }
        for (int r = 0; r < REGIONS; r++) {
            start_barrier(shared_address(&region_full[r]));
            start_barrier(shared_address(&region_empty[r]), GROUPS);
        }
        show_barriers();
    }
    __syncthreads();

    if (warp == GROUPS * 4) {
        if (lane != 0) return;
        show_to_copy_engine(weights_map);
        show_to_copy_engine(image_map);
        auto bring_weights = [&](int step, int stage) {
            int block = step / TAPS, tap = step - block * TAPS;
            u32 barrier = shared_address(&stage_full[stage]);
            expect_bytes(barrier, STAGE_BYTES);
            copy_tile(stages + stage * STAGE_BYTES, weights_map, (tap * p.channel_blocks + block) * CHANNELS, first_filter, barrier);
        };
        auto bring_region = [&](int block) {
            u32 barrier = shared_address(&region_full[block % REGIONS]);
            expect_bytes(barrier, COPIED_BYTES);
            copy_region(regions + block % REGIONS * REGION_BYTES, image_map, block * CHANNELS, first_x - p.pad_x, first_y - p.pad_y, image,
                        barrier);
        };
        // Weights are there from the start; only what the predecessor computes has to be waited for.
        for (int step = 0; step < STAGES && step < steps; step++) bring_weights(step, step);
        await_predecessor();
        for (int block = 0; block < REGIONS && block < p.channel_blocks; block++) bring_region(block);
        int stage = 0;
        u32 parity = 0;
        for (int step = STAGES; step < steps; step++) {
            if (step % TAPS == 0 && step / TAPS >= REGIONS) {
                int block = step / TAPS;
                await_barrier(shared_address(&region_empty[block % REGIONS]), (block / REGIONS - 1) & 1);
                bring_region(block);
            }
            await_barrier(shared_address(&stage_empty[stage]), parity);
            bring_weights(step, stage);
            stage = stage + 1 == STAGES ? 0 : stage + 1;
            parity ^= stage == 0;
        }
        return;
    }

    int group = warp / 4, filter_group = group % FILTER_GROUPS, pixel_group = group / FILTER_GROUPS;
    int in_group = threadIdx.x % 128;
    first_filter += filter_group * 64;
    first_y += pixel_group * ROWS;
    // A thread's sums are those of two filters, eight apart.
    int filter = warp % 4 * 16 + lane / 4;
    u32 result = results + group * RESULT_BYTES;
    // Eight filters of a pixel of the run: whether they are stored, and where.
    auto is_inside = [&](int at) {
        int y = at / PITCH, x = at - y * PITCH;
        return y < ROWS && x < COLUMNS && first_y + y < p.height && first_x + x < p.width;
    };
    auto place = [&](int at) {
        int y = at / PITCH, x = at - y * PITCH;
        return ((i64)(image * p.height + first_y + y) * p.width + first_x + x) * p.filters + first_filter + in_group % 8 * 8;
    };
    float start[2] = {0.f, 0.f};
    if (HAS_BIAS) start[0] = bias[first_filter + filter], start[1] = bias[first_filter + filter + 8];
    await_predecessor();
    if (HAS_RESIDUAL) {
#pragma unroll 4
        for (int at = in_group / 8; at < RUN; at += 16) {
            bool inside = is_inside(at);
            copy_async<16>(result + (at * RESULT_STRIDE + in_group % 8 * 8) * 2, inside ? residual + place(at) : residual, inside ? 16 : 0);
        }
        commit_copies();
    }

    float sums[RUN / 2];
    int stage = 0, before = 0, tap = 0, block = 0;
    u32 parity = 0;
#pragma unroll 1
    for (int step = 0; step < steps; step++) {
        if (tap == 0) await_barrier(shared_address(&region_full[block % REGIONS]), block / REGIONS & 1);
        await_barrier(shared_address(&stage_full[stage]), parity);
        u64 left = tile_description(stages + stage * STAGE_BYTES + filter_group * (64 * ROW_BYTES));
        int run = pixel_group * (ROWS * PITCH) + tap / KERNEL_X * PITCH + tap % KERNEL_X;
        u64 right = tile_description(regions + block % REGIONS * REGION_BYTES + run * ROW_BYTES);
        fence_warpgroup();
#pragma unroll
        for (int k = 0; k < ROW_BYTES / 32; k++)
            multiply(sums, left + k * DESCRIBED_STEP, right + k * DESCRIBED_STEP, step > 0 || k > 0);
        commit_warpgroup();
        // The step before has been multiplied.
        await_warpgroup<1>();
        if (step > 0 && in_group == 0) {
            arrive(shared_address(&stage_empty[before]));
            if (tap == 0) arrive(shared_address(&region_empty[(block - 1) % REGIONS]));
        }
        before = stage;
        stage = stage + 1 == STAGES ? 0 : stage + 1;
        parity ^= stage == 0;
        if (++tap == TAPS) tap = 0, block++;
    }
    await_warpgroup<0>();

    if (HAS_RESIDUAL) {
        await_copies<0>();
        await_group(group);
    } else {
        // Results take the place of what others may still multiply.
        await_groups();
    }
    // Matrices of 8 filters x 8 pixels, two along the filters and two along the pixels; lanes say where their columns lie.
    u32 matrices = result + ((lane / 16 * 8 + lane % 8) * RESULT_STRIDE + warp % 4 * 16 + lane / 8 % 2 * 8) * 2;
#pragma unroll
    for (int j = 0; j < RUN / 8; j += 2) {
        // The last may stand alone.
        constexpr int LAST = RUN / 8 - 1;
        u32 address = matrices + j * 8 * RESULT_STRIDE * 2;
        bool is_alone = j == LAST;
        if (is_alone && lane >= 16) address -= 8 * RESULT_STRIDE * 2;
        Pair added[4];
        if (HAS_RESIDUAL) {
            u32 words[4];
            load_matrices_transposed(words, address);
#pragma unroll
            for (int e = 0; e < 4; e++) added[e].word = words[e];
        }
        Pair stored[4];
#pragma unroll
        for (int e = 0; e < 4; e++) {
            int of = j + (is_alone ? 0 : e / 2);
#pragma unroll
            for (int i = 0; i < 2; i++) {
                float value = sums[of * 4 + e % 2 * 2 + i] + start[e % 2];
                if (HAS_RESIDUAL) value += to_float(added[e].numbers.at[i]);
                stored[e].numbers.at[i] = from_float<STORAGE>(activate<ACTIVATION>(value, p.activation));
            }
        }
        store_matrices_transposed(address, stored[0].word, stored[1].word, stored[2].word, stored[3].word);
    }
    await_group(group);
    typedef Packed<STORAGE, 8> Eight;
    auto read = [&](int at) {
        Eight read;
        u32(&words)[4] = read.words.at;
        asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                     : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
                     : "r"(result + (at * RESULT_STRIDE + in_group % 8 * 8) * 2));
        return read;
    };
#if IS_POOLED
    static_assert(ROWS % 2 == 0 && COLUMNS % 2 == 0 && !HAS_RESIDUAL, "pixels that are pooled lie in one tile");
    constexpr int POOLED_COLUMNS = COLUMNS / 2;
    int height = p.height / 2, width = p.width / 2;
#pragma unroll 2
    for (int at = in_group / 8; at < ROWS / 2 * POOLED_COLUMNS; at += 16) {
        int row = at / POOLED_COLUMNS, column = at - row * POOLED_COLUMNS;
        int y = first_y / 2 + row, x = first_x / 2 + column;
        if (y >= height || x >= width) continue;
        int first = 2 * row * PITCH + 2 * column;
        Eight greatest = read(first);
        greatest.raise(read(first + 1));
        greatest.raise(read(first + PITCH));
        greatest.raise(read(first + PITCH + 1));
        greatest.store(output + ((i64)(image * height + y) * width + x) * p.filters + first_filter + in_group % 8 * 8);
    }
#else
#pragma unroll 4
    for (int at = in_group / 8; at < RUN; at += 16) {
        if (is_inside(at)) read(at).store(output + place(at));
    }
#endif
}
