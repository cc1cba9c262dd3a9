// A few planes as one of pixels: element by element, what lies in different planes becomes neighbours. Elements go from type
// FROM to type TO on the way. A thread moves PIXELS neighbours of each of PLANES planes; further axes stand outside,
// OUTER_RANK of them.

struct OuterAxis {
    Divider size;
    u32 from_stride, to_stride;
};

struct Interleaving {
    // The innermost axis first.
    OuterAxis outer[OUTER_RANK > 0 ? OUTER_RANK : 1];
    // Pieces of PIXELS.
    Divider pieces;
    // From plane to plane.
    u32 plane_stride;
};

// Elements that one instruction moves.
template <typename T> constexpr int WIDEST = 16 / sizeof(T) < PIXELS ? 16 / sizeof(T) : PIXELS;

KERNEL(interleave)(const FROM *from, TO *__restrict__ to, Interleaving shape, u32 offset, u32 count) {
    u32 rest = BLOCK_X * BLOCK_THREADS + threadIdx.x;
    bool is_inside = rest < count;
    u32 piece = take_remainder(rest, shape.pieces);
    u32 read = offset + piece * PIXELS;
    u32 written = piece * PIXELS * PLANES;
#pragma unroll
    for (int axis = 0; axis < OUTER_RANK; axis++) {
        u32 place = take_remainder(rest, shape.outer[axis].size);
        read += place * shape.outer[axis].from_stride;
        written += place * shape.outer[axis].to_stride;
    }
    release_successor();
    await_predecessor();
    if (!is_inside) return;
    Vector<FROM, WIDEST<FROM>> planes[PLANES][PIXELS / WIDEST<FROM>];
#pragma unroll
    for (int plane = 0; plane < PLANES; plane++)
#pragma unroll
        for (int at = 0; at < PIXELS / WIDEST<FROM>; at++)
            planes[plane][at] = ((const Vector<FROM, WIDEST<FROM>> *)(from + read + plane * shape.plane_stride))[at];
    Vector<TO, WIDEST<TO>> pixels[PIXELS * PLANES / WIDEST<TO>];
#pragma unroll
    for (int at = 0; at < PIXELS * PLANES; at++) {
        int pixel = at / PLANES, plane = at % PLANES;
        pixels[at / WIDEST<TO>].at[at % WIDEST<TO>] = converted<TO>(planes[plane][pixel / WIDEST<FROM>].at[pixel % WIDEST<FROM>]);
    }
#pragma unroll
    for (int at = 0; at < PIXELS * PLANES / WIDEST<TO>; at++) ((Vector<TO, WIDEST<TO>> *)(to + written))[at] = pixels[at];
}
