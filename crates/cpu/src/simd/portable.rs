//! Owns the vectors that need no particular instruction set: arrays that the compiler may vectorise.

use super::Simd;
use crate::SimdTask;

const LANES: usize = 8;

/// Arrays of eight values and plain arithmetic; `fma` rounds twice.
#[derive(Debug, Clone, Copy)]
pub struct Portable;

#[inline(always)]
fn map(a: [f32; LANES], function: impl Fn(f32) -> f32) -> [f32; LANES] {
    std::array::from_fn(|lane| function(a[lane]))
}

#[inline(always)]
fn zip<T>(a: [f32; LANES], b: [f32; LANES], function: impl Fn(f32, f32) -> T) -> [T; LANES] {
    std::array::from_fn(|lane| function(a[lane], b[lane]))
}

#[inline(always)]
fn power_of_two(n: i32) -> f32 {
    f32::from_bits(((n + 127) as u32) << 23)
}

impl Simd for Portable {
    type F32 = [f32; LANES];
    type Mask = [bool; LANES];

    const LANES: usize = LANES;
    const REGISTERS: usize = 8;

    type Narrow = Self;

    #[inline(always)]
    fn narrow(self) -> Self {
        self
    }

    #[inline]
    fn enter<T: SimdTask>(self, task: T) -> T::Output {
        task.run(self)
    }

    #[inline(always)]
    unsafe fn load(self, source: *const f32) -> Self::F32 {
        // SAFETY: the caller promises `LANES` readable values.
        unsafe { source.cast::<[f32; LANES]>().read_unaligned() }
    }

    #[inline(always)]
    unsafe fn store(self, target: *mut f32, value: Self::F32) {
        // SAFETY: the caller promises `LANES` writable values.
        unsafe { target.cast::<[f32; LANES]>().write_unaligned(value) }
    }

    #[inline(always)]
    unsafe fn load_partial(self, source: *const f32, count: usize) -> Self::F32 {
        let mut value = [0.0; LANES];
        for (lane, slot) in value.iter_mut().enumerate().take(count) {
            // SAFETY: the caller promises `count` readable values, and `lane < count`.
            *slot = unsafe { source.add(lane).read() };
        }
        value
    }

    #[inline(always)]
    unsafe fn store_partial(self, target: *mut f32, value: Self::F32, count: usize) {
        for (lane, &item) in value.iter().enumerate().take(count) {
            // SAFETY: the caller promises `count` writable values, and `lane < count`.
            unsafe { target.add(lane).write(item) };
        }
    }

    #[inline(always)]
    fn splat(self, value: f32) -> Self::F32 {
        [value; LANES]
    }

    #[inline(always)]
    fn add(self, a: Self::F32, b: Self::F32) -> Self::F32 {
        zip(a, b, |a, b| a + b)
    }

    #[inline(always)]
    fn sub(self, a: Self::F32, b: Self::F32) -> Self::F32 {
        zip(a, b, |a, b| a - b)
    }

    #[inline(always)]
    fn mul(self, a: Self::F32, b: Self::F32) -> Self::F32 {
        zip(a, b, |a, b| a * b)
    }

    #[inline(always)]
    fn div(self, a: Self::F32, b: Self::F32) -> Self::F32 {
        zip(a, b, |a, b| a / b)
    }

    #[inline(always)]
    fn fma(self, a: Self::F32, b: Self::F32, c: Self::F32) -> Self::F32 {
        std::array::from_fn(|lane| a[lane] * b[lane] + c[lane])
    }

    #[inline(always)]
    fn neg(self, a: Self::F32) -> Self::F32 {
        map(a, |a| -a)
    }

    #[inline(always)]
    fn abs(self, a: Self::F32) -> Self::F32 {
        map(a, f32::abs)
    }

    #[inline(always)]
    fn min(self, a: Self::F32, b: Self::F32) -> Self::F32 {
        zip(a, b, |a, b| if a < b { a } else { b })
    }

    #[inline(always)]
    fn max(self, a: Self::F32, b: Self::F32) -> Self::F32 {
        zip(a, b, |a, b| if a > b { a } else { b })
    }

    #[inline(always)]
    fn sqrt(self, a: Self::F32) -> Self::F32 {
        map(a, f32::sqrt)
    }

    #[inline(always)]
    fn floor(self, a: Self::F32) -> Self::F32 {
        map(a, f32::floor)
    }

    #[inline(always)]
    fn round(self, a: Self::F32) -> Self::F32 {
        map(a, f32::round_ties_even)
    }

    #[inline(always)]
    fn lt(self, a: Self::F32, b: Self::F32) -> Self::Mask {
        zip(a, b, |a, b| a < b)
    }

    #[inline(always)]
    fn le(self, a: Self::F32, b: Self::F32) -> Self::Mask {
        zip(a, b, |a, b| a <= b)
    }

    #[inline(always)]
    fn eq(self, a: Self::F32, b: Self::F32) -> Self::Mask {
        zip(a, b, |a, b| a == b)
    }

    #[inline(always)]
    fn select(self, mask: Self::Mask, yes: Self::F32, no: Self::F32) -> Self::F32 {
        std::array::from_fn(|lane| if mask[lane] { yes[lane] } else { no[lane] })
    }

    #[inline(always)]
    fn pow2(self, n: Self::F32) -> Self::F32 {
        map(n, |n| power_of_two((n as i32).clamp(-126, 127)))
    }

    #[inline(always)]
    fn mul_pow2(self, a: Self::F32, n: Self::F32) -> Self::F32 {
        zip(a, n, |a, n| {
            let n = (n as i32).clamp(-252, 254);
            let half = n >> 1;
            a * power_of_two(half) * power_of_two(n - half)
        })
    }

    #[inline(always)]
    fn exponent_mantissa(self, a: Self::F32) -> (Self::F32, Self::F32) {
        let exponent = map(a, |a| ((a.to_bits() >> 23) as i32 - 127) as f32);
        let mantissa = map(a, |a| f32::from_bits(a.to_bits() & 0x007f_ffff | 0x3f80_0000));
        (exponent, mantissa)
    }

    #[inline(always)]
    fn copy_sign(self, a: Self::F32, sign: Self::F32) -> Self::F32 {
        zip(a, sign, f32::copysign)
    }

    #[inline(always)]
    fn sum(self, a: Self::F32) -> f32 {
        ((a[0] + a[4]) + (a[2] + a[6])) + ((a[1] + a[5]) + (a[3] + a[7]))
    }

    #[inline(always)]
    fn max_lane(self, a: Self::F32) -> f32 {
        a.into_iter().fold(a[0], |greatest, item| if greatest > item { greatest } else { item })
    }

    #[inline(always)]
    unsafe fn transpose_8x8(
        self,
        source: *const f32,
        source_stride: usize,
        target: *mut f32,
        target_stride: usize,
    ) {
        for row in 0..8 {
            for column in 0..8 {
                // SAFETY: the caller promises eight rows of eight values on both sides.
                unsafe {
                    *target.add(column * target_stride + row) =
                        *source.add(row * source_stride + column)
                };
            }
        }
    }

    #[inline(always)]
    fn prefetch(self, _: *const f32) {}
}
