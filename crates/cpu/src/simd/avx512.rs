//! Owns the vectors of AVX-512.

use std::arch::x86_64::*;

use super::{Avx2, Simd, intrinsics};
use crate::SimdTask;

/// Proof that the machine has AVX-512 F, BW, DQ and VL.
#[derive(Debug, Clone, Copy)]
pub struct Avx512 {
    narrow: Avx2,
}

impl Avx512 {
    /// The proof, where the machine has the features.
    #[inline]
    pub fn new() -> Option<Self> {
        let narrow = Avx2::new()?;
        (is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512vl"))
        .then_some(Self { narrow })
    }
}

/// The mask for the first `count` lanes.
#[inline(always)]
fn partial_mask(count: usize) -> __mmask16 {
    debug_assert!(count <= 16);
    ((1u32 << count) - 1) as __mmask16
}

impl Simd for Avx512 {
    type F32 = __m512;
    type Mask = __mmask16;

    const LANES: usize = 16;
    const REGISTERS: usize = 32;

    type Narrow = Avx2;

    #[inline(always)]
    fn narrow(self) -> Avx2 {
        self.narrow
    }

    #[inline]
    fn enter<T: SimdTask>(self, task: T) -> T::Output {
        #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")]
        fn entered<T: SimdTask>(simd: Avx512, task: T) -> T::Output {
            task.run(simd)
        }
        // SAFETY: the token proves that the features are present.
        unsafe { entered(self, task) }
    }

    #[inline(always)]
    unsafe fn load(self, source: *const f32) -> __m512 {
        // SAFETY: the caller promises 16 readable values; the token proves AVX-512.
        unsafe { _mm512_loadu_ps(source) }
    }

    #[inline(always)]
    unsafe fn store(self, target: *mut f32, value: __m512) {
        // SAFETY: the caller promises 16 writable values; the token proves AVX-512.
        unsafe { _mm512_storeu_ps(target, value) }
    }

    #[inline(always)]
    unsafe fn load_partial(self, source: *const f32, count: usize) -> __m512 {
        // SAFETY: masked-out lanes are not accessed; the caller promises the others; the token proves AVX-512.
        unsafe { _mm512_maskz_loadu_ps(partial_mask(count), source) }
    }

    #[inline(always)]
    unsafe fn store_partial(self, target: *mut f32, value: __m512, count: usize) {
        // SAFETY: masked-out lanes are not accessed; the caller promises the others; the token proves AVX-512.
        unsafe { _mm512_mask_storeu_ps(target, partial_mask(count), value) }
    }

    #[inline(always)]
    unsafe fn transpose_8x8(
        self,
        source: *const f32,
        source_stride: usize,
        target: *mut f32,
        target_stride: usize,
    ) {
        // SAFETY: the caller's promise is the same.
        unsafe { self.narrow.transpose_8x8(source, source_stride, target, target_stride) }
    }

    intrinsics! {
        fn splat(value: f32) -> __m512 { _mm512_set1_ps(value) }
        fn add(a: __m512, b: __m512) -> __m512 { _mm512_add_ps(a, b) }
        fn sub(a: __m512, b: __m512) -> __m512 { _mm512_sub_ps(a, b) }
        fn mul(a: __m512, b: __m512) -> __m512 { _mm512_mul_ps(a, b) }
        fn div(a: __m512, b: __m512) -> __m512 { _mm512_div_ps(a, b) }
        fn fma(a: __m512, b: __m512, c: __m512) -> __m512 { _mm512_fmadd_ps(a, b, c) }
        fn neg(a: __m512) -> __m512 { _mm512_xor_ps(a, _mm512_set1_ps(-0.0)) }
        fn abs(a: __m512) -> __m512 { _mm512_andnot_ps(_mm512_set1_ps(-0.0), a) }
        fn min(a: __m512, b: __m512) -> __m512 { _mm512_min_ps(a, b) }
        fn max(a: __m512, b: __m512) -> __m512 { _mm512_max_ps(a, b) }
        fn sqrt(a: __m512) -> __m512 { _mm512_sqrt_ps(a) }
        fn floor(a: __m512) -> __m512 {
            _mm512_roundscale_ps::<{ _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC }>(a)
        }
        fn round(a: __m512) -> __m512 {
            _mm512_roundscale_ps::<{ _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC }>(a)
        }
        fn lt(a: __m512, b: __m512) -> __mmask16 { _mm512_cmp_ps_mask::<_CMP_LT_OQ>(a, b) }
        fn le(a: __m512, b: __m512) -> __mmask16 { _mm512_cmp_ps_mask::<_CMP_LE_OQ>(a, b) }
        fn eq(a: __m512, b: __m512) -> __mmask16 { _mm512_cmp_ps_mask::<_CMP_EQ_OQ>(a, b) }
        fn select(mask: __mmask16, yes: __m512, no: __m512) -> __m512 { _mm512_mask_blend_ps(mask, no, yes) }
        fn pow2(n: __m512) -> __m512 { _mm512_scalef_ps(_mm512_set1_ps(1.0), n) }
        fn mul_pow2(a: __m512, n: __m512) -> __m512 { _mm512_scalef_ps(a, n) }
        fn exponent_mantissa(a: __m512) -> (__m512, __m512) {
            (_mm512_getexp_ps(a), _mm512_getmant_ps::<_MM_MANT_NORM_1_2, _MM_MANT_SIGN_SRC>(a))
        }
        fn copy_sign(a: __m512, sign: __m512) -> __m512 { {
            let sign_bit = _mm512_set1_ps(-0.0);
            _mm512_or_ps(_mm512_andnot_ps(sign_bit, a), _mm512_and_ps(sign_bit, sign))
        } }
        fn sum(a: __m512) -> f32 { _mm512_reduce_add_ps(a) }
        fn max_lane(a: __m512) -> f32 { _mm512_reduce_max_ps(a) }
        fn prefetch(address: *const f32) -> () { _mm_prefetch::<_MM_HINT_T0>(address.cast()) }
    }
}
