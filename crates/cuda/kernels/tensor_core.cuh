// Tensor cores and what feeds them: copies to shared memory that run ahead, fragments, products.
//
// Parameters: MATH, one of those below.

#define MATH_F16 0
#define MATH_BF16 1
#define MATH_TF32 2
#define MATH_F32 3

DEVICE u32 shared_address(const void *pointer) { return (u32)__cvta_generic_to_shared(pointer); }

template <int BYTES> DEVICE void copy_async(u32 to, const void *from, int valid_bytes) {
    if constexpr (BYTES == 16) {
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

#define MMA_INSTRUCTION(SHAPE)                                                                                          \
    asm volatile("mma.sync.aligned." SHAPE " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"           \
                 : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])                                               \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1))

DEVICE void mma_once(float (&sum)[4], const u32 (&a)[4], u32 b0, u32 b1) {
#if MATH == MATH_F16
    MMA_INSTRUCTION("m16n8k16.row.col.f32.f16.f16.f32");
#elif MATH == MATH_BF16
    MMA_INSTRUCTION("m16n8k16.row.col.f32.bf16.bf16.f32");
#else
    MMA_INSTRUCTION("m16n8k8.row.col.f32.tf32.tf32.f32");
#endif
}

DEVICE u32 rounded_to_tf32(u32 bits) {
    u32 rounded;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(rounded) : "f"(__uint_as_float(bits)));
    return rounded;
}
// What rounding to tf32 left of a number.
DEVICE u32 remainder_of(u32 bits, u32 rounded) {
    return rounded_to_tf32(__float_as_uint(__uint_as_float(bits) - __uint_as_float(rounded)));
}
