// Sums and maxima over the threads of a warp or a block; every thread gets the result.

DEVICE float warp_sum(float x) {
#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2) x += __shfl_xor_sync(0xffffffffu, x, distance);
    return x;
}

DEVICE float warp_max(float x) {
#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2) x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, distance));
    return x;
}

// Over the WARPS warps of a block, all of whose threads call it; `partial` is shared by them, and free again after the
// next barrier.
template <int WARPS> DEVICE float block_sum(float x, float *partial) {
    x = warp_sum(x);
    if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = x;
    __syncthreads();
    float sum = 0.f;
#pragma unroll
    for (int warp = 0; warp < WARPS; warp++) sum += partial[warp];
    return sum;
}

template <int WARPS> DEVICE float block_max(float x, float *partial) {
    x = warp_max(x);
    if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = x;
    __syncthreads();
    float most = partial[0];
#pragma unroll
    for (int warp = 1; warp < WARPS; warp++) most = fmaxf(most, partial[warp]);
    return most;
}
