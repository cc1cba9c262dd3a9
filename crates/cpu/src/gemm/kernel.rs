//! Owns the register kernels: a few rows times one panel, summed in registers.

use crate::SimdTask;
use crate::simd::{Simd, math};

/// The most rows any kernel takes.
pub(super) const MOST_ROWS: usize = 12;

/// How many sums a single row is spread over.
const CHAINS: usize = 4;

/// One use of a kernel. Strides are in values.
#[derive(Clone, Copy)]
pub(super) struct KernelCall<'a> {
    /// How many products are summed for each result.
    pub(super) depth: usize,
    /// The left operand, row by row.
    pub(super) a: *const f32,
    pub(super) a_stride: usize,
    /// The panel, `depth` rows of the kernel's width.
    pub(super) b: *const f32,
    pub(super) c: *mut f32,
    pub(super) c_stride: usize,
    /// Whether the sum is added to what the result holds, instead of replacing it.
    pub(super) accumulate: bool,
    /// What to do to the complete sum; absent while parts of it are missing.
    pub(super) finish: Option<&'a RegisterFinish>,
}

/// The part of an epilogue that is done in registers, for one panel and one group of rows.
#[derive(Clone, Copy)]
pub(super) struct RegisterFinish {
    /// One value per column, or null.
    pub(super) bias: *const f32,
    /// Rows like those of the result, or null.
    pub(super) residual: *const f32,
    pub(super) residual_stride: usize,
    pub(super) residual_last: bool,
    /// Limits, where there are any.
    pub(super) range: Option<(f32, f32)>,
    /// Whether the sums are gated as HardSwish does it.
    pub(super) is_hard_swish: bool,
}

/// The most rows that a kernel of the given width can take without running out of registers.
pub(super) fn rows_for<S: Simd>(single_vectors: bool) -> usize {
    match S::REGISTERS {
        32 => 12,
        16 if single_vectors => 12,
        16 => 6,
        _ => 4,
    }
}

/// Multiplies `rows` rows with a panel of `vectors` vectors.
///
/// # Safety
///
/// All pointers are valid for the rows, width and depth; `1 <= rows <= rows_for(vectors == 1)`, and `vectors` is 1 or 2.
#[inline(always)]
pub(super) unsafe fn multiply_rows<S: Simd>(
    simd: S,
    rows: usize,
    vectors: usize,
    call: KernelCall,
) {
    macro_rules! dispatch {
        ($($rows:literal)*) => {
            match (rows, vectors) {
                $(($rows, 1) => simd.enter(Kernel::<$rows, 1>(call)),)*
                $(($rows, 2) if $rows <= rows_for::<S>(false) => simd.enter(Kernel::<$rows, 2>(call)),)*
                _ => unreachable!("no kernel of {rows} rows and {vectors} vectors"),
            }
        };
    }
    dispatch!(1 2 3 4 5 6 7 8 9 10 11 12);
}

/// Multiplies a single row with a panel of `vectors` vectors, summing in several chains to keep up with memory.
///
/// # Safety
///
/// As for [`multiply_rows`] with one row.
#[inline(always)]
pub(super) unsafe fn multiply_single_row<S: Simd>(simd: S, vectors: usize, call: KernelCall) {
    match vectors {
        1 => simd.enter(SingleRow::<1>(call)),
        2 => simd.enter(SingleRow::<2>(call)),
        _ => unreachable!("no kernel of {vectors} vectors"),
    }
}

/// Made only by [`multiply_rows`], whose caller vouches for the pointers.
struct Kernel<'a, const ROWS: usize, const VECTORS: usize>(KernelCall<'a>);

impl<const ROWS: usize, const VECTORS: usize> SimdTask for Kernel<'_, ROWS, VECTORS> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let call = self.0;
        let width = VECTORS * S::LANES;
        let mut sums = [[simd.zero(); VECTORS]; ROWS];
        let (mut a, mut b) = (call.a, call.b);
        // SAFETY: the maker promises `depth` values in each of `ROWS` rows of `a`, and `depth` rows of `width` in `b`.
        unsafe {
            // Not unrolled: the compiler would read ahead more of `a` than there are registers to hold.
            for _ in 0..call.depth {
                step(simd, a, call.a_stride, b, &mut sums);
                a = a.add(1);
                b = b.add(width);
            }
        }
        // SAFETY: the maker promises as much for the result and for the operands of the finish.
        unsafe { store(simd, &call, sums) }
    }
}

/// Made only by [`multiply_single_row`], whose caller vouches for the pointers.
struct SingleRow<'a, const VECTORS: usize>(KernelCall<'a>);

impl<const VECTORS: usize> SimdTask for SingleRow<'_, VECTORS> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        /// How many values ahead of its use a line of the panel is asked for.
        const AHEAD: usize = 1024;
        let call = self.0;
        let width = VECTORS * S::LANES;
        let mut chains = [[[simd.zero(); VECTORS]; 1]; CHAINS];
        let (mut a, mut b) = (call.a, call.b);
        // SAFETY: the maker promises `depth` values of `a`, and `depth` rows of `width` in `b`.
        unsafe {
            for _ in 0..call.depth / CHAINS {
                for line in 0..CHAINS * width / 16 {
                    simd.prefetch(b.wrapping_add(AHEAD + line * 16));
                }
                for (offset, sums) in chains.iter_mut().enumerate() {
                    step(simd, a.add(offset), 0, b.add(offset * width), sums);
                }
                a = a.add(CHAINS);
                b = b.add(CHAINS * width);
            }
            for _ in 0..call.depth % CHAINS {
                step(simd, a, 0, b, &mut chains[0]);
                a = a.add(1);
                b = b.add(width);
            }
        }
        let mut sums = [[simd.zero(); VECTORS]; 1];
        for (vector, sum) in sums[0].iter_mut().enumerate() {
            let even = simd.add(chains[0][0][vector], chains[2][0][vector]);
            let odd = simd.add(chains[1][0][vector], chains[3][0][vector]);
            *sum = simd.add(even, odd);
        }
        // SAFETY: the maker promises as much for the result and for the operands of the finish.
        unsafe { store(simd, &call, sums) }
    }
}

/// Adds one term to each sum. A function and not a closure: only functions can be made to inline.
///
/// # Safety
///
/// `b` is valid for `VECTORS` vectors, and `a` for one value in each of `ROWS` rows.
#[inline(always)]
unsafe fn step<S: Simd, const ROWS: usize, const VECTORS: usize>(
    simd: S,
    a: *const f32,
    a_stride: usize,
    b: *const f32,
    sums: &mut [[S::F32; VECTORS]; ROWS],
) {
    let mut columns = [simd.zero(); VECTORS];
    for (vector, column) in columns.iter_mut().enumerate() {
        // SAFETY: the caller promises `VECTORS` vectors.
        *column = unsafe { simd.load(b.add(vector * S::LANES)) };
    }
    for (row, sums) in sums.iter_mut().enumerate() {
        // SAFETY: the caller promises a value in each row.
        let factor = simd.splat(unsafe { *a.add(row * a_stride) });
        for (sum, &column) in sums.iter_mut().zip(&columns) {
            *sum = simd.fma(factor, column, *sum);
        }
    }
}

/// Adds what has to be added, and stores.
///
/// # Safety
///
/// The pointers of `call` are valid for `ROWS` rows of `VECTORS` vectors.
#[inline(always)]
unsafe fn store<S: Simd, const ROWS: usize, const VECTORS: usize>(
    simd: S,
    call: &KernelCall,
    mut sums: [[S::F32; VECTORS]; ROWS],
) {
    // SAFETY: every address below is row `row`, vector `vector` of a matrix the caller vouches for.
    unsafe {
        if call.accumulate {
            add_matrix(simd, &mut sums, call.c, call.c_stride);
        }
        if let Some(finish) = call.finish {
            if !finish.bias.is_null() {
                add_matrix(simd, &mut sums, finish.bias, 0);
            }
            if !finish.residual.is_null() && !finish.residual_last {
                add_matrix(simd, &mut sums, finish.residual, finish.residual_stride);
            }
            if let Some((low, high)) = finish.range {
                let (low, high) = (simd.splat(low), simd.splat(high));
                for sum in sums.iter_mut().flatten() {
                    *sum = simd.min(high, simd.max(low, *sum));
                }
            }
            if finish.is_hard_swish {
                for sum in sums.iter_mut().flatten() {
                    *sum = math::hard_swish(simd, *sum);
                }
            }
            if !finish.residual.is_null() && finish.residual_last {
                add_matrix(simd, &mut sums, finish.residual, finish.residual_stride);
            }
        }
        for (row, sums) in sums.iter().enumerate() {
            for (vector, &sum) in sums.iter().enumerate() {
                simd.store(call.c.add(row * call.c_stride + vector * S::LANES), sum);
            }
        }
    }
}

/// Adds the matrix at `source` to `sums`.
///
/// # Safety
///
/// The matrix has `ROWS` rows of `VECTORS` vectors.
#[inline(always)]
unsafe fn add_matrix<S: Simd, const ROWS: usize, const VECTORS: usize>(
    simd: S,
    sums: &mut [[S::F32; VECTORS]; ROWS],
    source: *const f32,
    stride: usize,
) {
    for (row, sums) in sums.iter_mut().enumerate() {
        for (vector, sum) in sums.iter_mut().enumerate() {
            // SAFETY: the caller promises this row and vector.
            *sum =
                simd.add(*sum, unsafe { simd.load(source.add(row * stride + vector * S::LANES)) });
        }
    }
}
