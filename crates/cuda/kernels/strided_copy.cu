// A view of one tensor, made dense: element `i` of the target is the source's at the place that the coordinates of `i`
// along RANK axes say. ELEMENT may be several neighbours; offsets and strides count in ELEMENTs.

struct Axis {
    Divider size;
    int stride;
};

// The innermost axis first.
struct Axes {
    Axis at[RANK];
};

KERNEL(strided_copy)(const ELEMENT *from, ELEMENT *__restrict__ to, Axes axes,
                     u32 offset, u32 count) {
    u32 index = BLOCK_X * BLOCK_THREADS + threadIdx.x;
    u32 rest = index;
    int place = int(offset);
#pragma unroll
    for (int axis = 0; axis < RANK; axis++) place += int(take_remainder(rest, axes.at[axis].size)) * axes.at[axis].stride;
    release_successor();
    await_predecessor();
    if (index < count) to[index] = from[place];
}
