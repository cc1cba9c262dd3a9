// Windows over up to three spatial axes of channels-last images, each reduced to one element per channel. A thread
// reduces WIDTH neighbouring channels. The host defines the window: for axis A of DEPTH, HEIGHT and WIDTH its
// KERNEL_A, STRIDE_A, DILATION_A, PAD_A (before the first element) and PADDED_A (after the last), MODE and STORAGE.

#define MODE_MAX 0
#define MODE_AVERAGE 1
#define MODE_AVERAGE_WITH_PADDING 2

struct Pooling {
    // The output, the innermost axis first; channels count in groups of WIDTH.
    Divider channels, columns, rows, slices;
    u32 input_slices, input_rows, input_columns;
};

typedef Packed<STORAGE, WIDTH> Piece;

// What elements of a window have become so far. Those that lie outside of the input are NONE.
#if MODE == MODE_MAX
#define NONE __int_as_float(0xff800000)
struct Partial {
    Piece greatest;
    DEVICE Partial() { greatest.fill(NONE); }
    DEVICE void take(const Piece &read) { greatest.raise(read); }
    DEVICE void store(STORAGE *to, int) const { greatest.store(to); }
};
#else
#define NONE 0.f
struct Partial {
    float sums[WIDTH] = {};
    DEVICE void take(const Piece &read) {
        float elements[WIDTH];
        read.to_floats(elements);
#pragma unroll
        for (int j = 0; j < WIDTH; j++) sums[j] += elements[j];
    }
    DEVICE void store(STORAGE *to, int taps) const {
        Vector<STORAGE, WIDTH> means;
#pragma unroll
        for (int j = 0; j < WIDTH; j++) means.at[j] = from_float<STORAGE>(sums[j] / float(taps));
        *(Vector<STORAGE, WIDTH> *)to = means;
    }
};
#endif

// Elements of a window from `start` on that lie before `end`.
DEVICE int taps_before(int start, int end, int kernel, int dilation) {
    int room = (end - start + dilation - 1) / dilation;
    return room < 0 ? 0 : room < kernel ? room : kernel;
}
// Elements of a window along one axis that count. It starts at `start`, which is negative in the padding.
DEVICE int taps(int start, int input, int padded, int kernel, int dilation) {
    if (MODE == MODE_AVERAGE_WITH_PADDING) return taps_before(start, input + padded, kernel, dilation);
    return taps_before(start, input, kernel, dilation) - taps_before(start, 0, kernel, dilation);
}

KERNEL(pooling)(const STORAGE *from, STORAGE *to, Pooling shape, u32 count) {
    u32 index = BLOCK_X * BLOCK_THREADS + threadIdx.x;
    u32 image = index;
    u32 channel = take_remainder(image, shape.channels);
    int first_x = int(take_remainder(image, shape.columns)) * STRIDE_WIDTH - PAD_WIDTH;
    int first_y = int(take_remainder(image, shape.rows)) * STRIDE_HEIGHT - PAD_HEIGHT;
    int first_z = int(take_remainder(image, shape.slices)) * STRIDE_DEPTH - PAD_DEPTH;
    u32 channels = shape.channels.divisor;
    release_successor();
    await_predecessor();
    if (index >= count) return;
    Partial partial;
#pragma unroll
    for (int d = 0; d < KERNEL_DEPTH; d++) {
        int z = first_z + d * DILATION_DEPTH;
        if (u32(z) >= shape.input_slices) continue;
#pragma unroll
        for (int h = 0; h < KERNEL_HEIGHT; h++) {
            int y = first_y + h * DILATION_HEIGHT;
#pragma unroll
            for (int w = 0; w < KERNEL_WIDTH; w++) {
                int x = first_x + w * DILATION_WIDTH;
                // Without branches, so that all of a window is asked for before any of it is there.
                bool is_inside = u32(y) < shape.input_rows && u32(x) < shape.input_columns;
                size_t place = ((size_t(image) * shape.input_slices + z) * shape.input_rows + y) * shape.input_columns + x;
                Piece read;
                read.fill(NONE);
                if (is_inside) read.load(from + (place * channels + channel) * WIDTH);
                partial.take(read);
            }
        }
    }
    int counted = taps(first_x, shape.input_columns, PADDED_WIDTH, KERNEL_WIDTH, DILATION_WIDTH) *
                  taps(first_y, shape.input_rows, PADDED_HEIGHT, KERNEL_HEIGHT, DILATION_HEIGHT) *
                  taps(first_z, shape.input_slices, PADDED_DEPTH, KERNEL_DEPTH, DILATION_DEPTH);
    partial.store(to + size_t(index) * WIDTH, counted);
}
