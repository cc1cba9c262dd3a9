// Depthwise convolution of channels-last images: every channel has one filter of its own.
//
// A thread computes VECTOR neighbouring channels of OUTPUTS neighbouring pixels of one row, and keeps what it has read of
// an input row for all of them.
//
// Parameters: STORAGE, VECTOR, OUTPUTS, KERNEL_Y, KERNEL_X, STRIDE_Y, STRIDE_X, DILATION_Y, DILATION_X, ACTIVATION,
// HAS_BIAS, HAS_RESIDUAL.

struct Problem {
    // Pieces of VECTOR channels, of OUTPUTS pixels, and rows: what a thread's number is made of.
    Divider by_channel_pieces, by_row_pieces, by_output_height;
    int images, height, width, channels, output_width;
    int pad_y, pad_x;
    ActivationParameters activation;
};

typedef Vector<STORAGE, VECTOR> Piece;
constexpr int INPUTS = (OUTPUTS - 1) * STRIDE_X + (KERNEL_X - 1) * DILATION_X + 1;

KERNEL(depthwise)(CONSTANT(Problem) p, const STORAGE *input,
                  const STORAGE *__restrict__ filters, const float *__restrict__ bias,
                  const STORAGE *residual, STORAGE *__restrict__ output) {
    release_successor();
    u32 number = blockIdx.x * blockDim.x + threadIdx.x;
    int channel = take_remainder(number, p.by_channel_pieces) * VECTOR;
    int first_x = take_remainder(number, p.by_row_pieces) * OUTPUTS;
    int y = take_remainder(number, p.by_output_height);
    int image = number;

    float sums[OUTPUTS][VECTOR];
#pragma unroll
    for (int e = 0; e < VECTOR; e++) {
        float start = 0.f;
#if HAS_BIAS
        if (image < p.images) start = bias[channel + e];
#endif
#pragma unroll
        for (int o = 0; o < OUTPUTS; o++) sums[o][e] = start;
    }
    await_predecessor();
    if (image >= p.images) return;

    int input_x = first_x * STRIDE_X - p.pad_x;
#pragma unroll
    for (int ky = 0; ky < KERNEL_Y; ky++) {
        int input_y = y * STRIDE_Y - p.pad_y + ky * DILATION_Y;
        if ((u32)input_y >= (u32)p.height) continue;
        const STORAGE *row = input + ((i64)(image * p.height + input_y) * p.width) * p.channels + channel;
        Piece pixels[INPUTS];
#pragma unroll
        for (int i = 0; i < INPUTS; i++) {
            bool is_inside = (u32)(input_x + i) < (u32)p.width;
#pragma unroll
            for (int e = 0; e < VECTOR; e++) pixels[i].at[e] = from_float<STORAGE>(0.f);
            if (is_inside) pixels[i] = *(const Piece *)(row + (i64)(input_x + i) * p.channels);
        }
#pragma unroll
        for (int kx = 0; kx < KERNEL_X; kx++) {
            Piece filter = *(const Piece *)(filters + (ky * KERNEL_X + kx) * p.channels + channel);
#pragma unroll
            for (int o = 0; o < OUTPUTS; o++)
#pragma unroll
                for (int e = 0; e < VECTOR; e++)
                    sums[o][e] += to_float(pixels[o * STRIDE_X + kx * DILATION_X].at[e]) * to_float(filter.at[e]);
        }
    }

    i64 first = ((i64)(image * (int)p.by_output_height.divisor + y) * p.output_width + first_x) * p.channels + channel;
#pragma unroll
    for (int o = 0; o < OUTPUTS; o++) {
        if (first_x + o >= p.output_width) break;
        i64 at = first + (i64)o * p.channels;
#if HAS_RESIDUAL
        Piece added = *(const Piece *)(residual + at);
#pragma unroll
        for (int e = 0; e < VECTOR; e++) sums[o][e] += to_float(added.at[e]);
#endif
        Piece stored;
#pragma unroll
        for (int e = 0; e < VECTOR; e++) stored.at[e] = from_float<STORAGE>(activate<ACTIVATION>(sums[o][e], p.activation));
        *(Piece *)(output + at) = stored;
    }
}
