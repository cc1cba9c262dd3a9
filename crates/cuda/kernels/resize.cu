// Axes grown or shrunk: each output element is made of input elements that tables list along every resized axis.
//
// The host defines STORAGE, RANK, WIDTH (neighbours along an innermost axis that is not resized) and TAPS: for each axis,
// the innermost first, how many input elements make one output element, or 0 where the axis is not resized. With
// NEAREST, elements are taken as they are, and STORAGE is any type of their size.

struct Axis {
    Divider size;
    // Between neighbours in the input.
    u32 stride;
    // Where the axis' table starts.
    u32 table;
};

// The innermost axis first. Sizes and strides of the innermost axis count in vectors of WIDTH.
struct Axes {
    Axis at[RANK];
};

struct Sample {
    u32 source;
    float weight;
};

__device__ constexpr int taps[RANK] = {TAPS};

typedef Vector<STORAGE, WIDTH> Elements;

#if NEAREST
template <int AXIS> DEVICE size_t place_of(const Sample *tables, const Axes &axes, const u32 (&at)[RANK]) {
    if constexpr (AXIS == RANK) return 0;
    else {
        u32 source = at[AXIS];
        if constexpr (taps[AXIS] > 0) source = tables[axes.at[AXIS].table + source].source;
        return size_t(source) * axes.at[AXIS].stride + place_of<AXIS + 1>(tables, axes, at);
    }
}
#else
template <int AXIS>
DEVICE void accumulate(float (&sums)[WIDTH], const Elements *from, const Sample *tables, const Axes &axes,
                       const u32 (&at)[RANK], size_t place, float weight) {
    if constexpr (AXIS == RANK) {
        Elements read = from[place];
#pragma unroll
        for (int j = 0; j < WIDTH; j++) sums[j] += weight * to_float(read.at[j]);
    } else if constexpr (taps[AXIS] == 0) {
        accumulate<AXIS + 1>(sums, from, tables, axes, at, place + size_t(at[AXIS]) * axes.at[AXIS].stride, weight);
    } else {
        const Sample *samples = tables + axes.at[AXIS].table + at[AXIS] * taps[AXIS];
#pragma unroll
        for (int tap = 0; tap < taps[AXIS]; tap++) {
            Sample sample = samples[tap];
            accumulate<AXIS + 1>(sums, from, tables, axes, at, place + size_t(sample.source) * axes.at[AXIS].stride,
                                 weight * sample.weight);
        }
    }
}
#endif

KERNEL(resize)(const STORAGE *from, STORAGE *to, const Sample *__restrict__ tables,
               CONSTANT(Axes) axes, u32 count) {
    u32 index = BLOCK_X * BLOCK_THREADS + threadIdx.x;
    u32 rest = index;
    u32 at[RANK];
#pragma unroll
    for (int axis = 0; axis < RANK; axis++) at[axis] = take_remainder(rest, axes.at[axis].size);
    release_successor();
    await_predecessor();
    if (index >= count) return;
    const Elements *source = reinterpret_cast<const Elements *>(from);
    Elements *target = reinterpret_cast<Elements *>(to);
#if NEAREST
    target[index] = source[place_of<0>(tables, axes, at)];
#else
    float sums[WIDTH] = {};
    accumulate<0>(sums, source, tables, axes, at, 0, 1.f);
    Elements written;
#pragma unroll
    for (int j = 0; j < WIDTH; j++) written.at[j] = from_float<STORAGE>(sums[j]);
    target[index] = written;
#endif
}
