// Each block notes the SM that it runs on, and keeps it for a while, so that no SM takes the blocks of another.

KERNEL(note_sm)(u32 *sms, u32 microseconds) {
    await_predecessor();
    u32 sm;
    u64 start, now;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start));
    do {
        asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    } while (now - start < microseconds * 1000ull);
    if (threadIdx.x == 0) sms[BLOCK_X] = sm;
}
