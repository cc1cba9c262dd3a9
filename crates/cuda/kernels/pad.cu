// More places around a tensor, or fewer. Along each axis the positions `first` to `first + kept` stay, and `before` new
// places stand before them. MODE says what new places hold. ELEMENT may be several neighbours along an innermost axis
// without new places; sizes count in ELEMENTs.

#define MODE_CONSTANT 0
#define MODE_EDGE 1
#define MODE_REFLECT 2
#define MODE_WRAP 3

struct Axis {
    Divider size;
    int before, first, kept, stride;
};

// The innermost axis first.
struct Axes {
    Axis at[RANK];
};

DEVICE int modulo(int x, int by) {
    int remainder = x % by;
    return remainder < 0 ? remainder + by : remainder;
}

// The position among the kept ones that an outside place holds.
DEVICE int position_outside(int at, int kept) {
    int last = kept - 1;
    if constexpr (MODE == MODE_EDGE) return at < 0 ? 0 : last;
    if constexpr (MODE == MODE_WRAP) return modulo(at, kept);
    if constexpr (MODE == MODE_REFLECT) {
        if (last == 0) return 0;
        int phase = modulo(at, 2 * last);
        return phase > last ? 2 * last - phase : phase;
    }
    return 0;
}

KERNEL(pad)(const ELEMENT *from, ELEMENT *__restrict__ to, Axes axes, ELEMENT fill,
            u32 count) {
    u32 index = BLOCK_X * BLOCK_THREADS + threadIdx.x;
    u32 rest = index;
    int place = 0;
    bool is_inside = true;
#pragma unroll
    for (int axis = 0; axis < RANK; axis++) {
        Axis along = axes.at[axis];
        int at = int(take_remainder(rest, along.size)) - along.before;
        if (at < 0 || at >= along.kept) {
            is_inside = is_inside && MODE != MODE_CONSTANT;
            at = position_outside(at, along.kept);
        }
        place += (along.first + at) * along.stride;
    }
    release_successor();
    await_predecessor();
    if (index < count) to[index] = is_inside ? from[place] : fill;
}
