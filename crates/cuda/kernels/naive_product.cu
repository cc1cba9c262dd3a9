// Matrix products and convolutions, one output per thread and one term after the other, summed in double precision: what
// the fast kernels are held to.
//
// Parameters:
//   STORAGE, BIAS, ACTIVATION, GROUP, RIGHT_BY_ROWS, CONVOLUTION    as for `gemm.cu`
//
// All else is told when it is launched, so that few variants serve all products. `kernel_x` is the width of the filters.

KERNEL(naive_product)(CONSTANT(Problem) p, CONSTANT(Operands) operands, int kernel_x) {
    i64 at = (i64)BLOCK_X * BLOCK_THREADS + threadIdx.x;
    int group = GROUP > 1 ? BLOCK_Z : 0, stacked = GROUP > 1 ? 0 : BLOCK_Z;
    release_successor();
    await_predecessor();
    if (at >= (i64)p.m * p.n) return;
    int m = (int)(at / p.n), n = (int)(at % p.n);
    const STORAGE *left = FOUND(operands.of[group].left) + stacked * p.left_step;
    const STORAGE *right = FOUND(operands.of[group].right) + stacked * p.right_step;
#if CONVOLUTION
    int output_width = (int)p.by_output_width.divisor, output_area = (int)p.by_output_area.divisor;
    int channels = (int)p.by_channels.divisor, image = m / output_area, pixel = m % output_area;
    int first_y = pixel / output_width * p.stride_y - p.pad_y, first_x = pixel % output_width * p.stride_x - p.pad_x;
#endif
    double sum = 0;
    for (int k = 0; k < p.k; k++) {
#if CONVOLUTION
        int tap = k / channels, channel = k % channels;
        int y = first_y + tap / kernel_x * p.dilation_y, x = first_x + tap % kernel_x * p.dilation_x;
        bool is_inside = y >= 0 && y < p.height && x >= 0 && x < p.width;
        i64 place = (((i64)image * p.height + y) * p.width + x) * channels + channel;
        float factor = is_inside ? to_float(left[place]) : 0.f;
#else
        float factor = to_float(left[(i64)m * p.left_stride + k]);
#endif
        i64 other = RIGHT_BY_ROWS ? (i64)k * p.right_stride + n : (i64)n * p.right_stride + k;
        sum += (double)factor * (double)to_float(right[other]);
    }
    const BIAS *bias = FOUND(operands.of[group].bias);
    if (bias) sum += (double)to_float(bias[n]);
    i64 place = (i64)m * p.output_stride + n;
    const STORAGE *residual = FOUND(operands.of[group].residual);
    if (residual) sum += (double)to_float(residual[stacked * p.output_step + place]);
    float result = activate<ACTIVATION>((float)sum, p.activation);
    FOUND(operands.of[group].output)[stacked * p.output_step + place] = from_float<STORAGE>(result);
}
