// How threads bring their parts of a product's tiles to shared memory.

constexpr int LEFT_COLUMNS = ROW_BYTES / LOAD_BYTES;
constexpr int LEFT_ROWS = THREADS / LEFT_COLUMNS;
constexpr int LEFT_LOADS = (TILE_M + LEFT_ROWS - 1) / LEFT_ROWS;
constexpr int LOAD_ELEMENTS = LOAD_BYTES / ELEMENT_BYTES;

// Large tiles have steps enough to make up for finding out beforehand which taps lie inside the image.
#define USES_TAP_MASKS (BY_WARPGROUP && TAPS <= 32 && !IS_DILATED)

// The bits from `first` up to, not including, `end`, both of which may lie outside of 0 to LIMIT.
template <int LIMIT> DEVICE u32 bits_between(int first, int end) {
    first = min(max(first, 0), LIMIT);
    end = min(max(end, first), LIMIT);
    return (u32)((1ull << end) - (1ull << first));
}

// One thread's part of the left tiles: the same column of every LEFT_ROWS-th row.
struct LeftLoader {
    const STORAGE *base;
    int offset[LEFT_LOADS];
#if CONVOLUTION
#if USES_TAP_MASKS
    // One bit for each tap: whether it lies inside the image.
    u32 taps_inside[LEFT_LOADS];
#else
    int y[LEFT_LOADS], x[LEFT_LOADS];
#endif
#endif
    int k;

    DEVICE void start(const Problem &p, const STORAGE *left, int tile_m, int first_k) {
        base = left;
        k = first_k + (threadIdx.x % LEFT_COLUMNS) * LOAD_ELEMENTS;
#pragma unroll
        for (int i = 0; i < LEFT_LOADS; i++) {
            int row = tile_m * TILE_M + threadIdx.x / LEFT_COLUMNS + i * LEFT_ROWS;
#if CONVOLUTION
            u32 image = divided(row, p.by_output_area);
            u32 pixel = row - image * p.by_output_area.divisor;
            u32 output_y = divided(pixel, p.by_output_width);
            u32 output_x = pixel - output_y * p.by_output_width.divisor;
            int first_y = (int)output_y * p.stride_y - p.pad_y, first_x = (int)output_x * p.stride_x - p.pad_x;
            offset[i] = (((int)image * p.height + first_y) * p.width + first_x) * (int)p.by_channels.divisor;
            // A row past the end lies outside of every image.
            if (row >= p.m) first_y = -(1 << 24);
#if USES_TAP_MASKS
            // Where a row of the filter begins, if it lies inside; times the columns that do.
            constexpr u32 ROWS_BEGIN = (u32)(((1ull << TAPS) - 1) / ((1ull << KERNEL_X) - 1));
            u32 rows = ROWS_BEGIN & bits_between<TAPS>(-first_y * KERNEL_X, (p.height - first_y) * KERNEL_X);
            taps_inside[i] = rows * bits_between<KERNEL_X>(-first_x, p.width - first_x);
#else
            y[i] = first_y;
            x[i] = first_x;
#endif
#else
            offset[i] = row < p.m ? row * p.left_stride : -1;
#endif
        }
    }

    DEVICE void load(const Problem &p, u32 tile) const {
        int column = threadIdx.x % LEFT_COLUMNS;
        int row = threadIdx.x / LEFT_COLUMNS;
        int chunk = column * LOAD_BYTES / 16, inside = column * LOAD_BYTES % 16;
#if CONVOLUTION
        u32 tap = divided(k, p.by_channels), channel = k - tap * p.by_channels.divisor;
        int dy = tap / KERNEL_X * (IS_DILATED ? p.dilation_y : 1), dx = tap % KERNEL_X * (IS_DILATED ? p.dilation_x : 1);
        int shift = (dy * p.width + dx) * (int)p.by_channels.divisor + (int)channel;
#endif
#pragma unroll
        for (int i = 0; i < LEFT_LOADS; i++, row += LEFT_ROWS) {
            if (TILE_M % LEFT_ROWS != 0 && row >= TILE_M) break;
#if CONVOLUTION
#if USES_TAP_MASKS
            bool is_inside = k < p.k && taps_inside[i] >> tap & 1;
#else
            bool is_inside = (u32)(y[i] + dy) < (u32)p.height && (u32)(x[i] + dx) < (u32)p.width && k < p.k;
#endif
            const STORAGE *from = is_inside ? base + offset[i] + shift : base;
            int valid = is_inside ? LOAD_BYTES : 0;
#else
            int left = offset[i] >= 0 ? (p.k - k) * ELEMENT_BYTES : 0;
            int valid = left < 0 ? 0 : (left < LOAD_BYTES ? left : LOAD_BYTES);
            const STORAGE *from = valid > 0 ? base + offset[i] + k : base;
#endif
            // Neighbouring taps of a filter read the same pixels.
            copy_async<LOAD_BYTES, (BY_WARPGROUP && TAPS > 1)>(tile + place<ROW_BYTES / 16>(row, chunk) * 16 + inside, from, valid);
        }
    }

    DEVICE void advance() { k += TILE_K; }
};

#if RIGHT_BY_ROWS
constexpr int RIGHT_ROW_BYTES = TILE_N * ELEMENT_BYTES;
constexpr int RIGHT_TILE_ROWS = TILE_K;
#else
constexpr int RIGHT_ROW_BYTES = ROW_BYTES;
constexpr int RIGHT_TILE_ROWS = TILE_N;
#endif
constexpr int RIGHT_COLUMNS = RIGHT_ROW_BYTES / RIGHT_LOAD_BYTES;
constexpr int RIGHT_ROWS = THREADS / RIGHT_COLUMNS;
constexpr int RIGHT_LOADS = (RIGHT_TILE_ROWS + RIGHT_ROWS - 1) / RIGHT_ROWS;
constexpr int RIGHT_LOAD_ELEMENTS = RIGHT_LOAD_BYTES / ELEMENT_BYTES;

struct RightLoader {
    const STORAGE *base;
    int k;

    DEVICE void start(const Problem &p, const STORAGE *right, int tile_n, int first_k) {
#if RIGHT_BY_ROWS
        base = right + tile_n * TILE_N;
#else
        base = right + (i64)tile_n * TILE_N * p.right_stride;
#endif
        k = first_k;
    }

    DEVICE void load(const Problem &p, u32 tile, int tile_n) const {
        int column = threadIdx.x % RIGHT_COLUMNS;
        int row = threadIdx.x / RIGHT_COLUMNS;
        int chunk = column * RIGHT_LOAD_BYTES / 16, inside = column * RIGHT_LOAD_BYTES % 16;
        int n_left = p.n - tile_n * TILE_N;
#pragma unroll
        for (int i = 0; i < RIGHT_LOADS; i++, row += RIGHT_ROWS) {
            if (RIGHT_TILE_ROWS % RIGHT_ROWS != 0 && row >= RIGHT_TILE_ROWS) break;
#if RIGHT_BY_ROWS
            int left = k + row < p.k ? (n_left - column * RIGHT_LOAD_ELEMENTS) * ELEMENT_BYTES : 0;
            const STORAGE *at = base + (i64)(k + row) * p.right_stride + column * RIGHT_LOAD_ELEMENTS;
#else
            int left = row < n_left ? (p.k - k - column * RIGHT_LOAD_ELEMENTS) * ELEMENT_BYTES : 0;
            const STORAGE *at = base + row * p.right_stride + k + column * RIGHT_LOAD_ELEMENTS;
#endif
            int valid = left < 0 ? 0 : (left < RIGHT_LOAD_BYTES ? left : RIGHT_LOAD_BYTES);
            const STORAGE *from = valid > 0 ? at : base;
            copy_async<RIGHT_LOAD_BYTES>(tile + place<RIGHT_ROW_BYTES / 16>(row, chunk) * 16 + inside, from, valid);
        }
    }

    DEVICE void advance() { k += TILE_K; }
};
