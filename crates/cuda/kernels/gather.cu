// Slices along one axis, picked by indices: [before, along, after] becomes [before, indices, after]. ELEMENT may be
// several neighbours of `after`, which counts in ELEMENTs. INDEX is the type of the indices; negative ones count from
// the end, and one that lies outside is a fault.

struct Gather {
    Divider after, indices;
    u32 along;
};

KERNEL(gather)(const ELEMENT *from, const INDEX *indices, ELEMENT *to, Gather shape, u32 count,
               Fault fault) {
    u32 index = BLOCK_X * BLOCK_THREADS + threadIdx.x;
    u32 before = index;
    u32 after = take_remainder(before, shape.after);
    u32 place = take_remainder(before, shape.indices);
    release_successor();
    await_predecessor();
    if (index >= count) return;
    long long picked = indices[place];
    if (picked < 0) picked += shape.along;
    if (picked < 0 || picked >= shape.along) {
        report_fault(fault);
        picked = 0;
    }
    to[index] = from[(size_t(before) * shape.along + picked) * shape.after.divisor + after];
}

// Single elements: each stands at its own place, but at its index along one axis.
struct Axis {
    Divider size;
    // Between neighbours in the source; 0 along the axis that the indices count.
    u32 stride;
};

#ifdef RANK
// The innermost axis first.
struct Axes {
    Axis at[RANK];
};

KERNEL(gather_elements)(const ELEMENT *from, const INDEX *indices, ELEMENT *to, Axes axes, u32 along,
                        u32 stride, u32 count, Fault fault) {
    u32 index = BLOCK_X * BLOCK_THREADS + threadIdx.x;
    u32 rest = index;
    u32 place = 0;
#pragma unroll
    for (int axis = 0; axis < RANK; axis++) place += take_remainder(rest, axes.at[axis].size) * axes.at[axis].stride;
    release_successor();
    await_predecessor();
    if (index >= count) return;
    long long picked = indices[index];
    if (picked < 0) picked += along;
    if (picked < 0 || picked >= along) {
        report_fault(fault);
        picked = 0;
    }
    to[index] = from[place + u32(picked) * stride];
}
#endif
