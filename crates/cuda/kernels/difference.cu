// How far values are from what they should be: the sums of squares of the difference and of the reference, and the
// largest of both. What is no number counts as infinitely far.
//
// Parameters: STORAGE

struct Difference {
    double difference_squares, reference_squares;
    u32 largest_difference, largest_reference;
};

DEVICE double sum_of_warp(double x) {
#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2) x += __shfl_xor_sync(~0u, x, distance);
    return x;
}

KERNEL(difference)(const STORAGE *values, const STORAGE *reference, Difference *result, u32 count) {
    release_successor();
    await_predecessor();
    double difference_squares = 0, reference_squares = 0;
    float largest_difference = 0.f, largest_reference = 0.f;
    for (u32 i = BLOCK_X * BLOCK_THREADS + threadIdx.x; i < count; i += GRID_X * BLOCK_THREADS) {
        float expected = to_float(reference[i]);
        float far = fabsf(to_float(values[i]) - expected);
        // Written so that it holds for numbers alone.
        if (!(far <= 3.0e38f)) far = 3.0e38f;
        difference_squares += (double)far * far;
        reference_squares += (double)expected * expected;
        largest_difference = fmaxf(largest_difference, far);
        largest_reference = fmaxf(largest_reference, fabsf(expected));
    }
    difference_squares = sum_of_warp(difference_squares);
    reference_squares = sum_of_warp(reference_squares);
    if (threadIdx.x % 32 == 0) {
        atomicAdd(&result->difference_squares, difference_squares);
        atomicAdd(&result->reference_squares, reference_squares);
    }
    // As integers, floats that are not negative have the same order.
    atomicMax(&result->largest_difference, __float_as_uint(largest_difference));
    atomicMax(&result->largest_reference, __float_as_uint(largest_reference));
}
