// Depthwise convolution of channels-last images: every channel has one filter of its own.
//
// A thread computes VECTOR neighbouring channels of a tile of ROWS x COLUMNS pixels. It goes through the rows of the input
// that the tile's windows cover, and adds each to the sums of all rows of the tile that it belongs to.
//
// Parameters: STORAGE, VECTOR, ROWS, COLUMNS, KERNEL_Y, KERNEL_X, STRIDE_Y, STRIDE_X, DILATION_Y, DILATION_X, ACTIVATION,
// HAS_BIAS, HAS_RESIDUAL.

struct Problem {
    // Pieces of VECTOR channels, and tiles along columns and rows: what a thread's number is made of.
    Divider by_channel_pieces, by_tile_columns, by_tile_rows;
    int images, height, width, channels, output_height, output_width;
    int pad_y, pad_x;
    ActivationParameters activation;
};

typedef Packed<STORAGE, VECTOR> Piece;
// What the windows of a tile cover.
constexpr int INPUT_ROWS = (ROWS - 1) * STRIDE_Y + (KERNEL_Y - 1) * DILATION_Y + 1;
constexpr int INPUT_COLUMNS = (COLUMNS - 1) * STRIDE_X + (KERNEL_X - 1) * DILATION_X + 1;

KERNEL(depthwise)(CONSTANT(Problem) p, const STORAGE *input,
                  const STORAGE *__restrict__ filters, const float *__restrict__ bias,
                  const STORAGE *residual, STORAGE *__restrict__ output) {
    release_successor();
    u32 number = BLOCK_X * BLOCK_THREADS + threadIdx.x;
    int channel = take_remainder(number, p.by_channel_pieces) * VECTOR;
    int first_x = take_remainder(number, p.by_tile_columns) * COLUMNS;
    int first_y = take_remainder(number, p.by_tile_rows) * ROWS;
    int image = number;

    float start[VECTOR] = {};
#if HAS_BIAS
#pragma unroll
    for (int e = 0; e < VECTOR; e++)
        if (image < p.images) start[e] = bias[channel + e];
#endif
    float sums[ROWS][COLUMNS][VECTOR];
#pragma unroll
    for (int r = 0; r < ROWS; r++)
#pragma unroll
        for (int c = 0; c < COLUMNS; c++)
#pragma unroll
            for (int e = 0; e < VECTOR; e++) sums[r][c][e] = start[e];
    await_predecessor();
    if (image >= p.images) return;

    int input_x = first_x * STRIDE_X - p.pad_x, input_y = first_y * STRIDE_Y - p.pad_y;
    // Elements are counted in 32 bits, which takes fewer instructions than addresses; the host sees to it that they fit.
    int corner = ((image * p.height + input_y) * p.width + input_x) * p.channels + channel;
#pragma unroll
    for (int i = 0; i < INPUT_ROWS; i++) {
        bool has_row = (u32)(input_y + i) < (u32)p.height;
        float pixels[INPUT_COLUMNS][VECTOR];
#pragma unroll
        for (int j = 0; j < INPUT_COLUMNS; j++) {
            Piece read;
            read.fill(0.f);
            bool is_inside = has_row && (u32)(input_x + j) < (u32)p.width;
            if (is_inside) read.load(input + (corner + (i * p.width + j) * p.channels));
            read.to_floats(pixels[j]);
        }
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            int tap = i - r * STRIDE_Y;
            if (tap < 0 || tap % DILATION_Y != 0 || tap / DILATION_Y >= KERNEL_Y) continue;
            int ky = tap / DILATION_Y;
#pragma unroll
            for (int kx = 0; kx < KERNEL_X; kx++) {
                Piece read;
                read.load(filters + (ky * KERNEL_X + kx) * p.channels + channel);
                float filter[VECTOR];
                read.to_floats(filter);
#pragma unroll
                for (int c = 0; c < COLUMNS; c++)
#pragma unroll
                    for (int e = 0; e < VECTOR; e++)
                        sums[r][c][e] += pixels[c * STRIDE_X + kx * DILATION_X][e] * filter[e];
            }
            if (ky + 1 < KERNEL_Y || first_y + r >= p.output_height) continue;

            int first = ((image * p.output_height + first_y + r) * p.output_width + first_x) * p.channels + channel;
#pragma unroll
            for (int c = 0; c < COLUMNS; c++) {
                if (first_x + c >= p.output_width) break;
                int at = first + c * p.channels;
#if HAS_RESIDUAL
                Piece read;
                read.load(residual + at);
                float added[VECTOR];
                read.to_floats(added);
#pragma unroll
                for (int e = 0; e < VECTOR; e++) sums[r][c][e] += added[e];
#endif
                Vector<STORAGE, VECTOR> stored;
#pragma unroll
                for (int e = 0; e < VECTOR; e++)
                    stored.at[e] = from_float<STORAGE>(activate<ACTIVATION>(sums[r][c][e], p.activation));
                *(Vector<STORAGE, VECTOR> *)(output + at) = stored;
            }
        }
    }
}
