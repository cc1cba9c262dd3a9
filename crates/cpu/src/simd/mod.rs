//! Owns the vector vocabulary that kernels are written in, one implementation per instruction set.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
pub mod math;
mod portable;

#[cfg(target_arch = "x86_64")]
pub use avx2::Avx2;
#[cfg(target_arch = "x86_64")]
pub use avx512::Avx512;
pub use portable::Portable;

use crate::SimdTask;

/// Vectors of `f32` of one instruction set; a value of the type proves that the machine has it.
///
/// All operations are `#[inline(always)]` and must be reached from [`Isa::run`](crate::Isa::run) through functions that
/// are `#[inline(always)]` too, otherwise they are right but slow.
pub trait Simd: Copy + Send + Sync + 'static {
    /// A vector of [`Simd::LANES`] values.
    type F32: Copy;
    /// One boolean per lane.
    type Mask: Copy;

    /// Number of lanes.
    const LANES: usize;
    /// How many vectors can be named at once without spilling to memory.
    const REGISTERS: usize;

    /// The vectors with which to handle eight columns; narrower than these where the machine has such.
    type Narrow: Simd;

    /// The proof for [`Simd::Narrow`].
    fn narrow(self) -> Self::Narrow;

    /// Runs `task` in a function of its own that is compiled for this instruction set.
    fn enter<T: SimdTask>(self, task: T) -> T::Output;

    /// Loads `LANES` values.
    ///
    /// # Safety
    ///
    /// `source` is valid for reading `LANES` values; no alignment is needed.
    unsafe fn load(self, source: *const f32) -> Self::F32;

    /// Stores `LANES` values.
    ///
    /// # Safety
    ///
    /// `target` is valid for writing `LANES` values; no alignment is needed.
    unsafe fn store(self, target: *mut f32, value: Self::F32);

    /// Loads the first `count <= LANES` values and sets the other lanes to zero.
    ///
    /// # Safety
    ///
    /// `source` is valid for reading `count` values, and `count <= LANES`.
    unsafe fn load_partial(self, source: *const f32, count: usize) -> Self::F32;

    /// Stores the first `count <= LANES` lanes.
    ///
    /// # Safety
    ///
    /// `target` is valid for writing `count` values, and `count <= LANES`.
    unsafe fn store_partial(self, target: *mut f32, value: Self::F32, count: usize);

    /// The same value in every lane.
    fn splat(self, value: f32) -> Self::F32;
    /// `a + b`.
    fn add(self, a: Self::F32, b: Self::F32) -> Self::F32;
    /// `a - b`.
    fn sub(self, a: Self::F32, b: Self::F32) -> Self::F32;
    /// `a * b`.
    fn mul(self, a: Self::F32, b: Self::F32) -> Self::F32;
    /// `a / b`.
    fn div(self, a: Self::F32, b: Self::F32) -> Self::F32;
    /// `a * b + c`, rounded once where the instruction set can.
    fn fma(self, a: Self::F32, b: Self::F32, c: Self::F32) -> Self::F32;
    /// `-a`.
    fn neg(self, a: Self::F32) -> Self::F32;
    /// `|a|`.
    fn abs(self, a: Self::F32) -> Self::F32;
    /// The lesser value; `b` where either is NaN.
    fn min(self, a: Self::F32, b: Self::F32) -> Self::F32;
    /// The greater value; `b` where either is NaN.
    fn max(self, a: Self::F32, b: Self::F32) -> Self::F32;
    /// The square root.
    fn sqrt(self, a: Self::F32) -> Self::F32;
    /// The greatest integer that is not above `a`.
    fn floor(self, a: Self::F32) -> Self::F32;
    /// The nearest integer, halves to even.
    fn round(self, a: Self::F32) -> Self::F32;

    /// `a < b`; false where either is NaN.
    fn lt(self, a: Self::F32, b: Self::F32) -> Self::Mask;
    /// `a <= b`; false where either is NaN.
    fn le(self, a: Self::F32, b: Self::F32) -> Self::Mask;
    /// `a == b`; false where either is NaN.
    fn eq(self, a: Self::F32, b: Self::F32) -> Self::Mask;
    /// `yes` where the mask is set, `no` elsewhere.
    fn select(self, mask: Self::Mask, yes: Self::F32, no: Self::F32) -> Self::F32;

    /// `2^n` for integral `n` in `-126..=127`.
    fn pow2(self, n: Self::F32) -> Self::F32;
    /// `a * 2^n` for integral `n` in `-252..=254`, with the usual overflow to infinity and underflow to zero.
    fn mul_pow2(self, a: Self::F32, n: Self::F32) -> Self::F32;
    /// `(e, m)` with `a = m * 2^e` and `m` in `1..2`, for positive normal finite `a`.
    fn exponent_mantissa(self, a: Self::F32) -> (Self::F32, Self::F32);
    /// `|a|` with the sign of `sign`.
    fn copy_sign(self, a: Self::F32, sign: Self::F32) -> Self::F32;

    /// The sum of all lanes.
    fn sum(self, a: Self::F32) -> f32;
    /// The greatest lane; unspecified if one is NaN.
    fn max_lane(self, a: Self::F32) -> f32;

    /// Writes the transpose of the 8 by 8 block at `source` to `target`; strides are in values.
    ///
    /// # Safety
    ///
    /// Eight rows of eight values are readable at `source` and writable at `target`, and do not overlap.
    unsafe fn transpose_8x8(
        self,
        source: *const f32,
        source_stride: usize,
        target: *mut f32,
        target_stride: usize,
    );

    /// Asks for the cache line at `address` to be brought to the first-level cache; any address is allowed.
    fn prefetch(self, address: *const f32);

    /// Zero in every lane.
    #[inline(always)]
    fn zero(self) -> Self::F32 {
        self.splat(0.0)
    }

    /// Loads the start of `source`; lanes past its end are zero.
    #[inline(always)]
    fn load_slice(self, source: &[f32]) -> Self::F32 {
        if source.len() >= Self::LANES {
            // SAFETY: the slice holds at least `LANES` values.
            unsafe { self.load(source.as_ptr()) }
        } else {
            // SAFETY: the slice holds `source.len()` values, fewer than `LANES`.
            unsafe { self.load_partial(source.as_ptr(), source.len()) }
        }
    }

    /// Stores to the start of `target`; lanes past its end are dropped.
    #[inline(always)]
    fn store_slice(self, target: &mut [f32], value: Self::F32) {
        if target.len() >= Self::LANES {
            // SAFETY: the slice holds at least `LANES` values.
            unsafe { self.store(target.as_mut_ptr(), value) }
        } else {
            // SAFETY: the slice holds `target.len()` values, fewer than `LANES`.
            unsafe { self.store_partial(target.as_mut_ptr(), value, target.len()) }
        }
    }
}

/// Writes methods that are one instruction sequence each.
#[cfg(target_arch = "x86_64")]
macro_rules! intrinsics {
    ($(fn $name:ident($($argument:ident: $kind:ty),*) -> $output:ty { $body:expr })*) => {$(
        #[inline(always)]
        fn $name(self, $($argument: $kind),*) -> $output {
            // SAFETY: a token exists only on machines that have the features.
            unsafe { $body }
        }
    )*};
}
#[cfg(target_arch = "x86_64")]
use intrinsics;

#[cfg(test)]
mod tests;
