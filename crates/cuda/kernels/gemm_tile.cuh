// The tile of a product: what a block computes, and where it lies in shared memory.

#define REDUCTION_NONE 0
#define REDUCTION_CLUSTER 1
#define REDUCTION_WORKSPACE 2

constexpr int THREADS = WARPS_M * WARPS_N * 32;
constexpr int ELEMENT_BYTES = sizeof(STORAGE);
constexpr int TILE_K = ROW_BYTES / ELEMENT_BYTES;
// A step of the tensor cores takes 32 bytes of k: 16 numbers of 2 bytes, or 8 of 4.
constexpr int MMA_STEPS = ROW_BYTES / 32;
#if BY_WARPGROUP
// What one warp finds of the sums in its registers: 16 of every 64 rows of its group, and all columns.
constexpr int WARP_M = TILE_M / WARPS_M;
constexpr int WARP_N = TILE_N;
constexpr int GROUP_M = 4 * WARP_M;
// A stage is written again only when the step before the last has been multiplied.
constexpr int STEPS_AHEAD = STAGES - 2;
static_assert(ROW_BYTES == 128 && !RIGHT_BY_ROWS && WARPS_N == 1 && WARPS_M % 4 == 0, "as the hardware lays tiles out");
#else
constexpr int WARP_M = TILE_M / WARPS_M;
constexpr int WARP_N = TILE_N / WARPS_N;
constexpr int STEPS_AHEAD = STAGES - 1;
#endif
constexpr int MMA_M = WARP_M / 16;
constexpr int MMA_N = WARP_N / 8;
constexpr int LEFT_BYTES = TILE_M * ROW_BYTES;
constexpr int RIGHT_BYTES = TILE_N * ROW_BYTES;
constexpr int STAGE_BYTES = LEFT_BYTES + RIGHT_BYTES;
// The tile of sums in shared memory: padded so that neither writing fragments nor reading rows meets a bank twice.
constexpr int SUM_STRIDE = TILE_N + 8;

static_assert(WARP_M % 16 == 0 && WARP_N % 16 == 0, "a warp's tile is made of 16 x 16 pieces");
