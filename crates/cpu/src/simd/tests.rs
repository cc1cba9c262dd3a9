use super::{Simd, math};
use crate::{Isa, SimdTask};

/// A function on vectors, named so that one table can hold many.
trait VectorFunction: Copy {
    fn apply<S: Simd>(self, simd: S, a: S::F32, b: S::F32) -> S::F32;
}

struct Map<'a, F> {
    function: F,
    a: &'a [f32],
    b: &'a [f32],
    output: &'a mut [f32],
}

impl<F: VectorFunction> SimdTask for Map<'_, F> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        for ((a, b), output) in self
            .a
            .chunks(S::LANES)
            .zip(self.b.chunks(S::LANES))
            .zip(self.output.chunks_mut(S::LANES))
        {
            let value = self.function.apply(simd, simd.load_slice(a), simd.load_slice(b));
            simd.store_slice(output, value);
        }
    }
}

fn supported() -> impl Iterator<Item = Isa> {
    Isa::ALL.into_iter().filter(|isa| isa.is_supported())
}

fn apply<F: VectorFunction>(isa: Isa, function: F, a: &[f32], b: &[f32]) -> Vec<f32> {
    let mut output = vec![f32::NAN; a.len()];
    isa.run(Map { function, a, b, output: &mut output });
    output
}

/// Declares a unit type that applies one expression.
macro_rules! vector_function {
    ($name:ident, |$simd:ident, $a:ident, $b:ident| $body:expr) => {
        #[derive(Clone, Copy)]
        struct $name;
        impl VectorFunction for $name {
            #[inline(always)]
            fn apply<S: Simd>(self, $simd: S, $a: S::F32, $b: S::F32) -> S::F32 {
                $body
            }
        }
    };
}

/// Every float class, and a length that is no multiple of any vector.
const SAMPLES: [f32; 29] = [
    0.0,
    -0.0,
    0.5,
    -0.5,
    1.5,
    2.5,
    -2.5,
    1.0,
    -1.0,
    3.0,
    0.1,
    -7.3,
    1e-3,
    123.25,
    -4096.5,
    1e20,
    -1e20,
    1e-38,
    1e-42,
    -1e-42,
    f32::MAX,
    f32::MIN,
    f32::MIN_POSITIVE,
    f32::INFINITY,
    f32::NEG_INFINITY,
    f32::NAN,
    33.5,
    8.0,
    -6.0,
];

#[test]
fn operations_match_scalar_arithmetic_bit_for_bit() {
    fn check<F: VectorFunction>(name: &str, function: F, expected: fn(f32, f32) -> f32) {
        let a: Vec<f32> = SAMPLES.iter().flat_map(|&a| [a; SAMPLES.len()]).collect();
        let b: Vec<f32> = SAMPLES.iter().cycle().copied().take(a.len()).collect();
        for isa in supported() {
            for (index, &value) in apply(isa, function, &a, &b).iter().enumerate() {
                let expected = expected(a[index], b[index]);
                assert!(
                    value.to_bits() == expected.to_bits() || value.is_nan() && expected.is_nan(),
                    "{name} {}: ({}, {}) gave {value}, expected {expected}",
                    isa.name(),
                    a[index],
                    b[index]
                );
            }
        }
    }
    vector_function!(Add, |simd, a, b| simd.add(a, b));
    check("add", Add, |a, b| a + b);
    vector_function!(Sub, |simd, a, b| simd.sub(a, b));
    check("sub", Sub, |a, b| a - b);
    vector_function!(Mul, |simd, a, b| simd.mul(a, b));
    check("mul", Mul, |a, b| a * b);
    vector_function!(Div, |simd, a, b| simd.div(a, b));
    check("div", Div, |a, b| a / b);
    vector_function!(Neg, |simd, a, _b| simd.neg(a));
    check("neg", Neg, |a, _| -a);
    vector_function!(Abs, |simd, a, _b| simd.abs(a));
    check("abs", Abs, |a, _| a.abs());
    vector_function!(Min, |simd, a, b| simd.min(a, b));
    check("min", Min, |a, b| if a < b { a } else { b });
    vector_function!(Max, |simd, a, b| simd.max(a, b));
    check("max", Max, |a, b| if a > b { a } else { b });
    vector_function!(Sqrt, |simd, a, _b| simd.sqrt(a));
    check("sqrt", Sqrt, |a, _| a.sqrt());
    vector_function!(Floor, |simd, a, _b| simd.floor(a));
    check("floor", Floor, |a, _| a.floor());
    vector_function!(Round, |simd, a, _b| simd.round(a));
    check("round", Round, |a, _| a.round_ties_even());
    vector_function!(Lt, |simd, a, b| simd.select(simd.lt(a, b), a, b));
    check("lt", Lt, |a, b| if a < b { a } else { b });
    vector_function!(Le, |simd, a, b| simd.select(simd.le(a, b), simd.splat(1.0), simd.zero()));
    check("le", Le, |a, b| if a <= b { 1.0 } else { 0.0 });
    vector_function!(Eq, |simd, a, b| simd.select(simd.eq(a, b), a, b));
    check("eq", Eq, |a, b| if a == b { a } else { b });
    vector_function!(CopySign, |simd, a, b| simd.copy_sign(a, b));
    check("copy_sign", CopySign, f32::copysign);
}

#[test]
fn exponents_are_split_and_put_together() {
    vector_function!(Pow2, |simd, a, _b| simd.pow2(a));
    vector_function!(MulPow2, |simd, a, b| simd.mul_pow2(a, b));
    vector_function!(Exponent, |simd, a, _b| simd.exponent_mantissa(a).0);
    vector_function!(Mantissa, |simd, a, _b| simd.exponent_mantissa(a).1);
    for isa in supported() {
        let n: Vec<f32> = (-126..=127).map(|n| n as f32).collect();
        let expected: Vec<f32> = n.iter().map(|n| n.exp2()).collect();
        assert_eq!(apply(isa, Pow2, &n, &n), expected);
        let n: Vec<f32> = (-160..=160).map(|n| n as f32).collect();
        let a = vec![1.25; n.len()];
        let expected: Vec<f32> = n.iter().map(|&n| (1.25 * f64::from(n).exp2()) as f32).collect();
        assert_eq!(apply(isa, MulPow2, &a, &n), expected);
        let a = [1.0, 1.75, 3.0, 0.3, f32::MAX, f32::MIN_POSITIVE];
        let exponent = apply(isa, Exponent, &a, &a);
        assert_eq!(exponent, [0.0, 0.0, 1.0, -2.0, 127.0, -126.0]);
        let mantissa = apply(isa, Mantissa, &a, &a);
        assert!(mantissa.iter().all(|m| (1.0..2.0).contains(m)));
        assert_eq!(apply(isa, MulPow2, &mantissa, &exponent), a);
    }
}

#[test]
fn partial_access_touches_only_what_it_names() {
    struct Partial;
    impl SimdTask for Partial {
        type Output = ();
        #[inline(always)]
        fn run<S: Simd>(self, simd: S) {
            for count in 0..=S::LANES {
                let source: Vec<f32> = (1..=count).map(|item| item as f32).collect();
                let value = simd.load_slice(&source);
                let total = (count * (count + 1) / 2) as f32;
                assert_eq!(simd.sum(value), total);
                assert_eq!(simd.max_lane(value), count as f32);
                assert_eq!(simd.max_lane(simd.sub(value, simd.splat(100.0))), count as f32 - 100.0);
                let mut target = vec![-1.0; S::LANES + 1];
                simd.store_slice(&mut target[..count], simd.splat(5.0));
                assert!(target[..count].iter().all(|&item| item == 5.0));
                assert!(target[count..].iter().all(|&item| item == -1.0));
            }
        }
    }
    for isa in supported() {
        isa.run(Partial);
    }
}

#[test]
fn a_block_is_transposed_between_any_strides() {
    struct Transpose;
    impl SimdTask for Transpose {
        type Output = ();
        #[inline(always)]
        fn run<S: Simd>(self, simd: S) {
            let source: Vec<f32> = (0..8 * 11).map(|item| item as f32).collect();
            let mut target = vec![-1.0; 8 * 9];
            // SAFETY: the buffers hold eight rows of the given strides.
            unsafe { simd.transpose_8x8(source.as_ptr(), 11, target.as_mut_ptr(), 9) };
            for (index, &value) in target.iter().enumerate() {
                let (row, column) = (index / 9, index % 9);
                assert_eq!(value, if column < 8 { source[column * 11 + row] } else { -1.0 });
            }
        }
    }
    for isa in supported() {
        isa.run(Transpose);
    }
}

/// What the error of a function is measured against.
#[derive(Clone, Copy)]
enum Scale {
    Result,
    Argument,
}

/// Compares `function` with `reference` on dense sweeps of every magnitude and at the special values.
fn check_accuracy<F: VectorFunction>(
    name: &str,
    function: F,
    reference: fn(f64) -> f64,
    scale: Scale,
    tolerance: f64,
) {
    let mut points: Vec<f32> = (-120_000..=120_000).map(|step| step as f32 * 1e-3).collect();
    points.extend((-20_000..=20_000).map(|step| step as f32 * 1e-4));
    for power in -45..=38 {
        points.extend((0..50).map(|step| (1.0 + step as f32 * 0.17) * 10f32.powi(power)));
        points.extend((0..50).map(|step| -(1.0 + step as f32 * 0.17) * 10f32.powi(power)));
    }
    points.extend([f32::INFINITY, f32::NEG_INFINITY, f32::MAX, f32::MIN, 0.0, -0.0]);
    for isa in supported() {
        let values = apply(isa, function, &points, &points);
        for (&x, &value) in points.iter().zip(&values) {
            let expected = reference(f64::from(x));
            if expected.is_nan() || expected.abs() > f64::from(f32::MAX) {
                let narrow = expected as f32;
                assert!(
                    value == narrow || value.is_nan() && narrow.is_nan(),
                    "{name} {}: f({x}) = {value}, expected {narrow}",
                    isa.name()
                );
                continue;
            }
            let scale = match scale {
                Scale::Result => expected.abs(),
                Scale::Argument if x.is_infinite() => 1.0,
                Scale::Argument => f64::from(x).abs(),
            };
            // Where a result nears the end of the normal range, intermediate values overflow or lose bits.
            let limit = tolerance * scale + 100.0 * f64::from(f32::MIN_POSITIVE);
            let error = (f64::from(value) - expected).abs();
            assert!(
                error <= limit,
                "{name} {}: f({x}) = {value}, expected {expected:e}",
                isa.name()
            );
        }
        let nan = apply(isa, function, &[f32::NAN; 3], &[0.0; 3]);
        assert!(nan.iter().all(|value| value.is_nan()), "{name} {} loses NaN", isa.name());
    }
}

/// The error function by its series near zero and its continued fraction far out.
fn erf(x: f64) -> f64 {
    let square = x * x;
    if x.abs() < 3.0 {
        let (mut term, mut total) = (x, x);
        for n in 1..200 {
            term *= -square / f64::from(n);
            total += term / f64::from(2 * n + 1);
        }
        total * std::f64::consts::FRAC_2_SQRT_PI
    } else if x.abs() > 7.0 {
        x.signum()
    } else {
        let fraction = (1..60).rev().fold(x.abs(), |tail, n| x.abs() + f64::from(n) / 2.0 / tail);
        let complement = (-square).exp() / std::f64::consts::PI.sqrt() / fraction;
        (1.0 - complement).copysign(x)
    }
}

/// `x * gate`, where a gate of zero wins over an infinite `x`.
fn gated(x: f64, gate: f64) -> f64 {
    if gate == 0.0 { 0.0 } else { x * gate }
}

#[test]
fn functions_are_accurate_everywhere() {
    vector_function!(Exp, |simd, a, _b| math::exp(simd, a));
    check_accuracy("exp", Exp, f64::exp, Scale::Result, 3e-7);
    vector_function!(Ln, |simd, a, _b| math::ln(simd, a));
    check_accuracy("ln", Ln, f64::ln, Scale::Result, 5e-7);
    vector_function!(Sigmoid, |simd, a, _b| math::sigmoid(simd, a));
    check_accuracy("sigmoid", Sigmoid, |x| 1.0 / (1.0 + (-x).exp()), Scale::Result, 5e-7);
    vector_function!(Tanh, |simd, a, _b| math::tanh(simd, a));
    check_accuracy("tanh", Tanh, f64::tanh, Scale::Result, 6e-7);
    vector_function!(Erf, |simd, a, _b| math::erf(simd, a));
    check_accuracy("erf", Erf, erf, Scale::Result, 8e-7);
    vector_function!(Silu, |simd, a, _b| math::silu(simd, a));
    check_accuracy("silu", Silu, |x| gated(x, 1.0 / (1.0 + (-x).exp())), Scale::Result, 5e-7);
    vector_function!(Gelu, |simd, a, _b| math::gelu(simd, a));
    let gelu = |x: f64| gated(x, 0.5 * (1.0 + erf(x * std::f64::consts::FRAC_1_SQRT_2)));
    check_accuracy("gelu", Gelu, gelu, Scale::Argument, 3e-7);
    vector_function!(GeluTanh, |simd, a, _b| math::gelu_tanh(simd, a));
    let gelu_tanh = |x: f64| {
        let argument = (2.0 / std::f64::consts::PI).sqrt() * (x + 0.044715 * x * x * x);
        gated(x, 0.5 * (1.0 + argument.tanh()))
    };
    check_accuracy("gelu_tanh", GeluTanh, gelu_tanh, Scale::Argument, 4e-7);
    vector_function!(HardSwish, |simd, a, _b| math::hard_swish(simd, a));
    let hard_swish = |x: f64| x * (x / 6.0 + 0.5).clamp(0.0, 1.0);
    check_accuracy("hard_swish", HardSwish, hard_swish, Scale::Argument, 3e-7);
}
