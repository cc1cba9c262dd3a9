//! Owns elementary functions on vectors; each is accurate to about 1e-6 relative and keeps NaN.

use super::Simd;

/// Evaluates a polynomial, coefficient of the highest power first.
#[inline(always)]
fn polynomial<S: Simd, const TERMS: usize>(
    simd: S,
    x: S::F32,
    coefficients: [f32; TERMS],
) -> S::F32 {
    let mut value = simd.splat(coefficients[0]);
    for &coefficient in &coefficients[1..] {
        value = simd.fma(value, x, simd.splat(coefficient));
    }
    value
}

/// `x` limited to `low..=high`, NaN kept.
#[inline(always)]
pub fn clamp<S: Simd>(simd: S, x: S::F32, low: f32, high: f32) -> S::F32 {
    simd.min(simd.splat(high), simd.max(simd.splat(low), x))
}

/// `e^x`.
#[inline(always)]
pub fn exp<S: Simd>(simd: S, x: S::F32) -> S::F32 {
    // Past these ends the result is infinite or zero in any case.
    let x = clamp(simd, x, -104.0, 89.0);
    let n = simd.round(simd.mul(x, simd.splat(std::f32::consts::LOG2_E)));
    // ln 2 in two parts, the first with few enough bits that its product with `n` is exact.
    let r = simd.fma(n, simd.splat(-0.693_359_4), x);
    let r = simd.fma(n, simd.splat(2.121_944_4e-4), r);
    let tail = polynomial(
        simd,
        r,
        [1.987_569_1e-4, 1.398_199_9e-3, 8.333_452e-3, 4.166_579_6e-2, 1.666_666_5e-1, 5e-1],
    );
    let value = simd.add(simd.fma(tail, simd.mul(r, r), r), simd.splat(1.0));
    simd.mul_pow2(value, n)
}

/// The natural logarithm.
#[inline(always)]
pub fn ln<S: Simd>(simd: S, x: S::F32) -> S::F32 {
    let zero = simd.zero();
    let infinity = simd.splat(f32::INFINITY);
    let is_subnormal = simd.lt(x, simd.splat(f32::MIN_POSITIVE));
    let scaled = simd.select(is_subnormal, simd.mul(x, simd.splat(8_388_608.0)), x);
    let (exponent, mantissa) = simd.exponent_mantissa(scaled);
    let exponent = simd.sub(exponent, simd.select(is_subnormal, simd.splat(23.0), zero));
    // Centre the mantissa on 1 so that the polynomial's argument stays small.
    let is_high = simd.lt(simd.splat(std::f32::consts::SQRT_2), mantissa);
    let mantissa = simd.select(is_high, simd.mul(mantissa, simd.splat(0.5)), mantissa);
    let exponent = simd.select(is_high, simd.add(exponent, simd.splat(1.0)), exponent);
    let r = simd.sub(mantissa, simd.splat(1.0));
    let square = simd.mul(r, r);
    let tail = polynomial(
        simd,
        r,
        [
            7.037_683_6e-2,
            -1.151_461e-1,
            1.167_699_9e-1,
            -1.242_014_1e-1,
            1.424_932_3e-1,
            -1.666_805_8e-1,
            2.000_071_5e-1,
            -2.499_999_4e-1,
            3.333_333e-1,
        ],
    );
    let tail = simd.mul(simd.mul(tail, r), square);
    let tail = simd.fma(exponent, simd.splat(-2.121_944_4e-4), tail);
    let tail = simd.fma(square, simd.splat(-0.5), tail);
    let value = simd.fma(exponent, simd.splat(0.693_359_4), simd.add(r, tail));
    let value = simd.select(simd.lt(x, infinity), value, x);
    let value = simd.select(simd.eq(x, zero), simd.splat(f32::NEG_INFINITY), value);
    simd.select(simd.lt(x, zero), simd.splat(f32::NAN), value)
}

/// `1 / (1 + e^-x)`.
#[inline(always)]
pub fn sigmoid<S: Simd>(simd: S, x: S::F32) -> S::F32 {
    let one = simd.splat(1.0);
    simd.div(one, simd.add(one, exp(simd, simd.neg(x))))
}

/// The hyperbolic tangent.
#[inline(always)]
pub fn tanh<S: Simd>(simd: S, x: S::F32) -> S::F32 {
    // A rational function, odd over even; far out the result is one exactly, so that `1 + tanh` of GELU vanishes.
    let is_far = simd.le(simd.splat(9.02), simd.abs(x));
    let far = simd.copy_sign(simd.splat(1.0), x);
    let x = clamp(simd, x, -7.905_311, 7.905_311);
    let square = simd.mul(x, x);
    let above = polynomial(
        simd,
        square,
        [
            -2.760_768_4e-16,
            2.000_188e-13,
            -8.604_672e-11,
            5.122_297_3e-8,
            1.485_722_35e-5,
            6.372_619_5e-4,
            4.893_524_6e-3,
        ],
    );
    let below =
        polynomial(simd, square, [1.198_258_4e-6, 1.185_347_1e-4, 2.268_434_7e-3, 4.893_525e-3]);
    simd.select(is_far, far, simd.div(simd.mul(x, above), below))
}

/// The error function.
#[inline(always)]
pub fn erf<S: Simd>(simd: S, x: S::F32) -> S::F32 {
    // A rational function, odd over even; far out the result is one exactly, so that `1 + erf` of GELU vanishes.
    let is_far = simd.le(simd.splat(4.0), simd.abs(x));
    let far = simd.copy_sign(simd.splat(1.0), x);
    let x = clamp(simd, x, -4.0, 4.0);
    let square = simd.mul(x, x);
    let above = polynomial(
        simd,
        square,
        [
            -2.726_142_3e-10,
            2.770_681_4e-8,
            -2.101_024e-6,
            -5.692_506_4e-5,
            -7.349_906e-4,
            -2.954_6e-3,
            -1.609_603_3e-2,
        ],
    );
    let below = polynomial(
        simd,
        square,
        [-1.456_607_2e-5, -2.133_740_6e-4, -1.682_827e-3, -7.373_329_2e-3, -1.426_473_9e-2],
    );
    simd.select(is_far, far, simd.div(simd.mul(x, above), below))
}

/// `x * sigmoid(x)`.
#[inline(always)]
pub fn silu<S: Simd>(simd: S, x: S::F32) -> S::F32 {
    // Where the exponential overflows the quotient is -0, but the product with minus infinity would be NaN.
    let x = simd.max(simd.splat(-1e30), x);
    simd.div(x, simd.add(simd.splat(1.0), exp(simd, simd.neg(x))))
}

/// `x * clamp(x / 6 + 1 / 2, 0, 1)`.
#[inline(always)]
pub fn hard_swish<S: Simd>(simd: S, x: S::F32) -> S::F32 {
    simd.mul(x, hard_sigmoid(simd, x, 1.0 / 6.0, 0.5))
}

/// `clamp(alpha * x + beta, 0, 1)`.
#[inline(always)]
pub fn hard_sigmoid<S: Simd>(simd: S, x: S::F32, alpha: f32, beta: f32) -> S::F32 {
    clamp(simd, simd.fma(x, simd.splat(alpha), simd.splat(beta)), 0.0, 1.0)
}

/// `x * (1 + erf(x / sqrt 2)) / 2`; the error is relative to `x`.
#[inline(always)]
pub fn gelu<S: Simd>(simd: S, x: S::F32) -> S::F32 {
    // Below this the result is zero to working accuracy; going on would multiply the rounding of `1 + erf` by `x`.
    let x = simd.max(simd.splat(-6.0), x);
    let erf = erf(simd, simd.mul(x, simd.splat(std::f32::consts::FRAC_1_SQRT_2)));
    let half = simd.mul(x, simd.splat(0.5));
    simd.fma(half, erf, half)
}

/// `x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3))) / 2`; the error is relative to `x`.
#[inline(always)]
pub fn gelu_tanh<S: Simd>(simd: S, x: S::F32) -> S::F32 {
    // As in `gelu`; and far up the tangent is one long before the cube could overflow.
    let x = simd.max(simd.splat(-6.0), x);
    let near = clamp(simd, x, -6.0, 100.0);
    let cubic = simd.fma(simd.mul(near, near), simd.mul(near, simd.splat(0.044_715)), near);
    let tanh = tanh(simd, simd.mul(cubic, simd.splat(0.797_884_6)));
    let half = simd.mul(x, simd.splat(0.5));
    simd.fma(half, tanh, half)
}
