// Recurrent layers in two launches: the input's share of every gate at every step, and then the walk over the steps, in
// which a block carries one sequence of one direction.
//
// The host defines STORAGE, CELL, HIDDEN and LINEAR_BEFORE_RESET (of a GRU). Weights are [direction][input][row] and
// [direction][hidden][row], rows being the gates' units, one gate after the other; biases are floats.

#define CELL_RNN 0
#define CELL_GRU 1
#define CELL_LSTM 2

#define GATES (CELL == CELL_LSTM ? 4 : (CELL == CELL_GRU ? 3 : 1))
#define ROWS (GATES * HIDDEN)

// Steps whose sums one thread computes.
#define TOKENS 4

// tokens x [directions, rows] of the inputs' share, with its bias.
KERNEL(recurrent_project)(const STORAGE *input, const STORAGE *__restrict__ weights,
                          const float *__restrict__ bias, float *projected, u32 directions, u32 tokens,
                          u32 features) {
    u32 index = BLOCK_X * BLOCK_THREADS + threadIdx.x;
    u32 row = index % ROWS;
    u32 direction = index / ROWS % directions;
    u32 first = index / ROWS / directions * TOKENS;
    release_successor();
    await_predecessor();
    if (first >= tokens) return;
    const STORAGE *of_row = weights + size_t(direction) * features * ROWS + row;
    float sums[TOKENS] = {};
    for (u32 feature = 0; feature < features; feature++) {
        float weight = to_float(of_row[size_t(feature) * ROWS]);
#pragma unroll
        for (int i = 0; i < TOKENS; i++)
            if (first + i < tokens) sums[i] += weight * to_float(input[size_t(first + i) * features + feature]);
    }
    float start = bias ? bias[direction * 2 * ROWS + row] : 0.f;
#pragma unroll
    for (int i = 0; i < TOKENS; i++)
        if (first + i < tokens) projected[(size_t(first + i) * directions + direction) * ROWS + row] = sums[i] + start;
}

// Where things lie: distances between steps, sequences and directions, in states of HIDDEN elements.
struct Walk {
    u32 steps, sequences, directions;
    // Directions from this one on walk from the end.
    u32 first_reversed;
    u32 token_step, token_sequence;
    u32 all_step, all_sequence, all_direction;
    u32 state_sequence, state_direction;
};

DEVICE float sigmoid(float x) { return 1.f / (1.f + expf(-x)); }

// COUNT gates of one unit, from gate FIRST on, recurring on a hidden state.
template <int FIRST, int COUNT>
DEVICE void recur(float (&sums)[COUNT], const float *hidden, const STORAGE *weights, const float *bias, u32 unit) {
#pragma unroll
    for (int gate = 0; gate < COUNT; gate++) sums[gate] = bias ? bias[(FIRST + gate) * HIDDEN + unit] : 0.f;
#pragma unroll 4
    for (int k = 0; k < HIDDEN; k++) {
#pragma unroll
        for (int gate = 0; gate < COUNT; gate++)
            sums[gate] += hidden[k] * to_float(weights[size_t(k) * ROWS + (FIRST + gate) * HIDDEN + unit]);
    }
}

KERNEL(recurrent_walk)(const float *projected, const STORAGE *__restrict__ recurrence,
                       const float *__restrict__ bias, const int *lengths, const STORAGE *first_hidden,
                       const STORAGE *first_cell, STORAGE *all, STORAGE *last_hidden,
                       STORAGE *last_cell, Walk walk, Fault fault) {
    // Two states, of which one is read while the other is written.
    __shared__ float hidden[2][HIDDEN];
    __shared__ float cell[HIDDEN];
#if CELL == CELL_GRU && !LINEAR_BEFORE_RESET
    __shared__ float kept[HIDDEN];
#endif
    u32 direction = BLOCK_X / walk.sequences, sequence = BLOCK_X % walk.sequences;
    const STORAGE *weights = recurrence + size_t(direction) * HIDDEN * ROWS;
    const float *own_bias = bias ? bias + (direction * 2 + 1) * ROWS : nullptr;
    size_t state = (size_t(direction) * walk.state_direction + size_t(sequence) * walk.state_sequence) * HIDDEN;
    release_successor();
    await_predecessor();
    u32 length = walk.steps;
    if (lengths) {
        int given = lengths[sequence];
        if (given < 0 || u32(given) > walk.steps) {
            if (threadIdx.x == 0) report_fault(fault);
            given = 0;
        }
        length = given;
    }
    for (u32 unit = threadIdx.x; unit < HIDDEN; unit += BLOCK_THREADS) {
        hidden[0][unit] = first_hidden ? to_float(first_hidden[state + unit]) : 0.f;
        cell[unit] = first_cell ? to_float(first_cell[state + unit]) : 0.f;
    }
    __syncthreads();
    for (u32 index = 0; index < length; index++) {
        u32 time = direction >= walk.first_reversed ? length - 1 - index : index;
        size_t token = size_t(time) * walk.token_step + size_t(sequence) * walk.token_sequence;
        const float *share = projected + (token * walk.directions + direction) * ROWS;
        const float *before = hidden[index % 2];
        float *after = hidden[(index + 1) % 2];
#if CELL == CELL_GRU && !LINEAR_BEFORE_RESET
        for (u32 unit = threadIdx.x; unit < HIDDEN; unit += BLOCK_THREADS) {
            float reset[1];
            recur<1, 1>(reset, before, weights, own_bias, unit);
            kept[unit] = before[unit] * sigmoid(share[HIDDEN + unit] + reset[0]);
        }
        __syncthreads();
#endif
        for (u32 unit = threadIdx.x; unit < HIDDEN; unit += BLOCK_THREADS) {
            float next;
#if CELL == CELL_LSTM
            // The gates are input, output, forget and cell.
            float sums[4];
            recur<0, 4>(sums, before, weights, own_bias, unit);
            float written = sigmoid(share[unit] + sums[0]) * tanhf(share[3 * HIDDEN + unit] + sums[3]);
            float value = sigmoid(share[2 * HIDDEN + unit] + sums[2]) * cell[unit] + written;
            cell[unit] = value;
            next = sigmoid(share[HIDDEN + unit] + sums[1]) * tanhf(value);
#elif CELL == CELL_GRU
            // The gates are update, reset and hidden.
            float candidate;
#if LINEAR_BEFORE_RESET
            float sums[3];
            recur<0, 3>(sums, before, weights, own_bias, unit);
            candidate = sigmoid(share[HIDDEN + unit] + sums[1]) * sums[2];
#else
            float sums[1], of_hidden[1];
            recur<0, 1>(sums, before, weights, own_bias, unit);
            recur<2, 1>(of_hidden, kept, weights, own_bias, unit);
            candidate = of_hidden[0];
#endif
            candidate = tanhf(share[2 * HIDDEN + unit] + candidate);
            float update = sigmoid(share[unit] + sums[0]);
            next = (1.f - update) * candidate + update * before[unit];
#else
            float sums[1];
            recur<0, 1>(sums, before, weights, own_bias, unit);
            next = tanhf(share[unit] + sums[0]);
#endif
            after[unit] = next;
            if (all) {
                size_t to = size_t(time) * walk.all_step + size_t(sequence) * walk.all_sequence +
                            size_t(direction) * walk.all_direction;
                all[to * HIDDEN + unit] = from_float<STORAGE>(next);
            }
        }
        __syncthreads();
    }
    const float *end = hidden[length % 2];
    for (u32 unit = threadIdx.x; unit < HIDDEN; unit += BLOCK_THREADS) {
        if (last_hidden) last_hidden[state + unit] = from_float<STORAGE>(end[unit]);
        if (last_cell) last_cell[state + unit] = from_float<STORAGE>(cell[unit]);
        if (all) {
            for (u32 time = length; time < walk.steps; time++) {
                size_t to = size_t(time) * walk.all_step + size_t(sequence) * walk.all_sequence +
                            size_t(direction) * walk.all_direction;
                all[to * HIDDEN + unit] = from_float<STORAGE>(0.f);
            }
        }
    }
}
