// What every kernel shares: numbers, vectors, activations, and the order of launches.
//
// The host defines STORAGE (the type that floating-point values are stored as) where a kernel uses it.

#include <cuda_fp16.h>
#include <cuda_bf16.h>

typedef unsigned char u8;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;

#define DEVICE __device__ __forceinline__

// --- The order of launches -----------------------------------------------------------------------------------------
// A kernel may start while its predecessor still runs. It must call `await_predecessor` before it reads or writes
// anything but weights and its own shared memory, in every thread that does so; and every kernel must call it.
//
// Pointers to values that other kernels write must not be `const __restrict__`: that lets the compiler read them
// through a cache that is not kept coherent with a predecessor that was still running when this kernel began.

DEVICE void await_predecessor() {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

// Lets the successor start, as far as there is room; it still waits for this kernel's end where it calls
// `await_predecessor`.
DEVICE void release_successor() {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

// --- Kernels -------------------------------------------------------------------------------------------------------
// A kernel computes one request, in a launch of its own. What is written as a kernel is a function where the host has a launch
// do more than that:
// - Where it defines ENTRY_BLOCKS, one launch computes several requests: `entries.cuh` calls the function for the entry of each
//   block with the addresses of that entry. ENTRY_BLOCKS blocks along z belong to an entry; structures hold addresses as
//   `At<T>`, which FOUND reads. Blocks that stay belong to no entry: they read those of any one by FOUND_OF.
// - Where it defines SHARED_LAUNCH, one launch computes problems of several kernels: `shared_launch.cuh` calls the function of
//   the problem that each block belongs to.
// So kernels ask for their place in a launch by these names alone: BLOCK_X, BLOCK_Y and BLOCK_Z in place of `blockIdx`, GRID_X and
// GRID_Y in place of `gridDim`, and BLOCK_THREADS in place of `blockDim.x`.

#if defined(ENTRY_BLOCKS) || defined(SHARED_LAUNCH)
#define KERNEL(name) DEVICE void name
#define KERNEL_OF(threads, name) DEVICE void name
#define CONSTANT(type) const type &

// A parameter as the host gives it; see `parameters.cuh`.
template <typename T> struct HostValue;
#else
#define KERNEL(name) extern "C" __global__ void name
#define KERNEL_OF(threads, name) extern "C" __global__ void __launch_bounds__(threads) name
#define CONSTANT(type) const __grid_constant__ type
#endif

#ifdef SHARED_LAUNCH
// The blocks of one of a kernel's problems: its number, the first of them in the launch, and how many there are along x and y.
struct Blocks {
    u32 number, first, x, y;
};

// Where the block of this thread is among its problem's.
DEVICE uint3 block_of(Blocks blocks) {
    u32 x = blockIdx.x - blocks.first;
    if (x < blocks.x) return {x, 0, 0};
    u32 row = x / blocks.x;
    return {x - row * blocks.x, row % blocks.y, row / blocks.y};
}

// The host defines `own_blocks` for each kernel, those of the problem that this thread's block belongs to, and BLOCK_THREADS.
#define BLOCK_X (block_of(own_blocks()).x)
#define BLOCK_Y (block_of(own_blocks()).y)
#define BLOCK_Z (block_of(own_blocks()).z)
#define GRID_X (own_blocks().x)
#define GRID_Y (own_blocks().y)
#else
#define BLOCK_X blockIdx.x
#define BLOCK_Y blockIdx.y
#define GRID_X gridDim.x
#define GRID_Y gridDim.y
#define BLOCK_THREADS blockDim.x
#endif

#ifdef ENTRY_BLOCKS
#define ENTRY (blockIdx.z / ENTRY_BLOCKS)
#define BLOCK_Z (blockIdx.z % ENTRY_BLOCKS)
#define FOUND(address) FOUND_OF(address, ENTRY)
#define FOUND_OF(address, entry) (address).of(entry)

// An address that depends on the entry: entries lie `step` bytes apart; or, where the lowest bit of `step` is set, it is
// the address of the first entry's address, and the others' follow.
template <typename T> struct alignas(16) At {
    u64 base, step;
    DEVICE T *of(u32 entry) const {
        u64 address = base + (step & ~1ull) * entry;
        if (step & 1) address = __ldg((const u64 *)address);
        // Said to be in global memory, since loads and stores of any memory take longer.
        return (T *)__cvta_global_to_generic(address);
    }
};
#else
#ifndef SHARED_LAUNCH
#define BLOCK_Z blockIdx.z
#endif
#define FOUND(address) (address)
#define FOUND_OF(address, entry) (address)
template <typename T> using At = T *;
#endif

// --- Numbers -------------------------------------------------------------------------------------------------------

DEVICE float to_float(float x) { return x; }
DEVICE float to_float(__half x) { return __half2float(x); }
DEVICE float to_float(__nv_bfloat16 x) { return __bfloat162float(x); }

template <typename T> DEVICE T from_float(float x);
template <> DEVICE float from_float<float>(float x) { return x; }
template <> DEVICE __half from_float<__half>(float x) { return __float2half_rn(x); }
template <> DEVICE __nv_bfloat16 from_float<__nv_bfloat16>(float x) { return __float2bfloat16_rn(x); }

// Several neighbours, moved at once.
template <typename T, int COUNT> struct alignas(sizeof(T) * COUNT) Vector {
    T at[COUNT];
};

// --- Faults --------------------------------------------------------------------------------------------------------
// Where a kernel reports input that it cannot compute with; the host reads the word after the run.

struct Fault {
    u32 *word;
    u32 number;
};

DEVICE void report_fault(Fault fault) { *fault.word = fault.number; }

// --- Activations ---------------------------------------------------------------------------------------------------
// The host defines ACTIVATION as one of these, and the kernel takes the two parameters.

#define ACTIVATION_NONE 0
#define ACTIVATION_RELU 1
#define ACTIVATION_CLIP 2
#define ACTIVATION_LEAKY_RELU 3
#define ACTIVATION_HARD_SWISH 4
#define ACTIVATION_HARD_SIGMOID 5
#define ACTIVATION_SIGMOID 6
#define ACTIVATION_SILU 7
#define ACTIVATION_TANH 8
#define ACTIVATION_GELU 9
#define ACTIVATION_GELU_TANH 10
#define ACTIVATION_AT_LEAST 11

struct ActivationParameters {
    float first, second;
};

// The greater and the lesser of two; NaN where one of them is.
DEVICE float greater(float x, float y) {
    float result;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(x), "f"(y));
    return result;
}
DEVICE float lesser(float x, float y) {
    float result;
    asm("min.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(x), "f"(y));
    return result;
}

// GELU to within 1e-6, which no number of 16 bits shows: what is left of the line above is half of |x| times the complement of
// the error function, whose logarithm is nearly a polynomial. Beyond ten nothing is left.
DEVICE float gelu_of_16_bits(float x) {
    float size = fminf(fabsf(x), 10.f), left;
    float exponent = -4.88102444e-4f * size + 7.19872045e-3f;
    exponent = exponent * size - 5.21466364e-2f;
    exponent = exponent * size - 0.45959584f;
    exponent = exponent * size - 1.15100054f;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(left) : "f"(exponent * size));
    return greater(x, 0.f) - 0.5f * size * left;
}

// NaN passes through every one of them. Results are stored as STORED.
template <int KIND, typename STORED = float> DEVICE float activate(float x, ActivationParameters p) {
    if constexpr (KIND == ACTIVATION_RELU) return greater(x, 0.f);
    if constexpr (KIND == ACTIVATION_AT_LEAST) return greater(x, p.first);
    if constexpr (KIND == ACTIVATION_CLIP) return lesser(greater(x, p.first), p.second);
    if constexpr (KIND == ACTIVATION_LEAKY_RELU) return x < 0.f ? x * p.first : x;
    if constexpr (KIND == ACTIVATION_HARD_SWISH) {
        float gate = x * (1.f / 6.f) + 0.5f;
        gate = gate < 0.f ? 0.f : (gate > 1.f ? 1.f : gate);
        return x * gate;
    }
    if constexpr (KIND == ACTIVATION_HARD_SIGMOID) {
        float gate = x * p.first + p.second;
        return gate < 0.f ? 0.f : (gate > 1.f ? 1.f : gate);
    }
    if constexpr (KIND == ACTIVATION_SIGMOID) return 1.f / (1.f + __expf(-x));
    if constexpr (KIND == ACTIVATION_SILU) return x / (1.f + __expf(-x));
    if constexpr (KIND == ACTIVATION_TANH) return tanhf(x);
    if constexpr (KIND == ACTIVATION_GELU && sizeof(STORED) == 2) return gelu_of_16_bits(x);
    if constexpr (KIND == ACTIVATION_GELU) return 0.5f * x * (1.f + erff(x * 0.70710678118654752f));
    if constexpr (KIND == ACTIVATION_GELU_TANH) {
        float inner = 0.79788456080286536f * (x + 0.044715f * x * x * x);
        return 0.5f * x * (1.f + tanhf(inner));
    }
    return x;
}
