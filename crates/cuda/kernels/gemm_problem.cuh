// A product as its kernels are given it.

struct Problem {
    int m, n, k;
    int left_stride, right_stride, output_stride;
    int height, width;
    int stride_y, stride_x, pad_y, pad_x, dilation_y, dilation_x;
    Divider by_output_width, by_output_area, by_channels;
    int steps, steps_per_split;
    i64 left_step, right_step, output_step;
    ActivationParameters activation;
};

// One product's operands; those that are absent are null.
struct Operands {
    struct {
        At<const STORAGE> left, right;
        At<const BIAS> bias;
        At<const STORAGE> residual;
        At<STORAGE> output;
    } of[GROUP];
};
