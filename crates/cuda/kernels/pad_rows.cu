// Rows of a matrix with zeros after each, so that every row starts where wide loads can.
//
// Parameters: STORAGE, COLUMNS, PADDED_COLUMNS. One thread writes one row's padded neighbours of PER_THREAD elements.

constexpr int PER_THREAD = 8 / sizeof(STORAGE);
static_assert(PADDED_COLUMNS % PER_THREAD == 0, "rows are padded to 8 bytes");

KERNEL(pad_rows)(const STORAGE *from, STORAGE *__restrict__ to, u32 rows) {
    constexpr u32 PIECES = PADDED_COLUMNS / PER_THREAD;
    release_successor();
    u64 at = (u64)BLOCK_X * BLOCK_THREADS + threadIdx.x;
    u32 row = at / PIECES, column = at % PIECES * PER_THREAD;
    await_predecessor();
    if (row >= rows) return;
    Vector<STORAGE, PER_THREAD> piece;
#pragma unroll
    for (int e = 0; e < PER_THREAD; e++)
        piece.at[e] = column + e < COLUMNS ? from[(u64)row * COLUMNS + column + e] : from_float<STORAGE>(0.f);
    *(Vector<STORAGE, PER_THREAD> *)(to + (u64)row * PADDED_COLUMNS + column) = piece;
}
