// One function of all elements along an axis: [outer, along, inner] becomes [outer, inner].
//
// The host defines FROM and TO (storage types), NUMBER (what is accumulated), PREPARE, COMBINE and FINISH (the
// function), WIDTH (neighbours that one thread reads at once) and THREADS (of a block). Where one block is too slow for a result, `splits`
// blocks share it: each stores a partial result, and the last to arrive combines them, always in the same order.

#define PREPARE_NONE 0
#define PREPARE_MAGNITUDE 1
#define PREPARE_SQUARE 2

#define COMBINE_SUM 0
#define COMBINE_PRODUCT 1
#define COMBINE_MAX 2
#define COMBINE_MIN 3
#define COMBINE_LOG_SUM_EXP 4

#define FINISH_NONE 0
#define FINISH_MEAN 1
#define FINISH_SQUARE_ROOT 2
#define FINISH_LOGARITHM 3

#define WARPS (THREADS / 32)

// What is known after some elements. A sum of exponentials is kept relative to the largest of them.
struct State {
    NUMBER value;
#if COMBINE == COMBINE_LOG_SUM_EXP
    float sum;
#endif
};

template <typename T> DEVICE NUMBER number(T x) {
    if constexpr (IsFloat<T>::value) return to_float(x);
    else return (NUMBER)x;
}

DEVICE NUMBER prepared(NUMBER x) {
    if constexpr (PREPARE == PREPARE_MAGNITUDE) return magnitude_of(x);
    if constexpr (PREPARE == PREPARE_SQUARE) return product(x, x);
    return x;
}

template <typename T> DEVICE State state_of(T x) {
#if COMBINE == COMBINE_LOG_SUM_EXP
    return {number(x), 1.f};
#else
    return {prepared(number(x))};
#endif
}

DEVICE State combined(State a, State b) {
#if COMBINE == COMBINE_LOG_SUM_EXP
    float peak = greatest(a.value, b.value);
    // Equal peaks may be infinite, and their difference no number.
    float first = a.value == peak ? a.sum : a.sum * expf(a.value - peak);
    float second = b.value == peak ? b.sum : b.sum * expf(b.value - peak);
    return {peak, first + second};
#else
    if constexpr (COMBINE == COMBINE_SUM) return {sum(a.value, b.value)};
    if constexpr (COMBINE == COMBINE_PRODUCT) return {product(a.value, b.value)};
    if constexpr (COMBINE == COMBINE_MAX) return {greatest(a.value, b.value)};
    return {least(a.value, b.value)};
#endif
}

DEVICE TO finished(State state, float count) {
#if COMBINE == COMBINE_LOG_SUM_EXP
    return converted<TO>(logf(state.sum) + state.value);
#else
    if constexpr (FINISH == FINISH_MEAN) return converted<TO>(state.value / count);
    else if constexpr (FINISH == FINISH_SQUARE_ROOT) return converted<TO>(sqrtf(state.value));
    else if constexpr (FINISH == FINISH_LOGARITHM) return converted<TO>(logf(state.value));
    else return converted<TO>(state.value);
#endif
}

DEVICE State shuffled(State state, int distance) {
    State other;
    other.value = __shfl_xor_sync(0xffffffffu, state.value, distance);
#if COMBINE == COMBINE_LOG_SUM_EXP
    other.sum = __shfl_xor_sync(0xffffffffu, state.sum, distance);
#endif
    return other;
}

// A partial result of another block, past caches that may hold what was there before.
DEVICE State loaded(const State *from) {
    State state;
    state.value = __ldcg(&from->value);
#if COMBINE == COMBINE_LOG_SUM_EXP
    state.sum = __ldcg(&from->sum);
#endif
    return state;
}

// True in every thread of the block that comes last of `splits`; the counter is zero again then.
DEVICE bool is_last_of(u32 splits, u32 *counter) {
    __shared__ bool is_last;
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) {
        is_last = atomicAdd(counter, 1u) == splits - 1;
        if (is_last) *counter = 0;
    }
    __syncthreads();
    __threadfence();
    return is_last;
}

struct Reduction {
    u32 outer, along, inner;
    u32 splits;
    // Elements along the axis that one block reads.
    u32 per_split;
    float count;
};

// Where `inner` is 1: rows of contiguous elements, each reduced by THREADS_PER_ROW threads (a warp or the block).
KERNEL_OF(THREADS, reduce_rows)(const FROM *from, TO *to, State *partial, u32 *counters, Reduction shape, State initial) {
    constexpr int rows_per_block = THREADS / THREADS_PER_ROW;
    __shared__ State of_warp[WARPS];
    u32 split = BLOCK_X % shape.splits;
    u32 row = BLOCK_X / shape.splits * rows_per_block + threadIdx.x / THREADS_PER_ROW;
    u32 thread = threadIdx.x % THREADS_PER_ROW;
    u32 begin = split * shape.per_split;
    u32 end = min(begin + shape.per_split, shape.along);
    release_successor();
    await_predecessor();
    State state = initial;
    if (row < shape.outer) {
        const FROM *line = from + size_t(row) * shape.along;
        for (u32 i = begin + thread * WIDTH; i < end; i += THREADS_PER_ROW * WIDTH) {
            Vector<FROM, WIDTH> read = *reinterpret_cast<const Vector<FROM, WIDTH> *>(line + i);
#pragma unroll
            for (int j = 0; j < WIDTH; j++) state = combined(state, state_of(read.at[j]));
        }
    }
#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2) state = combined(state, shuffled(state, distance));
    if (THREADS_PER_ROW > 32) {
        if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = state;
        __syncthreads();
        state = of_warp[0];
        for (int warp = 1; warp < WARPS; warp++) state = combined(state, of_warp[warp]);
        if (shape.splits > 1) {
            if (threadIdx.x == 0) partial[size_t(row) * shape.splits + split] = state;
            if (!is_last_of(shape.splits, counters + row)) return;
            // There are no more splits than a warp has threads.
            u32 lane = threadIdx.x % 32;
            state = lane < shape.splits ? loaded(partial + size_t(row) * shape.splits + lane) : initial;
#pragma unroll
            for (int distance = 16; distance > 0; distance /= 2) state = combined(state, shuffled(state, distance));
        }
    }
    if (thread == 0 && row < shape.outer) to[row] = finished(state, shape.count);
}

// Where `inner` is not 1: a block reduces COLUMNS groups of WIDTH neighbours, and LANES threads share each group.
#define COLUMNS 8
#define LANES (THREADS / COLUMNS)

typedef State Lanes[LANES][COLUMNS * WIDTH];

// Combines what all lanes hold, in halves, so that few steps follow each other; the results stand in the first lane.
DEVICE void combine_lanes(Lanes &of_lane, const State (&states)[WIDTH], u32 lane, u32 column) {
#pragma unroll
    for (int j = 0; j < WIDTH; j++) of_lane[lane][column * WIDTH + j] = states[j];
    __syncthreads();
    for (int half = LANES / 2; half > 0; half /= 2) {
        for (int i = threadIdx.x; i < half * COLUMNS * WIDTH; i += THREADS) {
            int at = i / (COLUMNS * WIDTH), result = i % (COLUMNS * WIDTH);
            of_lane[at][result] = combined(of_lane[at][result], of_lane[at + half][result]);
        }
        __syncthreads();
    }
}

KERNEL_OF(THREADS, reduce_columns)(const FROM *from, TO *to, State *partial, u32 *counters, Reduction shape, State initial) {
    __shared__ Lanes of_lane;
    u32 groups = shape.inner / WIDTH;
    u32 tiles = (groups + COLUMNS - 1) / COLUMNS;
    u32 split = BLOCK_X % shape.splits;
    u32 part = BLOCK_X / shape.splits;
    u32 outer = part / tiles;
    u32 column = threadIdx.x % COLUMNS, lane = threadIdx.x / COLUMNS;
    u32 group = part % tiles * COLUMNS + column;
    u32 begin = split * shape.per_split;
    u32 end = min(begin + shape.per_split, shape.along);
    bool is_inside = group < groups;
    release_successor();
    await_predecessor();
    State states[WIDTH];
#pragma unroll
    for (int j = 0; j < WIDTH; j++) states[j] = initial;
    if (is_inside) {
        const FROM *start = from + size_t(outer) * shape.along * shape.inner + group * WIDTH;
        // What one thread asks memory for before it waits for any of it.
        constexpr int BATCH = 8;
        for (u32 first = begin + lane; first < end; first += BATCH * LANES) {
            Vector<FROM, WIDTH> read[BATCH];
#pragma unroll
            for (int b = 0; b < BATCH; b++) {
                u32 i = first + b * LANES;
                if (i < end) read[b] = *reinterpret_cast<const Vector<FROM, WIDTH> *>(start + size_t(i) * shape.inner);
            }
#pragma unroll
            for (int b = 0; b < BATCH; b++)
                if (first + b * LANES < end)
#pragma unroll
                    for (int j = 0; j < WIDTH; j++) states[j] = combined(states[j], state_of(read[b].at[j]));
        }
    }
    combine_lanes(of_lane, states, lane, column);
    // One thread for each result.
    u32 place = part % tiles * COLUMNS * WIDTH + threadIdx.x;
    bool has_result = threadIdx.x < COLUMNS * WIDTH && place < shape.inner;
    u32 result = outer * shape.inner + place;
    if (shape.splits > 1) {
        size_t results = size_t(shape.outer) * shape.inner;
        if (has_result) partial[split * results + result] = of_lane[0][threadIdx.x];
        if (!is_last_of(shape.splits, counters + part)) return;
#pragma unroll
        for (int j = 0; j < WIDTH; j++) {
            states[j] = initial;
            const State *start = partial + size_t(outer) * shape.inner + group * WIDTH + j;
            if (is_inside)
                for (u32 i = lane; i < shape.splits; i += LANES) states[j] = combined(states[j], loaded(start + i * results));
        }
        combine_lanes(of_lane, states, lane, column);
    }
    if (has_result) to[result] = finished(of_lane[0][threadIdx.x], shape.count);
}
