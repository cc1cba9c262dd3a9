// Two axes swapped, through tiles in shared memory: along the axis `across` the source is contiguous, along `inner` the
// target is. Further axes stand outside, OUTER_RANK of them. Elements go from type FROM to type TO on the way.

#define TILE_ELEMENTS (TILE_ACROSS * TILE_INNER)
#define THREADS 256

struct OuterAxis {
    Divider size;
    u32 from_stride, to_stride;
};

struct Transposition {
    // The innermost axis first.
    OuterAxis outer[OUTER_RANK > 0 ? OUTER_RANK : 1];
    Divider tiles_across, tiles_inner;
    u32 across, inner;
    // Distances between neighbours along `inner` in the source, and along `across` in the target.
    u32 inner_stride, across_stride;
};

KERNEL_OF(THREADS, transpose)(const FROM *from, TO *__restrict__ to, Transposition shape, u32 offset) {
    // One more column keeps the columns of a tile in different banks.
    __shared__ TO tile[TILE_INNER][TILE_ACROSS + 1];
    u32 rest = BLOCK_X;
    u32 first_across = take_remainder(rest, shape.tiles_across) * TILE_ACROSS;
    u32 first_inner = take_remainder(rest, shape.tiles_inner) * TILE_INNER;
    u32 read = offset + first_across + first_inner * shape.inner_stride;
    u32 written = first_across * shape.across_stride + first_inner;
#pragma unroll
    for (int axis = 0; axis < OUTER_RANK; axis++) {
        u32 place = take_remainder(rest, shape.outer[axis].size);
        read += place * shape.outer[axis].from_stride;
        written += place * shape.outer[axis].to_stride;
    }
    release_successor();
    await_predecessor();
#pragma unroll
    for (int element = threadIdx.x; element < TILE_ELEMENTS; element += THREADS) {
        u32 a = element % TILE_ACROSS, i = element / TILE_ACROSS;
        if (first_across + a < shape.across && first_inner + i < shape.inner)
            tile[i][a] = converted<TO>(from[read + a + i * shape.inner_stride]);
    }
    __syncthreads();
#pragma unroll
    for (int element = threadIdx.x; element < TILE_ELEMENTS; element += THREADS) {
        u32 i = element % TILE_INNER, a = element / TILE_INNER;
        if (first_across + a < shape.across && first_inner + i < shape.inner)
            to[written + a * shape.across_stride + i] = tile[i][a];
    }
}
