// Products of many tenants in one launch, in f32 by the plain arithmetic units: every block computes one tile of one
// product, whose operands it finds in a table. A product is weights [m][k] times input [k][n].
//
// Parameters:
//   TILE_M, TILE_N       outputs of a block
//   THREAD_M, THREAD_N   outputs of a thread, multiples of four
//   LANES_M              lanes of a warp along the rows: 4 or 8
//   SLICES, STEP_K       groups of warps that share the terms of a stage, and terms that each takes of it
//   STAGES               stages of shared memory, at least three
//   TURNED               weights lie in shared memory as [k][m], copied one by one; else as they are stored, by fours
//   BY_COLUMNS           the order of a thread's outputs: along columns, else along rows
//   COPIES_FIRST         a stage is refilled before the first terms of the next are read from shared memory, else after
//   BLOCKS               blocks of an SM that registers must suffice for
//   EXACT                tiles and stages divide the product
//   WIDE_K, WIDE_N       rows of weights, and of input and output, are multiples of 16 bytes
//
// Blocks of a cluster share the terms of their tile; their sums and those of slices are added in a fixed order.

constexpr int LANES_N = 32 / LANES_M;
constexpr int WARP_M = LANES_M * THREAD_M, WARP_N = LANES_N * THREAD_N;
constexpr int SLICE_THREADS = 32 * (TILE_M / WARP_M) * (TILE_N / WARP_N), THREADS = SLICES * SLICE_THREADS;
constexpr int TILE_K = SLICES * STEP_K;
// Four more than a multiple of eight: neighbours that are read together lie in other banks.
constexpr int LEFT_STRIDE = (TURNED ? TILE_M : TILE_K) + 4;
constexpr int LEFT_ELEMENTS = (TURNED ? TILE_K : TILE_M) * LEFT_STRIDE;
constexpr int STAGE_ELEMENTS = LEFT_ELEMENTS + TILE_K * TILE_N;
// Terms whose weights are read from shared memory before those before them are used up.
constexpr int AHEAD = TURNED ? 1 : 4;

// Copies: elements of one, how many lie in a row of the tile, rows between two of one thread.
constexpr int LEFT_WIDTH = !TURNED && WIDE_K ? 4 : 1, RIGHT_WIDTH = WIDE_N ? 4 : 1;
constexpr int LEFT_ROW_STEP = THREADS * LEFT_WIDTH / TILE_K, RIGHT_ROW_STEP = THREADS * RIGHT_WIDTH / TILE_N;
static_assert(TILE_M % WARP_M == 0 && TILE_N % WARP_N == 0 && STEP_K % (2 * AHEAD) == 0 && STAGES >= 3, "");
static_assert(THREADS * LEFT_WIDTH % TILE_K == 0 && TILE_M % LEFT_ROW_STEP == 0, "");
static_assert(THREADS * RIGHT_WIDTH % TILE_N == 0 && TILE_K % RIGHT_ROW_STEP == 0, "");
static_assert(!TURNED || (TILE_K % 8 == 0 && THREADS / 32 % (TILE_K / 8) == 0), "");

struct alignas(16) Entry {
    const float *weights;
    const float *input;
    float *output;
    // Weights in another form, for `sgemm_panels.cu`.
    u64 panels;
};

extern __shared__ __align__(16) float memory[];

template <int WIDTH> DEVICE void copy(u32 to, const float *from, bool is_inside) {
    u32 bytes = is_inside ? 4 * WIDTH : 0;
    if constexpr (WIDTH == 4)
        asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes));
    else
        asm volatile("cp.async.ca.shared.global.L2::128B [%0], [%1], 4, %2;" ::"r"(to), "l"(from), "r"(bytes));
}
template <int WIDTH> DEVICE void copy(u32 to, const float *from) {
    if constexpr (WIDTH == 4)
        asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16;" ::"r"(to), "l"(from));
    else
        asm volatile("cp.async.ca.shared.global.L2::128B [%0], [%1], 4;" ::"r"(to), "l"(from));
}
DEVICE void commit_copies() { asm volatile("cp.async.commit_group;"); }
template <int PENDING> DEVICE void await_copies() { asm volatile("cp.async.wait_group %0;" ::"n"(PENDING) : "memory"); }

// Four floats in the block's shared memory.
DEVICE float4 read_shared(u32 address) {
    float4 value;
    asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
                 : "=f"(value.x), "=f"(value.y), "=f"(value.z), "=f"(value.w)
                 : "r"(address));
    return value;
}

// The same value, which the compiler keeps in a register: what it can compute anew it would compute for every stage.
DEVICE u32 kept(u32 value) { return __shfl_sync(~0u, value, threadIdx.x % 32); }

// The blocks that share a tile. Without clusters, one.
DEVICE u32 cluster_size() {
    u32 size = 1;
#if __CUDA_ARCH__ >= 900
    asm("mov.u32 %0, %%cluster_nctarank;" : "=r"(size));
#endif
    return size;
}
DEVICE u32 cluster_rank() {
    u32 rank = 0;
#if __CUDA_ARCH__ >= 900
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
#endif
    return rank;
}
DEVICE void cluster_barrier() {
#if __CUDA_ARCH__ >= 900
    asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::: "memory");
#else
    __syncthreads();
#endif
}
// Four floats in the shared memory of a block of the cluster.
DEVICE float4 read_remote(u32 address, u32 rank) {
    float4 value;
#if __CUDA_ARCH__ >= 900
    u32 remote;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(remote) : "r"(address), "r"(rank));
    asm volatile("ld.shared::cluster.v4.f32 {%0, %1, %2, %3}, [%4];"
                 : "=f"(value.x), "=f"(value.y), "=f"(value.z), "=f"(value.w)
                 : "r"(remote));
#else
    value = read_shared(address);
#endif
    return value;
}

// What a thread copies of every stage.
struct Copies {
    const float *left, *right;
    int left_step, right_step;
    u32 left_to, right_to;
    int left_row, left_k, right_k, right_column;

    DEVICE Copies(const Entry &entry, int first_m, int first_n, int first_k, int n, int k) {
        int thread = threadIdx.x;
        if constexpr (TURNED) {
            // A warp copies eight terms of four rows, which lie in 32 banks.
            int unit = thread / 32;
            left_k = unit % (TILE_K / 8) * 8 + thread % 8;
            left_row = unit / (TILE_K / 8) * 4 + thread / 8 % 4;
            left_to = left_k * LEFT_STRIDE + left_row;
        } else {
            left_k = thread % (TILE_K / LEFT_WIDTH) * LEFT_WIDTH;
            left_row = thread / (TILE_K / LEFT_WIDTH);
            left_to = left_row * LEFT_STRIDE + left_k;
        }
        right_column = thread % (TILE_N / RIGHT_WIDTH) * RIGHT_WIDTH;
        right_k = thread / (TILE_N / RIGHT_WIDTH);
        right_to = LEFT_ELEMENTS + right_k * TILE_N + right_column;
        u32 base = (u32)__cvta_generic_to_shared(memory);
        left_to = base + 4 * left_to;
        right_to = base + 4 * right_to;
        left_row += first_m;
        left_k += first_k;
        right_k += first_k;
        right_column += first_n;
        left = entry.weights + (i64)left_row * k + left_k;
        right = entry.input + (i64)right_k * n + right_column;
        left_step = LEFT_ROW_STEP * k;
        right_step = RIGHT_ROW_STEP * n;
        left_to = kept(left_to);
        right_to = kept(right_to);
    }

    // Starts copying the next stage into a slot.
    DEVICE void start(u32 slot, int m, int n, int k) {
        const float *from = left;
#pragma unroll
        for (int i = 0; i < TILE_M / LEFT_ROW_STEP; i++) {
            u32 to = left_to + slot + 4 * i * LEFT_ROW_STEP * (TURNED ? 1 : LEFT_STRIDE);
            bool is_inside = left_row + i * LEFT_ROW_STEP < m && left_k < k;
            if constexpr (EXACT) copy<LEFT_WIDTH>(to, from);
            else copy<LEFT_WIDTH>(to, is_inside ? from : left, is_inside);
            from += left_step;
        }
        from = right;
#pragma unroll
        for (int i = 0; i < TILE_K / RIGHT_ROW_STEP; i++) {
            u32 to = right_to + slot + 4 * i * RIGHT_ROW_STEP * TILE_N;
            bool is_inside = right_k + i * RIGHT_ROW_STEP < k && right_column < n;
            if constexpr (EXACT) copy<RIGHT_WIDTH>(to, from);
            else copy<RIGHT_WIDTH>(to, is_inside ? from : right, is_inside);
            from += right_step;
        }
        left += TILE_K;
        right += (i64)TILE_K * n;
        if constexpr (!EXACT) {
            left_k += TILE_K;
            right_k += TILE_K;
        }
    }
};

// Where a thread's outputs lie in the tile. Lanes that take turns along the rows and along the columns read the same
// four floats as their neighbour, so that two quarters of a warp are served at once.
struct Place {
    int row, column;

    DEVICE Place(int warp, int lane) {
        int lane_m = LANES_M == 8 ? (lane >> 1 & 1) | (lane >> 3 & 3) << 1 : (lane >> 1 & 1) | (lane >> 3 & 1) << 1;
        int lane_n = LANES_M == 8 ? (lane & 1) | (lane >> 2 & 1) << 1 : (lane & 1) | (lane >> 2 & 1) << 1 | lane >> 4 << 2;
        row = warp / (TILE_N / WARP_N) * WARP_M + lane_m * (TURNED ? 4 : 1);
        column = warp % (TILE_N / WARP_N) * WARP_N + lane_n * 4;
    }
    DEVICE int row_of(int i) const { return row + (TURNED ? i / 4 * (4 * LANES_M) + i % 4 : i * LANES_M); }
    DEVICE int column_of(int four) const { return column + four * (4 * LANES_N); }
};

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) sgemm(const Entry *entries, int m, int n, int k) {
    int slice = threadIdx.x / SLICE_THREADS, in_slice = threadIdx.x % SLICE_THREADS;
    u32 size = cluster_size(), rank = cluster_rank(), index = blockIdx.x / size;
    int tiles_n = EXACT ? n / TILE_N : (n + TILE_N - 1) / TILE_N;
    int first_m = index / tiles_n * TILE_M, first_n = index % tiles_n * TILE_N;
    u32 all_stages = (k + TILE_K - 1) / TILE_K;
    int first_stage = all_stages * rank / size, stages = all_stages * (rank + 1) / size - first_stage;
    Place place(in_slice / 32, in_slice % 32);

    release_successor();
    await_predecessor();
    Copies copies(entries[blockIdx.y], first_m, first_n, first_stage * TILE_K, n, k);
#pragma unroll
    for (int stage = 0; stage < STAGES - 1; stage++) {
        if (stage < stages) copies.start(stage * (4 * STAGE_ELEMENTS), m, n, k);
        commit_copies();
    }

    float sums[THREAD_M][THREAD_N] = {};
    float left[2][TURNED ? 1 : 4][THREAD_M], right[2][THREAD_N];
    u32 base = (u32)__cvta_generic_to_shared(memory);
    u32 left_at = TURNED ? slice * STEP_K * LEFT_STRIDE + place.row : place.row * LEFT_STRIDE + slice * STEP_K;
    u32 right_at = LEFT_ELEMENTS + slice * STEP_K * TILE_N + place.column;
    left_at = kept(base + 4 * left_at), right_at = kept(base + 4 * right_at);
    // Reads weights of a term; where they are not turned, those of four terms for a quarter of the rows.
    auto read_left = [&](u32 slot, int term) {
        if constexpr (TURNED) {
#pragma unroll
            for (int four = 0; four < THREAD_M / 4; four++)
                *(float4 *)&left[term & 1][0][4 * four] =
                    read_shared(left_at + slot + 4 * (term % STEP_K * LEFT_STRIDE + four * (4 * LANES_M)));
        } else {
            int group = term / 4, part = term % 4;
#pragma unroll
            for (int i = part * THREAD_M / 4; i < (part + 1) * THREAD_M / 4; i++) {
                float4 read = read_shared(left_at + slot + 4 * (i * LANES_M * LEFT_STRIDE + group * 4 % STEP_K));
                left[group & 1][0][i] = read.x;
                left[group & 1][TURNED ? 0 : 1][i] = read.y;
                left[group & 1][TURNED ? 0 : 2][i] = read.z;
                left[group & 1][TURNED ? 0 : 3][i] = read.w;
            }
        }
    };
    auto read_right = [&](u32 slot, int term) {
#pragma unroll
        for (int four = 0; four < THREAD_N / 4; four++)
            *(float4 *)&right[term & 1][4 * four] =
                read_shared(right_at + slot + 4 * (term % STEP_K * TILE_N + four * (4 * LANES_N)));
    };

    await_copies<STAGES - 2>();
    __syncthreads();
#pragma unroll
    for (int term = 0; term < AHEAD; term++) read_left(0, term);
    read_right(0, 0);
    // Slots by where they begin: the one that is read, the one after it, and the one before it, which is filled.
    constexpr u32 STAGE_BYTES = 4 * STAGE_ELEMENTS, LAST = (STAGES - 1) * STAGE_BYTES;
    u32 slot = 0, free = LAST;
#pragma unroll 1
    for (int stage = 0; stage < stages; stage++) {
        u32 next = slot == LAST ? 0 : slot + STAGE_BYTES;
        auto refill = [&] {
            if (stage + STAGES - 1 < stages) copies.start(free, m, n, k);
            commit_copies();
            free = slot;
        };
#pragma unroll
        for (int term = 0; term < STEP_K; term++) {
            if (term == STEP_K - AHEAD) {
                await_copies<STAGES - 3>();
                __syncthreads();
                if (COPIES_FIRST) refill();
            }
            read_left(term + AHEAD < STEP_K ? slot : next, term + AHEAD);
            read_right(term + 1 < STEP_K ? slot : next, term + 1);
            if (term == STEP_K - AHEAD && !COPIES_FIRST) refill();
            // Back and forth, so that neighbours share an operand.
#pragma unroll
            for (int at = 0; at < THREAD_M * THREAD_N; at++) {
                constexpr int INNER = BY_COLUMNS ? THREAD_M : THREAD_N;
                int outer = at / INNER, inner = outer % 2 ? INNER - 1 - at % INNER : at % INNER;
                int i = BY_COLUMNS ? inner : outer, j = BY_COLUMNS ? outer : inner;
                float factor = TURNED ? left[term & 1][0][i] : left[term / 4 & 1][TURNED ? 0 : term % 4][i];
                sums[i][j] = fmaf(factor, right[term & 1][j], sums[i][j]);
            }
        }
        slot = next;
    }

    auto store = [&](int row, int column, float4 value) {
        if (!EXACT && (first_m + row >= m || first_n + column >= n)) return;
        float *to = entries[blockIdx.y].output + (i64)(first_m + row) * n + first_n + column;
        if constexpr (WIDE_N) {
            *(float4 *)to = value;
        } else {
            float values[4] = {value.x, value.y, value.z, value.w};
#pragma unroll
            for (int e = 0; e < 4; e++)
                if (first_n + column + e < n) to[e] = values[e];
        }
    };
    if (SLICES == 1 && size == 1) {
#pragma unroll
        for (int i = 0; i < THREAD_M; i++)
#pragma unroll
            for (int four = 0; four < THREAD_N / 4; four++)
                store(place.row_of(i), place.column_of(four), *(float4 *)&sums[i][4 * four]);
        return;
    }
    // Sums of all slices lie in the memory of the stages, which nothing is copied to any more.
    await_copies<0>();
    __syncthreads();
    float *parts = memory + slice * (TILE_M * TILE_N);
#pragma unroll
    for (int i = 0; i < THREAD_M; i++)
#pragma unroll
        for (int four = 0; four < THREAD_N / 4; four++)
            *(float4 *)(parts + place.row_of(i) * TILE_N + place.column_of(four)) = *(float4 *)&sums[i][4 * four];
    if (size > 1) cluster_barrier();
    else __syncthreads();
    for (u32 at = rank * THREADS + threadIdx.x; at < TILE_M * TILE_N / 4; at += size * THREADS) {
        float4 sum = make_float4(0.f, 0.f, 0.f, 0.f);
        for (u32 of = 0; of < size; of++) {
#pragma unroll
            for (int part = 0; part < SLICES; part++) {
                float4 added = read_remote(base + 16 * at + part * (4 * TILE_M * TILE_N), of);
                sum.x += added.x, sum.y += added.y, sum.z += added.z, sum.w += added.w;
            }
        }
        store(4 * at / TILE_N, 4 * at % TILE_N, sum);
    }
    // Others may still read this block's sums.
    if (size > 1) cluster_barrier();
}
