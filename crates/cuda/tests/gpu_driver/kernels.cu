DEVICE u64 nanoseconds() {
    u64 now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    return now;
}

DEVICE void spin(u32 microseconds) {
    u64 start = nanoseconds();
    while (nanoseconds() - start < microseconds * 1000ull) {}
}

// Each block notes the SM it runs on, and stays there for a while.
extern "C" __global__ void note_sm(u32* sms, u32 microseconds) {
    await_predecessor();
    u32 sm;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
    spin(microseconds);
    if (threadIdx.x == 0) sms[blockIdx.x] = sm;
}

// Every word becomes itself times three plus `added`. The order of two of these matters.
extern "C" __global__ void advance(u32* words, u32 count, u32 added) {
    release_successor();
    await_predecessor();
    for (u32 i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x)
        words[i] = words[i] * 3 + added;
}

// Each block notes the size of its cluster.
extern "C" __global__ void note_cluster(u32* sizes) {
    await_predecessor();
    u32 size = 1;
#if __CUDA_ARCH__ >= 900
    asm volatile("mov.u32 %0, %%cluster_nctaid.x;" : "=r"(size));
#endif
    if (threadIdx.x == 0) sizes[blockIdx.x] = size;
}

// Uses the last of the block's dynamic shared memory.
extern "C" __global__ void touch_shared(u32* result, u32 shared_bytes) {
    extern __shared__ u32 words_of_block[];
    await_predecessor();
    u32 last = shared_bytes / 4 - 1;
    words_of_block[last] = 42;
    __syncthreads();
    if (threadIdx.x == 0) result[0] = words_of_block[last];
}
