// Convolution, plain or transposed, of images with up to three spatial axes and in any order, by the definition: a
// thread sums FILTERS neighbouring filters at one position of the output.
//
// The host defines STORAGE, BIAS (the type of the bias), HAS_BIAS, HAS_RESIDUAL, ACTIVATION, TRANSPOSED, FILTERS,
// CHANNELS (neighbouring channels read at once) and CHANNELS_LAST. Weights lie `weight_*` apart by group, filter,
// channel and tap; where FILTERS is not 1, neighbouring filters are neighbours in memory.

struct Axis {
    int input, kernel, stride, dilation, pad;
};

struct Problem {
    // The output: pieces of FILTERS filters, columns, rows and slices.
    Divider pieces, columns, rows, slices;
    // The depth, height and width of images.
    Axis axes[3];
    // Of one group.
    int channels, filters;
    int groups;
    int weight_group, weight_filter, weight_channel, weight_tap;
    ActivationParameters activation;
};

// Where a tap of an output position lies along an axis; negative where it is in the padding or between elements.
DEVICE int source_of(Axis axis, int output, int tap) {
    if (TRANSPOSED) {
        int place = output + axis.pad - tap * axis.dilation;
        if (place < 0 || place % axis.stride != 0) return -1;
        place /= axis.stride;
        return place < axis.input ? place : -1;
    }
    int place = output * axis.stride + tap * axis.dilation - axis.pad;
    return place < axis.input ? place : -1;
}

KERNEL(direct_conv)(const STORAGE *input, const STORAGE *weights, const BIAS *bias,
                    const STORAGE *residual, STORAGE *output, CONSTANT(Problem) p,
                    u32 count) {
    u32 index = BLOCK_X * BLOCK_THREADS + threadIdx.x;
    u32 image = index;
    u32 piece = 0;
    if (CHANNELS_LAST) piece = take_remainder(image, p.pieces);
    int column = take_remainder(image, p.columns);
    int row = take_remainder(image, p.rows);
    int slice = take_remainder(image, p.slices);
    if (!CHANNELS_LAST) piece = take_remainder(image, p.pieces);
    int filter = int(piece) * FILTERS;
    int group = filter / p.filters;
    int all_channels = p.channels * p.groups;
    int positions = p.axes[0].input * p.axes[1].input * p.axes[2].input;
    release_successor();
    await_predecessor();
    if (index >= count) return;

    const STORAGE *of_image = input + i64(image) * positions * all_channels;
    const STORAGE *of_filter = weights + i64(group) * p.weight_group + i64(filter - group * p.filters) * p.weight_filter;
    int channel_step = CHANNELS_LAST ? 1 : positions;
    int position_step = CHANNELS_LAST ? all_channels : 1;
    of_image += i64(group) * p.channels * channel_step;
    float sums[FILTERS] = {};
    int tap = 0;
    for (int d = 0; d < p.axes[0].kernel; d++) {
        int z = source_of(p.axes[0], slice, d);
        for (int h = 0; h < p.axes[1].kernel; h++) {
            int y = source_of(p.axes[1], row, h);
            for (int w = 0; w < p.axes[2].kernel; w++, tap++) {
                int x = source_of(p.axes[2], column, w);
                if (z < 0 || y < 0 || x < 0) continue;
                const STORAGE *place = of_image + i64((z * p.axes[1].input + y) * p.axes[2].input + x) * position_step;
                const STORAGE *of_tap = of_filter + i64(tap) * p.weight_tap;
                for (int channel = 0; channel < p.channels; channel += CHANNELS) {
                    Vector<STORAGE, CHANNELS> elements =
                        *reinterpret_cast<const Vector<STORAGE, CHANNELS> *>(place + i64(channel) * channel_step);
#pragma unroll
                    for (int c = 0; c < CHANNELS; c++) {
                        Vector<STORAGE, FILTERS> of_channel = *reinterpret_cast<const Vector<STORAGE, FILTERS> *>(
                            of_tap + i64(channel + c) * p.weight_channel);
#pragma unroll
                        for (int f = 0; f < FILTERS; f++) sums[f] += to_float(elements.at[c]) * to_float(of_channel.at[f]);
                    }
                }
            }
        }
    }
    int all_filters = p.filters * p.groups;
    i64 position = (i64(slice) * p.rows.divisor + row) * p.columns.divisor + column;
    i64 all_positions = i64(p.slices.divisor) * p.rows.divisor * p.columns.divisor;
#pragma unroll
    for (int f = 0; f < FILTERS; f++) {
        i64 at = CHANNELS_LAST ? (image * all_positions + position) * all_filters + filter + f
                               : (i64(image) * all_filters + filter + f) * all_positions + position;
        float sum = sums[f];
        if (HAS_BIAS) sum += to_float(bias[filter + f]);
        if (HAS_RESIDUAL) sum += to_float(residual[at]);
        output[at] = from_float<STORAGE>(activate<ACTIVATION>(sum, p.activation));
    }
}
