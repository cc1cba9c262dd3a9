// What follows the sums of a product: parts of other blocks, bias, residual, activation.

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
            stored.at[e] = from_float<STORAGE>(activate<ACTIVATION, STORAGE>(value, p.activation));
        }
        i64 place = (i64)(first_m + row(at)) * p.output_stride + first_n + column(at);
        *(Stored *)(output + place) = stored;
    }
};

#if IS_ROUNDED_FIRST

static_assert(REDUCTION == REDUCTION_NONE && STORE_ELEMENTS == 8, "no other block adds to sums of numbers of 16 bits");

// A tile of results in shared memory, half as large as the sums', which holds residuals before.
struct Results {
    // Padded so that eight rows lie in different banks.
    static constexpr int STRIDE = TILE_N + 8;
    typedef Vector<STORAGE, 2> Pair;

    STORAGE *tile;
    float *bias;
    int first_m, first_n;

    DEVICE Results(u8 *place, int first_m, int first_n) : tile((STORAGE *)place), first_m(first_m), first_n(first_n) {
        __shared__ float bias_tile[HAS_BIAS ? TILE_N : 1];
        bias = bias_tile;
    }

    // Has a thread do something with eight neighbours of each of its rows, as far as they lie inside: where they are in shared
    // memory, and in memory.
    template <typename T, typename Do> DEVICE void each(const Problem &p, T *memory, Do &&act) const {
        constexpr int AT_ONCE = THREADS / ROW_STORES, TURNS = (TILE_M + AT_ONCE - 1) / AT_ONCE;
        static_assert(THREADS % ROW_STORES == 0, "a thread has the same columns of every row");
        int row = threadIdx.x / ROW_STORES, column = threadIdx.x % ROW_STORES * STORE_ELEMENTS;
        int rows = first_n + column < p.n ? min(p.m - first_m, TILE_M) : 0;
        STORAGE *place = tile + row * STRIDE + column;
        memory += (i64)(first_m + row) * p.output_stride + first_n + column;
#pragma unroll
        for (int turn = 0; turn < TURNS; turn++) {
            if (row + turn * AT_ONCE < rows) act(place + turn * AT_ONCE * STRIDE, memory);
            memory += AT_ONCE * p.output_stride;
        }
    }

    DEVICE void load_bias(const Problem &p, const BIAS *from) {
#if HAS_BIAS
#pragma unroll
        for (int first = 0; first < TILE_N; first += THREADS) {
            int n = first + threadIdx.x;
            if (n < TILE_N) bias[n] = first_n + n < p.n ? to_float(from[first_n + n]) : 0.f;
        }
#endif
    }

    // Starts copying residuals to where results will be.
    DEVICE void copy(const Problem &p, const STORAGE *residual) const {
        each(p, residual, [&](STORAGE *to, const STORAGE *from) { copy_async<16>(shared_address(to), from, 16); });
    }

    // Pairs of neighbours in a row, every eight columns, and those eight rows below.
    template <int COUNT> DEVICE void finish(const Problem &p, int row, int column, const float (&sums)[COUNT][4]) {
        // Residuals that are asked for before any of them is waited for.
        constexpr int AT_ONCE = COUNT < 4 ? COUNT : 4;
        static_assert(COUNT % AT_ONCE == 0, "");
        Pair *places[2] = {(Pair *)(tile + row * STRIDE + column), (Pair *)(tile + (row + 8) * STRIDE + column)};
#pragma unroll
        for (int first = 0; first < COUNT; first += AT_ONCE) {
            Pair added[AT_ONCE][2];
            if (HAS_RESIDUAL) {
#pragma unroll
                for (int at = 0; at < 2 * AT_ONCE; at++) added[at / 2][at % 2] = places[at % 2][(first + at / 2) * 4];
            }
#pragma unroll
            for (int at = 0; at < 2 * AT_ONCE; at++) {
                int j = first + at / 2, half = at % 2;
                Pair stored;
#pragma unroll
                for (int e = 0; e < 2; e++) {
                    float value = sums[j][half * 2 + e];
                    if (HAS_BIAS) value += bias[column + j * 8 + e];
                    if (HAS_RESIDUAL) value += to_float(added[at / 2][half].at[e]);
                    stored.at[e] = from_float<STORAGE>(activate<ACTIVATION, STORAGE>(value, p.activation));
                }
                places[half][j * 4] = stored;
            }
        }
    }

    DEVICE void store(const Problem &p, STORAGE *output) const {
        each(p, output, [&](const STORAGE *from, STORAGE *to) { *(Stored *)to = *(const Stored *)from; });
    }
};

#endif
