//! Owns the vectors of AVX2 with FMA.

use std::arch::x86_64::*;

use super::{Simd, intrinsics};
use crate::SimdTask;

/// Proof that the machine has AVX2 and FMA.
#[derive(Debug, Clone, Copy)]
pub struct Avx2 {
    _detected: (),
}

impl Avx2 {
    /// The proof, where the machine has the features.
    #[inline]
    pub fn new() -> Option<Self> {
        (is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma"))
            .then_some(Self { _detected: () })
    }
}

/// Sliding by `8 - count` gives a mask with the first `count` lanes set.
static PARTIAL_MASKS: [i32; 16] = [-1, -1, -1, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0];

/// The mask for the first `count` lanes.
#[inline(always)]
unsafe fn partial_mask(count: usize) -> __m256i {
    debug_assert!(count <= 8);
    // SAFETY: `count <= 8`, so eight entries from `8 - count` lie in the table; the caller has AVX2.
    unsafe { _mm256_loadu_si256(PARTIAL_MASKS.as_ptr().add(8 - count).cast()) }
}

/// Four values from `source`, and four from four rows further.
///
/// # Safety
///
/// Both are readable, and the machine has AVX.
#[inline(always)]
unsafe fn two_halves(source: *const f32, stride: usize) -> __m256 {
    // SAFETY: the caller's promise.
    unsafe {
        let low = _mm256_castps128_ps256(_mm_loadu_ps(source));
        _mm256_insertf128_ps::<1>(low, _mm_loadu_ps(source.add(4 * stride)))
    }
}

impl Simd for Avx2 {
    type F32 = __m256;
    type Mask = __m256;

    const LANES: usize = 8;
    const REGISTERS: usize = 16;

    type Narrow = Self;

    #[inline(always)]
    fn narrow(self) -> Self {
        self
    }

    #[inline]
    fn enter<T: SimdTask>(self, task: T) -> T::Output {
        #[target_feature(enable = "avx2,fma")]
        fn entered<T: SimdTask>(simd: Avx2, task: T) -> T::Output {
            task.run(simd)
        }
        // SAFETY: the token proves that the features are present.
        unsafe { entered(self, task) }
    }

    #[inline(always)]
    unsafe fn load(self, source: *const f32) -> __m256 {
        // SAFETY: the caller promises eight readable values; the token proves AVX.
        unsafe { _mm256_loadu_ps(source) }
    }

    #[inline(always)]
    unsafe fn store(self, target: *mut f32, value: __m256) {
        // SAFETY: the caller promises eight writable values; the token proves AVX.
        unsafe { _mm256_storeu_ps(target, value) }
    }

    #[inline(always)]
    unsafe fn load_partial(self, source: *const f32, count: usize) -> __m256 {
        // SAFETY: masked-out lanes are not accessed; the caller promises the others; the token proves AVX2.
        unsafe { _mm256_maskload_ps(source, partial_mask(count)) }
    }

    #[inline(always)]
    unsafe fn store_partial(self, target: *mut f32, value: __m256, count: usize) {
        // SAFETY: masked-out lanes are not accessed; the caller promises the others; the token proves AVX2.
        unsafe { _mm256_maskstore_ps(target, partial_mask(count), value) }
    }

    #[inline(always)]
    unsafe fn transpose_8x8(
        self,
        source: *const f32,
        source_stride: usize,
        target: *mut f32,
        target_stride: usize,
    ) {
        // SAFETY: the caller promises eight rows of eight values on both sides; the token proves AVX2.
        unsafe {
            for column in [0, 4] {
                // Each vector holds half of row `r` and half of row `r + 4`, so that the rest stays within halves.
                let r0 = two_halves(source.add(column), source_stride);
                let r1 = two_halves(source.add(source_stride + column), source_stride);
                let r2 = two_halves(source.add(2 * source_stride + column), source_stride);
                let r3 = two_halves(source.add(3 * source_stride + column), source_stride);
                let (a, b) = (_mm256_unpacklo_ps(r0, r1), _mm256_unpackhi_ps(r0, r1));
                let (c, d) = (_mm256_unpacklo_ps(r2, r3), _mm256_unpackhi_ps(r2, r3));
                let rows = [
                    _mm256_shuffle_ps::<0x44>(a, c),
                    _mm256_shuffle_ps::<0xee>(a, c),
                    _mm256_shuffle_ps::<0x44>(b, d),
                    _mm256_shuffle_ps::<0xee>(b, d),
                ];
                for (offset, row) in rows.into_iter().enumerate() {
                    _mm256_storeu_ps(target.add((column + offset) * target_stride), row);
                }
            }
        }
    }

    intrinsics! {
        fn splat(value: f32) -> __m256 { _mm256_set1_ps(value) }
        fn add(a: __m256, b: __m256) -> __m256 { _mm256_add_ps(a, b) }
        fn sub(a: __m256, b: __m256) -> __m256 { _mm256_sub_ps(a, b) }
        fn mul(a: __m256, b: __m256) -> __m256 { _mm256_mul_ps(a, b) }
        fn div(a: __m256, b: __m256) -> __m256 { _mm256_div_ps(a, b) }
        fn fma(a: __m256, b: __m256, c: __m256) -> __m256 { _mm256_fmadd_ps(a, b, c) }
        fn neg(a: __m256) -> __m256 { _mm256_xor_ps(a, _mm256_set1_ps(-0.0)) }
        fn abs(a: __m256) -> __m256 { _mm256_andnot_ps(_mm256_set1_ps(-0.0), a) }
        fn min(a: __m256, b: __m256) -> __m256 { _mm256_min_ps(a, b) }
        fn max(a: __m256, b: __m256) -> __m256 { _mm256_max_ps(a, b) }
        fn sqrt(a: __m256) -> __m256 { _mm256_sqrt_ps(a) }
        fn floor(a: __m256) -> __m256 { _mm256_floor_ps(a) }
        fn round(a: __m256) -> __m256 {
            _mm256_round_ps::<{ _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC }>(a)
        }
        fn lt(a: __m256, b: __m256) -> __m256 { _mm256_cmp_ps::<_CMP_LT_OQ>(a, b) }
        fn le(a: __m256, b: __m256) -> __m256 { _mm256_cmp_ps::<_CMP_LE_OQ>(a, b) }
        fn eq(a: __m256, b: __m256) -> __m256 { _mm256_cmp_ps::<_CMP_EQ_OQ>(a, b) }
        fn select(mask: __m256, yes: __m256, no: __m256) -> __m256 { _mm256_blendv_ps(no, yes, mask) }
        fn pow2(n: __m256) -> __m256 { {
            let biased = _mm256_add_epi32(_mm256_cvtps_epi32(n), _mm256_set1_epi32(127));
            _mm256_castsi256_ps(_mm256_slli_epi32::<23>(biased))
        } }
        fn mul_pow2(a: __m256, n: __m256) -> __m256 { {
            // One step would overflow the exponent field where the result is infinite, subnormal or zero.
            let n = _mm256_cvtps_epi32(n);
            let half = _mm256_srai_epi32::<1>(n);
            let bias = _mm256_set1_epi32(127);
            let first = _mm256_slli_epi32::<23>(_mm256_add_epi32(half, bias));
            let second = _mm256_slli_epi32::<23>(_mm256_add_epi32(_mm256_sub_epi32(n, half), bias));
            _mm256_mul_ps(_mm256_mul_ps(a, _mm256_castsi256_ps(first)), _mm256_castsi256_ps(second))
        } }
        fn exponent_mantissa(a: __m256) -> (__m256, __m256) { {
            let bits = _mm256_castps_si256(a);
            let exponent = _mm256_sub_epi32(_mm256_srli_epi32::<23>(bits), _mm256_set1_epi32(127));
            let mantissa = _mm256_or_si256(
                _mm256_and_si256(bits, _mm256_set1_epi32(0x007f_ffff)),
                _mm256_set1_epi32(0x3f80_0000),
            );
            (_mm256_cvtepi32_ps(exponent), _mm256_castsi256_ps(mantissa))
        } }
        fn copy_sign(a: __m256, sign: __m256) -> __m256 { {
            let sign_bit = _mm256_set1_ps(-0.0);
            _mm256_or_ps(_mm256_andnot_ps(sign_bit, a), _mm256_and_ps(sign_bit, sign))
        } }
        fn sum(a: __m256) -> f32 { {
            let four = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps::<1>(a));
            let two = _mm_add_ps(four, _mm_movehl_ps(four, four));
            _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)))
        } }
        fn max_lane(a: __m256) -> f32 { {
            let four = _mm_max_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps::<1>(a));
            let two = _mm_max_ps(four, _mm_movehl_ps(four, four));
            _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)))
        } }
        fn prefetch(address: *const f32) -> () { _mm_prefetch::<_MM_HINT_T0>(address.cast()) }
    }
}
