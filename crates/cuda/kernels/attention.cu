// Scaled dot-product attention: softmax(scale * Q K^T + mask) V, one pass over the keys, on tensor cores.
//
// A block computes QUERY_WARPS * 16 queries of one head. Each 16 of them have KEY_WARPS warps, which share the keys:
// a step takes KEYS keys for each warp. The keys and values of the next step are loaded while those of this one are
// used; the softmax is corrected as greater scores turn up. At the end the warps of the same queries join what they have.
//
// Parameters: STORAGE, MATH, QUERY_WARPS, KEY_WARPS, KEYS, DEPTH (of queries and keys), VALUE_DEPTH, LOAD_BYTES,
// VALUE_LOAD_BYTES, STORE_ELEMENTS (1 or 2), MASK.

#define MASK_NONE 0
// One number for each key, whatever the query.
#define MASK_BY_KEY 1
#define MASK_BY_QUERY 2

constexpr int QUERIES = QUERY_WARPS * 16;
constexpr int THREADS = QUERY_WARPS * KEY_WARPS * 32;
// Keys of one step.
constexpr int SPAN = KEYS * KEY_WARPS;
constexpr int ELEMENT_BYTES = sizeof(STORAGE);
// One step of the tensor cores takes this much of a sum.
constexpr int STEP = 32 / ELEMENT_BYTES;
constexpr int power_of_two(int least, int value) { return least >= value ? least : power_of_two(least * 2, value); }
// Rows in shared memory: powers of two, for the sake of their placement.
constexpr int ROW_BYTES = power_of_two(32, DEPTH * ELEMENT_BYTES);
constexpr int VALUE_ROW_BYTES = power_of_two(16 * ELEMENT_BYTES, VALUE_DEPTH * ELEMENT_BYTES);
constexpr int DEPTH_STEPS = (DEPTH + STEP - 1) / STEP;
constexpr int KEY_STEPS = KEYS / STEP;
constexpr int SCORE_TILES = KEYS / 8;
constexpr int VALUE_PAIRS = (VALUE_DEPTH + 15) / 16;
constexpr int STAGE_BYTES = SPAN * (ROW_BYTES + VALUE_ROW_BYTES);
// A row of weighted values while warps are joined, with its greatest score and its total, and away from the banks of
// the next row.
constexpr int PART_STRIDE = VALUE_PAIRS * 16 + 8;
constexpr float LOG2_E = 1.44269504088896341f;
// Less than any score.
constexpr float LEAST = -3e38f;

// Distances in elements between neighbours in batch, head and sequence.
struct Strides {
    i64 batch, head, sequence;
};

struct Problem {
    int heads, queries, keys;
    float scale;
    Strides query, key, value, output;
    i64 mask_batch, mask_head, mask_query, mask_key;
};

// Loads rows [first, first + ROWS) of a matrix, zero past `count` rows and past COLUMNS.
template <int ROWS, int COLUMNS, int BYTES, int TILE_ROW_BYTES>
DEVICE void load_rows(u32 tile, const STORAGE *from, i64 stride, int first, int count) {
    constexpr int PIECES = TILE_ROW_BYTES / BYTES;
    for (int at = threadIdx.x; at < ROWS * PIECES; at += THREADS) {
        int row = at / PIECES, column = at % PIECES * (BYTES / ELEMENT_BYTES);
        bool is_inside = first + row < count && column < COLUMNS;
        int left = is_inside ? (COLUMNS - column) * ELEMENT_BYTES : 0;
        int byte = column * ELEMENT_BYTES;
        u32 to = tile + place<TILE_ROW_BYTES / 16>(row, byte / 16) * 16 + byte % 16;
        copy_async<BYTES>(to, is_inside ? from + (first + row) * stride + column : from, left < BYTES ? left : BYTES);
    }
}

DEVICE void multiply(float (&sum)[4], u32 (&a)[4], u32 b0, u32 b1) {
#if MATH == MATH_F16 || MATH == MATH_BF16
    mma_once(sum, a, b0, b1);
#else
    mma_split(sum, split_left(a), split_right(b0, b1));
#endif
}

// Two probabilities as the tensor cores take them.
DEVICE u32 packed(float first, float second) {
#if MATH == MATH_F16
    __half2 pair = __floats2half2_rn(first, second);
    return *(u32 *)&pair;
#elif MATH == MATH_BF16
    __nv_bfloat162 pair = __floats2bfloat162_rn(first, second);
    return *(u32 *)&pair;
#else
    return 0;
#endif
}

DEVICE float greatest_of_row(float x) {
    x = fmaxf(x, __shfl_xor_sync(0xffffffff, x, 1));
    return fmaxf(x, __shfl_xor_sync(0xffffffff, x, 2));
}
DEVICE float sum_of_row(float x) {
    x += __shfl_xor_sync(0xffffffff, x, 1);
    return x + __shfl_xor_sync(0xffffffff, x, 2);
}

// Stores two neighbours of a row of the output, as far as they belong to it.
DEVICE void store(STORAGE *row, int column, float first, float second) {
    Vector<STORAGE, 2> pair;
    pair.at[0] = from_float<STORAGE>(first);
    pair.at[1] = from_float<STORAGE>(second);
    if (STORE_ELEMENTS == 2) {
        if (column < VALUE_DEPTH) *(Vector<STORAGE, 2> *)(row + column) = pair;
    } else {
        if (column < VALUE_DEPTH) row[column] = pair.at[0];
        if (column + 1 < VALUE_DEPTH) row[column + 1] = pair.at[1];
    }
}

KERNEL_OF(THREADS, attention)(CONSTANT(Problem) p, const STORAGE *query, const STORAGE *key, const STORAGE *value,
                              const STORAGE *mask, STORAGE *output) {
    extern __shared__ __align__(128) u8 shared[];
    int lane = threadIdx.x % 32, matrix = lane / 8;
    int query_warp = threadIdx.x / 32 / KEY_WARPS, key_warp = threadIdx.x / 32 % KEY_WARPS;
    int batch = BLOCK_Y / p.heads, head = BLOCK_Y - batch * p.heads;
    int first_query = BLOCK_X * QUERIES;
    query += batch * p.query.batch + head * p.query.head;
    key += batch * p.key.batch + head * p.key.head;
    value += batch * p.value.batch + head * p.value.head;
    output += batch * p.output.batch + head * p.output.head;
    u32 query_tile = shared_address(shared);
    u32 stages = query_tile + QUERIES * ROW_BYTES;

    release_successor();
    await_predecessor();
    int blocks = (p.keys + SPAN - 1) / SPAN;
    load_rows<QUERIES, DEPTH, LOAD_BYTES, ROW_BYTES>(query_tile, query, p.query.sequence, first_query, p.queries);
    load_rows<SPAN, DEPTH, LOAD_BYTES, ROW_BYTES>(stages, key, p.key.sequence, 0, p.keys);
    commit_copies();
    load_rows<SPAN, VALUE_DEPTH, VALUE_LOAD_BYTES, VALUE_ROW_BYTES>(stages + SPAN * ROW_BYTES, value, p.value.sequence, 0,
                                                                    p.keys);
    commit_copies();

    u32 queries[DEPTH_STEPS][4];
    float sums[VALUE_PAIRS * 2][4];
    // Of rows lane / 4 and lane / 4 + 8.
    float greatest[2] = {LEAST, LEAST}, total[2] = {0.f, 0.f};
#pragma unroll
    for (int j = 0; j < VALUE_PAIRS * 2; j++)
#pragma unroll
        for (int e = 0; e < 4; e++) sums[j][e] = 0.f;

    for (int block = 0; block < blocks; block++) {
        u32 keys = stages + block % 2 * STAGE_BYTES, values = keys + SPAN * ROW_BYTES;
        await_copies<1>();
        __syncthreads();
        if (block == 0) {
#pragma unroll
            for (int k = 0; k < DEPTH_STEPS; k++) {
                int row = query_warp * 16 + lane % 8 + (matrix & 1) * 8;
                load_matrices(queries[k], query_tile + place<ROW_BYTES / 16>(row, k * 2 + (matrix >> 1)) * 16);
            }
        }
        // The other stage is free: every warp has passed the barrier after its last use.
        int next = (block + 1) * SPAN;
        u32 next_stage = stages + (block + 1) % 2 * STAGE_BYTES;
        if (block + 1 < blocks)
            load_rows<SPAN, DEPTH, LOAD_BYTES, ROW_BYTES>(next_stage, key, p.key.sequence, next, p.keys);
        commit_copies();

        // The first of this warp's keys and, in each tile, of this thread's.
        int first_key = block * SPAN + key_warp * KEYS + lane % 4 * 2;
#if MASK != MASK_NONE
        // Asked for early, needed after the products.
        constexpr int ADDED = MASK == MASK_BY_KEY ? 2 : 4;
        float added[SCORE_TILES][ADDED];
#pragma unroll
        for (int j = 0; j < SCORE_TILES; j++)
#pragma unroll
            for (int e = 0; e < ADDED; e++) {
                int at = first_key + j * 8 + e % 2, row = first_query + query_warp * 16 + lane / 4 + e / 2 * 8;
                bool is_inside = at < p.keys && row < p.queries;
                i64 offset = batch * p.mask_batch + head * p.mask_head + at * p.mask_key;
                if (MASK == MASK_BY_QUERY) offset += row * p.mask_query;
                added[j][e] = is_inside || (MASK == MASK_BY_KEY && at < p.keys) ? to_float(mask[offset]) : 0.f;
            }
#endif
        float scores[SCORE_TILES][4];
#pragma unroll
        for (int j = 0; j < SCORE_TILES; j++)
#pragma unroll
            for (int e = 0; e < 4; e++) scores[j][e] = 0.f;
#pragma unroll
        for (int k = 0; k < DEPTH_STEPS; k++)
#pragma unroll
            for (int j = 0; j < SCORE_TILES / 2; j++) {
                u32 b[4];
                int row = key_warp * KEYS + j * 16 + lane % 8 + (matrix >> 1) * 8;
                load_matrices(b, keys + place<ROW_BYTES / 16>(row, k * 2 + (matrix & 1)) * 16);
                multiply(scores[j * 2], queries[k], b[0], b[1]);
                multiply(scores[j * 2 + 1], queries[k], b[2], b[3]);
            }

        // Scores in units of powers of two; keys past the end weigh nothing.
        float row_greatest[2] = {greatest[0], greatest[1]};
#pragma unroll
        for (int j = 0; j < SCORE_TILES; j++)
#pragma unroll
            for (int e = 0; e < 4; e++) {
                float score = scores[j][e] * (p.scale * LOG2_E);
#if MASK != MASK_NONE
                // A mask below the range of the storage type means "never": a finite number keeps rows that are
                // masked throughout defined.
                score += fmaxf(added[j][e % ADDED], -1e30f) * LOG2_E;
#endif
                scores[j][e] = first_key + j * 8 + e % 2 < p.keys ? score : LEAST;
                row_greatest[e / 2] = fmaxf(row_greatest[e / 2], scores[j][e]);
            }
        float correction[2];
#pragma unroll
        for (int r = 0; r < 2; r++) {
            row_greatest[r] = greatest_of_row(row_greatest[r]);
            correction[r] = exp2f(greatest[r] - row_greatest[r]);
            greatest[r] = row_greatest[r];
            total[r] *= correction[r];
        }
#pragma unroll
        for (int j = 0; j < SCORE_TILES; j++)
#pragma unroll
            for (int e = 0; e < 4; e++) {
                scores[j][e] = exp2f(scores[j][e] - greatest[e / 2]);
                total[e / 2] += scores[j][e];
            }
#pragma unroll
        for (int j = 0; j < VALUE_PAIRS * 2; j++)
#pragma unroll
            for (int e = 0; e < 4; e++) sums[j][e] *= correction[e / 2];

        await_copies<1>();
        __syncthreads();
        if (block + 1 < blocks)
            load_rows<SPAN, VALUE_DEPTH, VALUE_LOAD_BYTES, VALUE_ROW_BYTES>(next_stage + SPAN * ROW_BYTES, value,
                                                                            p.value.sequence, next, p.keys);
        commit_copies();
#pragma unroll
        for (int k = 0; k < KEY_STEPS; k++) {
            u32 a[4];
#if MATH == MATH_F16 || MATH == MATH_BF16
            a[0] = packed(scores[k * 2][0], scores[k * 2][1]);
            a[1] = packed(scores[k * 2][2], scores[k * 2][3]);
            a[2] = packed(scores[k * 2 + 1][0], scores[k * 2 + 1][1]);
            a[3] = packed(scores[k * 2 + 1][2], scores[k * 2 + 1][3]);
#else
            // The sum runs over the keys in another order, even ones first: what a thread holds is what it needs.
            a[0] = __float_as_uint(scores[k][0]);
            a[1] = __float_as_uint(scores[k][2]);
            a[2] = __float_as_uint(scores[k][1]);
            a[3] = __float_as_uint(scores[k][3]);
#endif
#pragma unroll
            for (int j = 0; j < VALUE_PAIRS; j++) {
                u32 b[4];
#if MATH == MATH_F16 || MATH == MATH_BF16
                int row = key_warp * KEYS + k * 16 + lane % 8 + (matrix & 1) * 8;
                load_matrices_transposed(b, values + place<VALUE_ROW_BYTES / 16>(row, j * 2 + (matrix >> 1)) * 16);
#else
#pragma unroll
                for (int part = 0; part < 4; part++) {
                    int row = key_warp * KEYS + k * 8 + lane % 4 * 2 + (part & 1);
                    int column = j * 16 + (part >> 1) * 8 + lane / 4;
                    u32 address = values + place<VALUE_ROW_BYTES / 16>(row, column / 4) * 16 + column % 4 * 4;
                    asm volatile("ld.shared.b32 %0, [%1];" : "=r"(b[part]) : "r"(address));
                }
#endif
                multiply(sums[j * 2], a, b[0], b[1]);
                multiply(sums[j * 2 + 1], a, b[2], b[3]);
            }
        }
    }
    await_copies<0>();
    total[0] = sum_of_row(total[0]);
    total[1] = sum_of_row(total[1]);

#if KEY_WARPS == 1
#pragma unroll
    for (int r = 0; r < 2; r++) {
        int row = first_query + query_warp * 16 + lane / 4 + r * 8;
        if (row >= p.queries) continue;
#pragma unroll
        for (int j = 0; j < VALUE_PAIRS * 2; j++)
            store(output + row * p.output.sequence, j * 8 + lane % 4 * 2, sums[j][r * 2] / total[r], sums[j][r * 2 + 1] / total[r]);
    }
#else
    __syncthreads();
    float *parts = (float *)shared;
#pragma unroll
    for (int r = 0; r < 2; r++) {
        float *part = parts + (key_warp * QUERIES + query_warp * 16 + lane / 4 + r * 8) * PART_STRIDE;
#pragma unroll
        for (int j = 0; j < VALUE_PAIRS * 2; j++)
            *(float2 *)&part[j * 8 + lane % 4 * 2] = make_float2(sums[j][r * 2], sums[j][r * 2 + 1]);
        if (lane % 4 == 0) *(float2 *)&part[VALUE_PAIRS * 16] = make_float2(greatest[r], total[r]);
    }
    __syncthreads();
    constexpr int PAIRS = VALUE_PAIRS * 8;
    for (int at = threadIdx.x; at < QUERIES * PAIRS; at += THREADS) {
        int row = at / PAIRS, column = at % PAIRS * 2;
        if (first_query + row >= p.queries) break;
        float most = LEAST, whole = 0.f, first = 0.f, second = 0.f;
#pragma unroll
        for (int part = 0; part < KEY_WARPS; part++)
            most = fmaxf(most, parts[(part * QUERIES + row) * PART_STRIDE + VALUE_PAIRS * 16]);
#pragma unroll
        for (int part = 0; part < KEY_WARPS; part++) {
            const float *of = parts + (part * QUERIES + row) * PART_STRIDE;
            float weight = exp2f(of[VALUE_PAIRS * 16] - most);
            whole += of[VALUE_PAIRS * 16 + 1] * weight;
            first += of[column] * weight;
            second += of[column + 1] * weight;
        }
        store(output + (first_query + row) * p.output.sequence, column, first / whole, second / whole);
    }
#endif
}
