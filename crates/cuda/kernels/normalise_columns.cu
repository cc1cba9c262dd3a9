// Every channel of every channels-last image brought to mean 0 and variance 1, then scaled and shifted: a block
// normalises COLUMNS groups of WIDTH neighbouring channels, and LANES threads share each group's positions, which are
// read three times. The host defines STORAGE, PARAMETER (the type of scale and bias) and WIDTH.

#define THREADS 256
#define COLUMNS 8
#define LANES (THREADS / COLUMNS)

struct Images {
    u32 positions, channels;
    float epsilon;
};

typedef float Lanes[LANES][COLUMNS * WIDTH];

// The sum over all lanes, in every one of them.
DEVICE void sum_lanes(Lanes &of_lane, float (&sums)[WIDTH], u32 lane, u32 column) {
    __syncthreads();
#pragma unroll
    for (int j = 0; j < WIDTH; j++) of_lane[lane][column * WIDTH + j] = sums[j];
    __syncthreads();
    for (int half = LANES / 2; half > 0; half /= 2) {
        for (int i = threadIdx.x; i < half * COLUMNS * WIDTH; i += THREADS) {
            int at = i / (COLUMNS * WIDTH), place = i % (COLUMNS * WIDTH);
            of_lane[at][place] += of_lane[at + half][place];
        }
        __syncthreads();
    }
#pragma unroll
    for (int j = 0; j < WIDTH; j++) sums[j] = of_lane[0][column * WIDTH + j];
}

KERNEL_OF(THREADS, normalise_columns)(const STORAGE *from, const PARAMETER *scale, const PARAMETER *bias, STORAGE *to, Images shape) {
    typedef Vector<STORAGE, WIDTH> Elements;
    __shared__ Lanes of_lane;
    u32 groups = shape.channels / WIDTH;
    u32 tiles = (groups + COLUMNS - 1) / COLUMNS;
    u32 column = threadIdx.x % COLUMNS, lane = threadIdx.x / COLUMNS;
    u32 group = BLOCK_X % tiles * COLUMNS + column;
    size_t start = size_t(BLOCK_X / tiles) * shape.positions * groups + group;
    // Threads past the last group have no positions, but take part in the sums.
    u32 positions = group < groups ? shape.positions : 0;
    release_successor();
    await_predecessor();
    const Elements *source = reinterpret_cast<const Elements *>(from) + start;
    Elements *target = reinterpret_cast<Elements *>(to) + start;
    float mean[WIDTH] = {};
    for (u32 i = lane; i < positions; i += LANES) {
        Elements read = source[size_t(i) * groups];
#pragma unroll
        for (int j = 0; j < WIDTH; j++) mean[j] += to_float(read.at[j]);
    }
    sum_lanes(of_lane, mean, lane, column);
#pragma unroll
    for (int j = 0; j < WIDTH; j++) mean[j] /= float(shape.positions);
    float factor[WIDTH] = {};
    for (u32 i = lane; i < positions; i += LANES) {
        Elements read = source[size_t(i) * groups];
#pragma unroll
        for (int j = 0; j < WIDTH; j++) {
            float centred = to_float(read.at[j]) - mean[j];
            factor[j] += centred * centred;
        }
    }
    sum_lanes(of_lane, factor, lane, column);
    if (positions == 0) return;
    float shift[WIDTH];
#pragma unroll
    for (int j = 0; j < WIDTH; j++) {
        float inverse = 1.f / sqrtf(factor[j] / float(shape.positions) + shape.epsilon);
        factor[j] = inverse * to_float(scale[group * WIDTH + j]);
        shift[j] = to_float(bias[group * WIDTH + j]);
    }
    for (u32 i = lane; i < positions; i += LANES) {
        Elements read = source[size_t(i) * groups];
        Elements written;
#pragma unroll
        for (int j = 0; j < WIDTH; j++)
            written.at[j] = from_float<STORAGE>((to_float(read.at[j]) - mean[j]) * factor[j] + shift[j]);
        target[size_t(i) * groups] = written;
    }
}
