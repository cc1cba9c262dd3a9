// Tensor cores and what feeds them: copies to shared memory that run ahead, fragments, products.
//
// Parameters: MATH, one of those below.

#define MATH_F16 0
#define MATH_BF16 1
// Numbers of 4 bytes, each as the sum of two of bf16: 16 bits of mantissa.
#define MATH_TF32 2
// Numbers of 4 bytes, each as the sum of two of tf32: 21 bits of mantissa.
#define MATH_F32 3

DEVICE u32 shared_address(const void *pointer) { return (u32)__cvta_generic_to_shared(pointer); }

// Copies that other copies of the block will soon repeat are worth a place in the first cache.
template <int BYTES, bool IS_REPEATED = false> DEVICE void copy_async(u32 to, const void *from, int valid_bytes) {
    if constexpr (BYTES == 16 && !IS_REPEATED) {
        asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(valid_bytes));
    } else {
        asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(to), "l"(from), "n"(BYTES), "r"(valid_bytes));
    }
}
DEVICE void commit_copies() { asm volatile("cp.async.commit_group;"); }
template <int PENDING> DEVICE void await_copies() { asm volatile("cp.async.wait_group %0;" ::"n"(PENDING)); }

// Where a 16-byte chunk of a row of CHUNKS (a power of two, at least 2) lies, so that eight rows' chunks of one column
// lie in different banks.
template <int CHUNKS> DEVICE int place(int row, int chunk) {
    if constexpr (CHUNKS >= 8) return row * CHUNKS + (chunk ^ (row & 7));
    else if constexpr (CHUNKS == 4) return row * CHUNKS + (chunk ^ ((row >> 1) & 3));
    else return row * CHUNKS + (chunk ^ ((row >> 2) & 1));
}

DEVICE void load_matrices(u32 (&to)[4], u32 address) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(address));
}
DEVICE void load_matrices_transposed(u32 (&to)[4], u32 address) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(address));
}

#if MATH == MATH_F16 || MATH == MATH_BF16

DEVICE void mma_once(float (&sum)[4], const u32 (&a)[4], u32 b0, u32 b1) {
#if MATH == MATH_F16
#define MMA_TYPES "f32.f16.f16.f32"
#else
#define MMA_TYPES "f32.bf16.bf16.f32"
#endif
    asm volatile("mma.sync.aligned.m16n8k16.row.col." MMA_TYPES " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

#else

// Numbers of 4 bytes are split into a high part, which holds their first bits, and a low part, which holds the next; the
// product is that of the parts, without low times low, which is below the last bit.

#if MATH == MATH_TF32

// A thread has two of the eight numbers of a step from each row; which two does not matter as long as it is the same
// two on both sides.
struct LeftParts {
    u32 high[2], low[2];
};
struct RightParts {
    u32 high, low;
};

DEVICE void split_pair(u32 first, u32 second, u32 &high, u32 &low) {
    float x = __uint_as_float(first), y = __uint_as_float(second);
    __nv_bfloat162 rounded = __floats2bfloat162_rn(x, y);
    float2 back = __bfloat1622float2(rounded);
    __nv_bfloat162 left = __floats2bfloat162_rn(x - back.x, y - back.y);
    high = *(u32 *)&rounded;
    low = *(u32 *)&left;
}
DEVICE LeftParts split_left(const u32 (&a)[4]) {
    LeftParts parts;
    split_pair(a[0], a[2], parts.high[0], parts.low[0]);
    split_pair(a[1], a[3], parts.high[1], parts.low[1]);
    return parts;
}
DEVICE RightParts split_right(u32 b0, u32 b1) {
    RightParts parts;
    split_pair(b0, b1, parts.high, parts.low);
    return parts;
}
DEVICE void mma_parts(float (&sum)[4], const u32 (&a)[2], u32 b) {
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
                 : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
                 : "r"(a[0]), "r"(a[1]), "r"(b));
}

#else

struct LeftParts {
    u32 high[4], low[4];
};
struct RightParts {
    u32 high[2], low[2];
};

DEVICE void split_number(u32 bits, u32 &high, u32 &low) {
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(high) : "f"(__uint_as_float(bits)));
    float left = __uint_as_float(bits) - __uint_as_float(high);
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(low) : "f"(left));
}
DEVICE LeftParts split_left(const u32 (&a)[4]) {
    LeftParts parts;
#pragma unroll
    for (int e = 0; e < 4; e++) split_number(a[e], parts.high[e], parts.low[e]);
    return parts;
}
DEVICE RightParts split_right(u32 b0, u32 b1) {
    RightParts parts;
    split_number(b0, parts.high[0], parts.low[0]);
    split_number(b1, parts.high[1], parts.low[1]);
    return parts;
}
DEVICE void mma_parts(float (&sum)[4], const u32 (&a)[4], const u32 (&b)[2]) {
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

#endif

DEVICE void mma_split(float (&sum)[4], const LeftParts &a, const RightParts &b) {
    mma_parts(sum, a.low, b.high);
    mma_parts(sum, a.high, b.low);
    mma_parts(sum, a.high, b.high);
}

#endif

// --- Hopper: four warps multiply together, straight from shared memory ---------------------------------------------
#if BY_WARPGROUP

// The same value, which the compiler then knows to be the same for all threads of a warp: what describes tiles is computed
// once for all of them.
DEVICE int same_in_warp(int value) { return __shfl_sync(~0u, value, 0); }

// A tile of rows of 128 bytes, placed as `place` does, starting at `address`.
DEVICE u64 tile_description(u32 address) {
    constexpr u64 EIGHT_ROWS = 1024 >> 4, SWIZZLE_128 = 1;
    return (u64)((address & 0x3ffff) >> 4) | (1ull << 16) | (EIGHT_ROWS << 32) | (SWIZZLE_128 << 62);
}
// From one step of the tensor cores to the next, in a description: 32 bytes of every row.
constexpr u64 DESCRIBED_STEP = 32 >> 4;
DEVICE void fence_warpgroup() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
DEVICE void commit_warpgroup() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int PENDING> DEVICE void await_warpgroup() { asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(PENDING) : "memory"); }
// Makes what this thread has written to shared memory visible to the tensor cores.
DEVICE void show_to_tensor_cores() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

#if MATH == MATH_F16
#define WARPGROUP_SHAPE(N) "wgmma.mma_async.sync.aligned.m64n" N "k16.f32.f16.f16 "
#else
#define WARPGROUP_SHAPE(N) "wgmma.mma_async.sync.aligned.m64n" N "k16.f32.bf16.bf16 "
#endif
#define WARPGROUP_TAIL ", is_added, 1, 1, 0, 0;\n}"

// The product of 64 rows and N columns becomes a thread's N / 2 sums, or is added to them.
template <int N> DEVICE void warpgroup_mma(float *d, u64 a, u64 b, int is_added);

template <> DEVICE void warpgroup_mma<64>(float *d, u64 a, u64 b, int is_added) {
    asm volatile(
        "{\n.reg .pred is_added;\nsetp.ne.b32 is_added, %34, 0;\n" WARPGROUP_SHAPE("64")
        "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
        "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "
        "%32, %33" WARPGROUP_TAIL
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]),
          "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]),
          "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]),
          "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31])
        : "l"(a), "l"(b), "r"(is_added));
}

template <> DEVICE void warpgroup_mma<128>(float *d, u64 a, u64 b, int is_added) {
    asm volatile(
        "{\n.reg .pred is_added;\nsetp.ne.b32 is_added, %66, 0;\n" WARPGROUP_SHAPE("128")
        "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
        "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
        "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
        "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, "
        "%64, %65" WARPGROUP_TAIL
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]),
          "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]),
          "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]),
          "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31]),
          "+f"(d[32]), "+f"(d[33]), "+f"(d[34]), "+f"(d[35]), "+f"(d[36]), "+f"(d[37]), "+f"(d[38]), "+f"(d[39]),
          "+f"(d[40]), "+f"(d[41]), "+f"(d[42]), "+f"(d[43]), "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47]),
          "+f"(d[48]), "+f"(d[49]), "+f"(d[50]), "+f"(d[51]), "+f"(d[52]), "+f"(d[53]), "+f"(d[54]), "+f"(d[55]),
          "+f"(d[56]), "+f"(d[57]), "+f"(d[58]), "+f"(d[59]), "+f"(d[60]), "+f"(d[61]), "+f"(d[62]), "+f"(d[63])
        : "l"(a), "l"(b), "r"(is_added));
}

template <> DEVICE void warpgroup_mma<256>(float *d, u64 a, u64 b, int is_added) {
    asm volatile(
        "{\n.reg .pred is_added;\nsetp.ne.b32 is_added, %130, 0;\n" WARPGROUP_SHAPE("256")
        "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
        "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
        "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
        "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, "
        "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, "
        "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, "
        "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, "
        "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127}, "
        "%128, %129" WARPGROUP_TAIL
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]),
          "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]),
          "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]),
          "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31]),
          "+f"(d[32]), "+f"(d[33]), "+f"(d[34]), "+f"(d[35]), "+f"(d[36]), "+f"(d[37]), "+f"(d[38]), "+f"(d[39]),
          "+f"(d[40]), "+f"(d[41]), "+f"(d[42]), "+f"(d[43]), "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47]),
          "+f"(d[48]), "+f"(d[49]), "+f"(d[50]), "+f"(d[51]), "+f"(d[52]), "+f"(d[53]), "+f"(d[54]), "+f"(d[55]),
          "+f"(d[56]), "+f"(d[57]), "+f"(d[58]), "+f"(d[59]), "+f"(d[60]), "+f"(d[61]), "+f"(d[62]), "+f"(d[63]),
          "+f"(d[64]), "+f"(d[65]), "+f"(d[66]), "+f"(d[67]), "+f"(d[68]), "+f"(d[69]), "+f"(d[70]), "+f"(d[71]),
          "+f"(d[72]), "+f"(d[73]), "+f"(d[74]), "+f"(d[75]), "+f"(d[76]), "+f"(d[77]), "+f"(d[78]), "+f"(d[79]),
          "+f"(d[80]), "+f"(d[81]), "+f"(d[82]), "+f"(d[83]), "+f"(d[84]), "+f"(d[85]), "+f"(d[86]), "+f"(d[87]),
          "+f"(d[88]), "+f"(d[89]), "+f"(d[90]), "+f"(d[91]), "+f"(d[92]), "+f"(d[93]), "+f"(d[94]), "+f"(d[95]),
          "+f"(d[96]), "+f"(d[97]), "+f"(d[98]), "+f"(d[99]), "+f"(d[100]), "+f"(d[101]), "+f"(d[102]), "+f"(d[103]),
          "+f"(d[104]), "+f"(d[105]), "+f"(d[106]), "+f"(d[107]), "+f"(d[108]), "+f"(d[109]), "+f"(d[110]), "+f"(d[111]),
          "+f"(d[112]), "+f"(d[113]), "+f"(d[114]), "+f"(d[115]), "+f"(d[116]), "+f"(d[117]), "+f"(d[118]), "+f"(d[119]),
          "+f"(d[120]), "+f"(d[121]), "+f"(d[122]), "+f"(d[123]), "+f"(d[124]), "+f"(d[125]), "+f"(d[126]), "+f"(d[127])
        : "l"(a), "l"(b), "r"(is_added));
}

// --- Hopper: whole tiles copied by the copy engine -----------------------------------------------------------------

// A matrix as the host has described it to the copy engine.
struct alignas(64) TileMap {
    u64 words[16];
};

#ifdef ENTRY_BLOCKS
// Entries' descriptions lie in memory, where the copy engine must be told that they are new.
template <> struct HostValue<TileMap> {
    At<const TileMap> at;
    DEVICE const TileMap &of(u32 entry) const { return *at.of(entry); }
};
DEVICE void show_to_copy_engine(const TileMap &map) {
    asm volatile("fence.proxy.tensormap::generic.acquire.sys [%0], 128;" ::"l"(&map) : "memory");
}

// One description for each entry, for blocks that compute several of them.
typedef HostValue<TileMap> TileMaps;
// That of the entry which one thread has brought last, or stored.
class TileMapInUse {
    const TileMaps &maps;
    const TileMap *map;
    int entry;

public:
    DEVICE TileMapInUse(const TileMaps &maps) : maps(maps), map(nullptr), entry(-1) {}
    DEVICE const TileMap &of(int wanted) {
        if (wanted != entry) {
            entry = wanted;
            map = &maps.of(wanted);
            show_to_copy_engine(*map);
        }
        return *map;
    }
};
#else
DEVICE void show_to_copy_engine(const TileMap &) {}

typedef TileMap TileMaps;
class TileMapInUse {
    const TileMap &map;

public:
    DEVICE TileMapInUse(const TileMaps &map) : map(map) {}
    DEVICE const TileMap &of(int) const { return map; }
};
#endif

DEVICE void start_barrier(u32 barrier, u32 arrivals = 1) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}
DEVICE void arrive(u32 barrier) { asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory"); }
// All threads of one warpgroup.
DEVICE void await_group(int group) { asm volatile("bar.sync %0, 128;" ::"r"(group + 1) : "memory"); }
// Makes barriers visible to the copy engine, before anything arrives at them.
DEVICE void show_barriers() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }
// The barrier's phase ends when so many bytes have come.
DEVICE void expect_bytes(u32 barrier, u32 bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}
DEVICE void await_barrier(u32 barrier, u32 parity) {
    asm volatile("{\n.reg .pred is_done;\nAGAIN:\n"
                 "mbarrier.try_wait.parity.shared::cta.b64 is_done, [%0], %1;\n"
                 "@!is_done bra AGAIN;\n}" ::"r"(barrier), "r"(parity)
                 : "memory");
}
// The tile whose first element is at (column, row); what lies outside of the matrix is zero.
DEVICE void copy_tile(u32 to, const TileMap &map, int column, int row, u32 barrier) {
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(to),
                 "l"(&map), "r"(column), "r"(row), "r"(barrier)
                 : "memory");
}
// The same channels of neighbouring windows, from the one on that begins at (x, y) of an image, each at the tap (dx, dy);
// what lies outside of the images is zero.
DEVICE void copy_windows(u32 to, const TileMap &map, int channel, int x, int y, int image, int dx, int dy, u32 barrier) {
    asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4, %5}], [%6], "
                 "{%7, %8};" ::"r"(to),
                 "l"(&map), "r"(channel), "r"(x), "r"(y), "r"(image), "r"(barrier), "h"((short)dx), "h"((short)dy)
                 : "memory");
}

#endif
