// Numbers between -1 and 1 that depend on a seed and on their place alone.
//
// Parameters: STORAGE

KERNEL(random_numbers)(STORAGE *to, u32 count, u32 seed) {
    u32 i = BLOCK_X * BLOCK_THREADS + threadIdx.x;
    release_successor();
    await_predecessor();
    if (i >= count) return;
    u32 mixed = i * 0x9E3779B1u ^ seed;
    mixed = (mixed ^ mixed >> 15) * 0x85EBCA77u;
    mixed = (mixed ^ mixed >> 13) * 0xC2B2AE3Du;
    mixed ^= mixed >> 16;
    to[i] = from_float<STORAGE>((float)(mixed >> 8) * (2.f / 16777216.f) - 1.f);
}
