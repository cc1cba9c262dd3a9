// Elements of type FROM to type TO, in order. PER_THREAD neighbours are moved at once.

KERNEL(convert)(const FROM *from, TO *__restrict__ to, u32 count) {
    u32 first = (BLOCK_X * BLOCK_THREADS + threadIdx.x) * PER_THREAD;
    release_successor();
    await_predecessor();
    if (first >= count) return;
    if (first + PER_THREAD <= count) {
        Vector<FROM, PER_THREAD> read = *reinterpret_cast<const Vector<FROM, PER_THREAD> *>(from + first);
        Vector<TO, PER_THREAD> written;
#pragma unroll
        for (int i = 0; i < PER_THREAD; i++) written.at[i] = converted<TO>(read.at[i]);
        *reinterpret_cast<Vector<TO, PER_THREAD> *>(to + first) = written;
    } else {
        for (u32 i = first; i < count; i++) to[i] = converted<TO>(from[i]);
    }
}
