// Parts that lie one after the other in the rows of a whole: each row's columns are copied between the whole and PARTS
// parts. ELEMENT may be several neighbours; sizes count in ELEMENTs. With SPLITTING, the whole is read and the parts
// are written; otherwise the other way round.

struct Joined {
    // The columns of all parts of this launch, which start at `first` in the whole's rows of `whole` columns.
    Divider columns;
    u32 first, whole;
    // Where each part ends, counted from the first part of this launch.
    u32 ends[PARTS];
};

#if SPLITTING
#define PART_POINTER ELEMENT *__restrict__
#define WHOLE_POINTER const ELEMENT *
#else
#define PART_POINTER const ELEMENT *
#define WHOLE_POINTER ELEMENT *__restrict__
#endif

KERNEL(joined)(WHOLE_POINTER whole, Joined shape, u32 count, PART_POINTER part0, PART_POINTER part1,
               PART_POINTER part2, PART_POINTER part3, PART_POINTER part4, PART_POINTER part5,
               PART_POINTER part6, PART_POINTER part7) {
    u32 index = BLOCK_X * BLOCK_THREADS + threadIdx.x;
    u32 row = index;
    u32 column = take_remainder(row, shape.columns);
    PART_POINTER parts[8] = {part0, part1, part2, part3, part4, part5, part6, part7};
    PART_POINTER part = parts[0];
    u32 start = 0, end = shape.ends[0];
#pragma unroll
    for (int i = 1; i < PARTS; i++) {
        if (column >= shape.ends[i - 1]) {
            part = parts[i];
            start = shape.ends[i - 1];
            end = shape.ends[i];
        }
    }
    release_successor();
    await_predecessor();
    if (index >= count) return;
    u32 in_whole = row * shape.whole + shape.first + column;
    u32 in_part = row * (end - start) + column - start;
#if SPLITTING
    // A part that nobody asked for has no place.
    if (part != nullptr) part[in_part] = whole[in_whole];
#else
    whole[in_whole] = part[in_part];
#endif
}
