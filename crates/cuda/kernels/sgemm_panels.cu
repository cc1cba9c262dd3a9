// Products of many tenants in one launch, in f32 by the plain arithmetic units, where tiles divide the products: every block
// computes one tile of one product, whose operands it finds in a table. A product is weights [m][k] times input [k][n].
// Weights lie as panels of PANEL rows, [m / PANEL][k][PANEL], so that what a stage takes of them is contiguous.
//
// One warp has the copy engine bring stages, ahead of the warps that multiply. Each of those waits for nothing but the
// stage that it is about to read.
//
// Parameters:
//   TILE_M, TILE_N       outputs of a block
//   THREAD_M, THREAD_N   outputs of a thread, multiples of four
//   TILE_K, STAGES       terms of a stage, and stages of shared memory
//   BY_COLUMNS           the order of a thread's outputs: along columns, else along rows
//   SQUARE               side of the squares of outputs that this order is one of: 1 or 2
//   BLOCKS               blocks of an SM that registers must suffice for
//   IS_WHOLE             a row of input has TILE_N columns, so that what a stage takes of it is contiguous

constexpr int PANEL = 64;
constexpr int LANES_M = 8, LANES_N = 4;
constexpr int WARP_M = LANES_M * THREAD_M, WARP_N = LANES_N * THREAD_N;
constexpr int MULTIPLIERS = 32 * (TILE_M / WARP_M) * (TILE_N / WARP_N), THREADS = MULTIPLIERS + 32;
constexpr int PANELS = TILE_M / PANEL;
static_assert(TILE_M % WARP_M == 0 && TILE_N % WARP_N == 0 && TILE_M % PANEL == 0, "");
static_assert(TILE_K % 2 == 0 && TILE_K >= 4 && STAGES >= 2, "");

// Of a stage: weights, input, and the barriers that say that it is full and that it may be filled.
constexpr u32 PANEL_BYTES = 4 * TILE_K * PANEL;
constexpr u32 RIGHT_AT = PANELS * PANEL_BYTES, OPERAND_BYTES = RIGHT_AT + 4 * TILE_K * TILE_N;
constexpr u32 FULL_AT = OPERAND_BYTES, EMPTY_AT = FULL_AT + 8, STAGE_BYTES = OPERAND_BYTES + 128;

struct alignas(16) Entry {
    // As they are stored, for other kernels.
    const float *weights;
    const float *input;
    float *output;
    const float *panels;
};

extern __shared__ __align__(128) u8 memory[];

DEVICE void start_barrier(u32 barrier, u32 arrivals) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}
// Makes barriers visible to the copy engine, before anything arrives at them.
DEVICE void show_barriers() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }
// The barrier's phase ends when so many bytes have come.
DEVICE void expect_bytes(u32 barrier, u32 bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}
DEVICE void arrive(u32 barrier) { asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory"); }
// Whether the phase of this parity has ended.
DEVICE bool has_ended(u32 barrier, u32 parity) {
    u32 has_ended;
    asm volatile("{\n.reg .pred has_ended;\n"
                 "mbarrier.test_wait.parity.shared::cta.b64 has_ended, [%1], %2;\n"
                 "selp.b32 %0, 1, 0, has_ended;\n}"
                 : "=r"(has_ended)
                 : "r"(barrier), "r"(parity)
                 : "memory");
    return has_ended;
}
DEVICE void await_barrier(u32 barrier, u32 parity) {
    asm volatile("{\n.reg .pred has_ended;\nAGAIN:\n"
                 "mbarrier.try_wait.parity.shared::cta.b64 has_ended, [%0], %1;\n"
                 "@!has_ended bra AGAIN;\n}" ::"r"(barrier), "r"(parity)
                 : "memory");
}
DEVICE void copy_bytes(u32 to, const void *from, u32 bytes, u32 barrier) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to), "l"(from), "r"(bytes),
                 "r"(barrier)
                 : "memory");
}
// Barriers have been started: all threads that multiply wait for it, and those that bring stages do not wait for them.
DEVICE void let_multipliers_begin() { asm volatile("bar.arrive 1, %0;" ::"n"(THREADS) : "memory"); }
DEVICE void await_begin() { asm volatile("bar.sync 1, %0;" ::"n"(THREADS) : "memory"); }

// Four floats in the block's shared memory.
DEVICE float4 read_shared(u32 address) {
    float4 value;
    asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
                 : "=f"(value.x), "=f"(value.y), "=f"(value.z), "=f"(value.w)
                 : "r"(address));
    return value;
}
DEVICE void write_global(float *to, float4 value) {
    asm volatile("st.global.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(to), "f"(value.x), "f"(value.y), "f"(value.z), "f"(value.w) : "memory");
}

// The same value, which the compiler keeps in a register: what it can compute anew it would compute for every stage.
DEVICE u32 kept(u32 value) { return __shfl_sync(~0u, value, threadIdx.x % 32); }

// Has stages filled in turns, from the first terms on.
DEVICE void bring(const Entry &entry, u32 base, int first_m, int first_n, int steps, int n, int k) {
    const float *left = entry.panels + (i64)first_m * k, *right = entry.input + first_n;
    u32 slot = base, parity = 1;
    for (int step = 0; step < steps; step++) {
        u32 full = slot + FULL_AT;
        // Slots begin empty: the phase before the first one has ended.
        await_barrier(slot + EMPTY_AT, parity);
        expect_bytes(full, OPERAND_BYTES);
#pragma unroll
        for (int panel = 0; panel < PANELS; panel++)
            copy_bytes(slot + panel * PANEL_BYTES, left + (i64)panel * PANEL * k, PANEL_BYTES, full);
        if constexpr (IS_WHOLE) {
            copy_bytes(slot + RIGHT_AT, right, 4 * TILE_K * TILE_N, full);
        } else {
#pragma unroll 4
            for (int row = 0; row < TILE_K; row++)
                copy_bytes(slot + RIGHT_AT + row * (4 * TILE_N), right + (i64)row * n, 4 * TILE_N, full);
        }
        left += TILE_K * PANEL;
        right += (i64)TILE_K * n;
        bool is_last = slot == base + (STAGES - 1) * STAGE_BYTES;
        slot = is_last ? base : slot + STAGE_BYTES;
        parity ^= is_last;
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) sgemm_panels(const Entry *entries, int m, int n, int k) {
    u32 base = (u32)__cvta_generic_to_shared(memory);
    int tiles_n = IS_WHOLE ? 1 : n / TILE_N;
    int first_m = blockIdx.x / tiles_n * TILE_M, first_n = blockIdx.x % tiles_n * TILE_N;
    int steps = k / TILE_K;

    release_successor();
    await_predecessor();
    // Read before anything else, since it takes a while to come.
    const Entry entry = entries[blockIdx.y];
    if (threadIdx.x >= MULTIPLIERS) {
        bool is_first = threadIdx.x == MULTIPLIERS;
        if (is_first) {
#pragma unroll
            for (int stage = 0; stage < STAGES; stage++) {
                start_barrier(base + stage * STAGE_BYTES + FULL_AT, 1);
                start_barrier(base + stage * STAGE_BYTES + EMPTY_AT, MULTIPLIERS / 32);
            }
            show_barriers();
        }
        __syncwarp();
        let_multipliers_begin();
        if (is_first) bring(entry, base, first_m, first_n, steps, n, k);
        return;
    }

    // Lanes that take turns along the rows and along the columns read the same four floats as their neighbour, so that two
    // quarters of a warp are served at once.
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    int lane_m = (lane >> 1 & 1) | (lane >> 3 & 3) << 1, lane_n = (lane & 1) | (lane >> 2 & 1) << 1;
    int row = warp / (TILE_N / WARP_N) * WARP_M + lane_m * 4, column = warp % (TILE_N / WARP_N) * WARP_N + lane_n * 4;
    float *output = entry.output + (i64)(first_m + row) * n + first_n + column;
    // The fours of a thread lie so far apart that all lanes' lie between.
    auto output_of = [&](int i, int four) { return output + (i64)(i / 4 * (4 * LANES_M) + i % 4) * n + four * (4 * LANES_N); };

    u32 left_at = row / PANEL * PANEL_BYTES + 4 * (row % PANEL);
    u32 right_at = RIGHT_AT + 4 * column;
    left_at = kept(base + left_at), right_at = kept(base + right_at);
    float sums[THREAD_M][THREAD_N] = {};
    float left[2][THREAD_M], right[2][THREAD_N];
    auto read = [&](u32 slot, int term) {
#pragma unroll
        for (int four = 0; four < THREAD_M / 4; four++) {
            int down = four * (4 * LANES_M);
            *(float4 *)&left[term & 1][4 * four] =
                read_shared(left_at + slot + down / PANEL * PANEL_BYTES + 4 * (term % TILE_K * PANEL + down % PANEL));
        }
#pragma unroll
        for (int four = 0; four < THREAD_N / 4; four++)
            *(float4 *)&right[term & 1][4 * four] = read_shared(right_at + slot + 4 * (term % TILE_K * TILE_N + four * (4 * LANES_N)));
    };

    constexpr u32 LAST = (STAGES - 1) * STAGE_BYTES;
    // Where the stage begins that is read, from the first one on.
    u32 slot = 0, parity = 0;
    await_begin();
    await_barrier(base + FULL_AT, 0);
    read(slot, 0);
#pragma unroll 1
    for (int left_over = steps; left_over > 0; left_over--) {
        u32 next = slot == LAST ? 0 : slot + STAGE_BYTES;
        parity ^= slot == LAST;
        bool is_there = true;
#pragma unroll
        for (int term = 0; term < TILE_K; term++) {
            // Asked for before it is needed, since the answer takes a while; without waiting, since after the last stage nothing comes.
            if (term == TILE_K - 2) is_there = has_ended(base + next + FULL_AT, parity);
            if (term == TILE_K - 1) {
                // All of the stage has been read.
                __syncwarp();
                if (lane == 0) arrive(base + slot + EMPTY_AT);
                if (!is_there && left_over > 1) await_barrier(base + next + FULL_AT, parity);
            }
            // After the last stage, what an earlier one has left, which nothing uses.
            read(term + 1 < TILE_K ? slot : next, term + 1);
            // Back and forth, so that neighbours share an operand.
#pragma unroll
            for (int at = 0; at < THREAD_M * THREAD_N; at++) {
                constexpr int INNER = (BY_COLUMNS ? THREAD_M : THREAD_N) / SQUARE;
                int square = at / (SQUARE * SQUARE), in_square = at % (SQUARE * SQUARE);
                int outer = square / INNER, inner = outer % 2 ? INNER - 1 - square % INNER : square % INNER;
                int second = in_square / SQUARE, first = second % 2 ? SQUARE - 1 - in_square % SQUARE : in_square % SQUARE;
                int i = SQUARE * (BY_COLUMNS ? inner : outer) + first, j = SQUARE * (BY_COLUMNS ? outer : inner) + second;
                sums[i][j] = fmaf(left[term & 1][i], right[term & 1][j], sums[i][j]);
            }
        }
        slot = next;
    }

    // Sums of their own are stored, so that those of the loop need not lie in registers as fours, whose banks would be those
    // of the columns.
    float zero = __uint_as_float((u32)m >> 31);
#pragma unroll
    for (int i = 0; i < THREAD_M; i++)
#pragma unroll
        for (int j = 0; j < THREAD_N; j++) asm volatile("add.f32 %0, %0, %1;" : "+f"(sums[i][j]) : "f"(zero));
#pragma unroll
    for (int i = 0; i < THREAD_M; i++)
#pragma unroll
        for (int four = 0; four < THREAD_N / 4; four++) write_global(output_of(i, four), *(float4 *)&sums[i][4 * four]);
}
