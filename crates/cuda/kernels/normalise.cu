// Rows brought to mean 0 and variance 1, or divided by their root mean square, then scaled and shifted.
//
// The host defines STORAGE, PARAMETER (the type of scale and bias), ARE_WEIGHTS (no kernel writes them), RMS, HAS_BIAS
// and PER_CHANNEL (0 or 1), WIDTH (neighbours read at once) and what each kernel lists. With PER_CHANNEL, row `r` is group `r % groups` of an image,
// whose channels lie one after the other, `per_channel` elements each; otherwise scale and bias are as long as a row.

struct Normalisation {
    u32 rows, columns;
    float epsilon;
    // With PER_CHANNEL: the groups of an image, the channels of a group that have parameters of their own, and the
    // elements that share one parameter.
    u32 groups, channels;
    Divider per_channel;
};

// Scale and bias of COUNT neighbours.
template <int COUNT> struct Affine {
    float scale[COUNT], bias[COUNT];
};

template <int COUNT>
DEVICE Affine<COUNT> affine_of(const PARAMETER *scale, const PARAMETER *bias, Normalisation shape, u32 row, u32 column) {
    Affine<COUNT> result;
    if constexpr (PER_CHANNEL) {
        u32 first = row % shape.groups * shape.channels;
#pragma unroll
        for (int j = 0; j < COUNT; j++) {
            u32 place = first + divided(column + j, shape.per_channel);
            result.scale[j] = to_float(scale[place]);
            result.bias[j] = HAS_BIAS ? to_float(bias[place]) : 0.f;
        }
    } else {
        Vector<PARAMETER, COUNT> scales = *reinterpret_cast<const Vector<PARAMETER, COUNT> *>(scale + column);
        Vector<PARAMETER, COUNT> biases = scales;
        if (HAS_BIAS) biases = *reinterpret_cast<const Vector<PARAMETER, COUNT> *>(bias + column);
#pragma unroll
        for (int j = 0; j < COUNT; j++) {
            result.scale[j] = to_float(scales.at[j]);
            result.bias[j] = HAS_BIAS ? to_float(biases.at[j]) : 0.f;
        }
    }
    return result;
}

template <int COUNT>
DEVICE void write(const float (&x)[COUNT], STORAGE *target, const Affine<COUNT> &affine, float mean, float inverse) {
    Vector<STORAGE, COUNT> written;
#pragma unroll
    for (int j = 0; j < COUNT; j++)
        written.at[j] = from_float<STORAGE>((x[j] - mean) * inverse * affine.scale[j] + affine.bias[j]);
    *reinterpret_cast<Vector<STORAGE, COUNT> *>(target) = written;
}

template <int COUNT> DEVICE void read(float (&x)[COUNT], const STORAGE *from) {
    Vector<STORAGE, COUNT> elements = *reinterpret_cast<const Vector<STORAGE, COUNT> *>(from);
#pragma unroll
    for (int j = 0; j < COUNT; j++) x[j] = to_float(elements.at[j]);
}

DEVICE float squared(float x) { return x * x; }

// A warp per row, which it keeps in registers: VECTORS vectors per thread.
#ifdef VECTORS
KERNEL(normalise_warp)(const STORAGE *from, const PARAMETER *scale, const PARAMETER *bias, STORAGE *to,
                       Normalisation shape) {
    u32 row = (BLOCK_X * BLOCK_THREADS + threadIdx.x) / 32;
    u32 lane = threadIdx.x % 32;
    release_successor();
    // Weights are read while the predecessor still runs, as far as there are registers for them.
    constexpr bool is_early = ARE_WEIGHTS && VECTORS * WIDTH <= 32;
    Affine<WIDTH> affine[is_early ? VECTORS : 1];
    if constexpr (is_early) {
#pragma unroll
        for (int i = 0; i < VECTORS; i++) {
            u32 column = (i * 32 + lane) * WIDTH;
            if (column < shape.columns) affine[i] = affine_of<WIDTH>(scale, bias, shape, row, column);
        }
    }
    await_predecessor();
    if (row >= shape.rows) return;
    size_t start = size_t(row) * shape.columns;
    float x[VECTORS][WIDTH];
    float sum = 0.f;
#pragma unroll
    for (int i = 0; i < VECTORS; i++) {
        u32 column = (i * 32 + lane) * WIDTH;
        if (column < shape.columns) {
            read<WIDTH>(x[i], from + start + column);
#pragma unroll
            for (int j = 0; j < WIDTH; j++) sum += x[i][j];
        }
    }
    float mean = RMS ? 0.f : warp_sum(sum) / float(shape.columns);
    float squares = 0.f;
#pragma unroll
    for (int i = 0; i < VECTORS; i++) {
        if ((i * 32 + lane) * WIDTH < shape.columns) {
#pragma unroll
            for (int j = 0; j < WIDTH; j++) squares += squared(x[i][j] - mean);
        }
    }
    float inverse = 1.f / sqrtf(warp_sum(squares) / float(shape.columns) + shape.epsilon);
#pragma unroll
    for (int i = 0; i < VECTORS; i++) {
        u32 column = (i * 32 + lane) * WIDTH;
        if (column < shape.columns) {
            if constexpr (!is_early) affine[0] = affine_of<WIDTH>(scale, bias, shape, row, column);
            write<WIDTH>(x[i], to + start + column, affine[is_early ? i : 0], mean, inverse);
        }
    }
}
#endif

// A block per row, which is read three times.
#ifdef THREADS
KERNEL_OF(THREADS, normalise_block)(const STORAGE *from, const PARAMETER *scale, const PARAMETER *bias, STORAGE *to, Normalisation shape) {
    constexpr int warps = THREADS / 32;
    __shared__ float of_warp[2][warps];
    u32 row = BLOCK_X;
    size_t start = size_t(row) * shape.columns;
    release_successor();
    await_predecessor();
    float mean = 0.f;
    if (!RMS) {
        float sum = 0.f;
        for (u32 column = threadIdx.x * WIDTH; column < shape.columns; column += THREADS * WIDTH) {
            float x[WIDTH];
            read<WIDTH>(x, from + start + column);
#pragma unroll
            for (int j = 0; j < WIDTH; j++) sum += x[j];
        }
        mean = block_sum<warps>(sum, of_warp[0]) / float(shape.columns);
    }
    float squares = 0.f;
    for (u32 column = threadIdx.x * WIDTH; column < shape.columns; column += THREADS * WIDTH) {
        float x[WIDTH];
        read<WIDTH>(x, from + start + column);
#pragma unroll
        for (int j = 0; j < WIDTH; j++) squares += squared(x[j] - mean);
    }
    float inverse = 1.f / sqrtf(block_sum<warps>(squares, of_warp[1]) / float(shape.columns) + shape.epsilon);
    for (u32 column = threadIdx.x * WIDTH; column < shape.columns; column += THREADS * WIDTH) {
        float x[WIDTH];
        read<WIDTH>(x, from + start + column);
        Affine<WIDTH> affine = affine_of<WIDTH>(scale, bias, shape, row, column);
        write<WIDTH>(x, to + start + column, affine, mean, inverse);
    }
}
#endif
