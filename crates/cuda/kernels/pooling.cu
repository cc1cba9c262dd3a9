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

// Elements of a window that lie within the input and its padding.
DEVICE int taps_in_padded(int start, int padded, int kernel, int dilation) {
    int room = (padded - start + dilation - 1) / dilation;
    return room < kernel ? room : kernel;
}

KERNEL(pooling)(const STORAGE *from, STORAGE *to, Pooling shape, u32 count) {
    u32 index = blockIdx.x * blockDim.x + threadIdx.x;
    u32 image = index;
    u32 channel = take_remainder(image, shape.channels);
    int column = int(take_remainder(image, shape.columns)) * STRIDE_WIDTH;
    int row = int(take_remainder(image, shape.rows)) * STRIDE_HEIGHT;
    int slice = int(take_remainder(image, shape.slices)) * STRIDE_DEPTH;
    u32 channels = shape.channels.divisor;
    release_successor();
    await_predecessor();
    if (index >= count) return;
    const Vector<STORAGE, WIDTH> *source = reinterpret_cast<const Vector<STORAGE, WIDTH> *>(from) + channel;
    float result[WIDTH];
#pragma unroll
    for (int j = 0; j < WIDTH; j++) result[j] = MODE == MODE_MAX ? __int_as_float(0xff800000) : 0.f;
    int taken = 0;
#pragma unroll
    for (int d = 0; d < KERNEL_DEPTH; d++) {
        int z = slice + d * DILATION_DEPTH - PAD_DEPTH;
        if (u32(z) >= shape.input_slices) continue;
#pragma unroll
        for (int h = 0; h < KERNEL_HEIGHT; h++) {
            int y = row + h * DILATION_HEIGHT - PAD_HEIGHT;
            if (u32(y) >= shape.input_rows) continue;
#pragma unroll
            for (int w = 0; w < KERNEL_WIDTH; w++) {
                int x = column + w * DILATION_WIDTH - PAD_WIDTH;
                if (u32(x) >= shape.input_columns) continue;
                size_t place = ((size_t(image) * shape.input_slices + z) * shape.input_rows + y) * shape.input_columns + x;
                Vector<STORAGE, WIDTH> read = source[place * channels];
#pragma unroll
                for (int j = 0; j < WIDTH; j++) {
                    float element = to_float(read.at[j]);
                    if (MODE == MODE_MAX) result[j] = taken == 0 || element > result[j] ? element : result[j];
                    else result[j] += element;
                }
                taken++;
            }
        }
    }
    if (MODE == MODE_AVERAGE_WITH_PADDING)
        taken = taps_in_padded(column, PAD_WIDTH + int(shape.input_columns) + PADDED_WIDTH, KERNEL_WIDTH, DILATION_WIDTH) *
                taps_in_padded(row, PAD_HEIGHT + int(shape.input_rows) + PADDED_HEIGHT, KERNEL_HEIGHT, DILATION_HEIGHT) *
                taps_in_padded(slice, PAD_DEPTH + int(shape.input_slices) + PADDED_DEPTH, KERNEL_DEPTH, DILATION_DEPTH);
    Vector<STORAGE, WIDTH> written;
#pragma unroll
    for (int j = 0; j < WIDTH; j++) written.at[j] = from_float<STORAGE>(MODE == MODE_MAX ? result[j] : result[j] / float(taken));
    reinterpret_cast<Vector<STORAGE, WIDTH> *>(to)[index] = written;
}
