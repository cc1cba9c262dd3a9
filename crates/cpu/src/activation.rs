//! Owns the activations that kernels apply to their results before storing them.

use std::fmt;

use crate::simd::{Simd, math};

/// A function applied to every element of a result.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum Activation {
    /// The value itself.
    #[default]
    None,
    /// `max(x, 0)`.
    Relu,
    /// `x` limited to a range.
    Clip {
        /// The least result.
        low: f32,
        /// The greatest result.
        high: f32,
    },
    /// `x` where positive, `alpha * x` elsewhere.
    LeakyRelu {
        /// The slope for negative values.
        alpha: f32,
    },
    /// `x * clamp(x / 6 + 1 / 2, 0, 1)`.
    HardSwish,
    /// `clamp(alpha * x + beta, 0, 1)`.
    HardSigmoid {
        /// The slope.
        alpha: f32,
        /// The value at zero.
        beta: f32,
    },
    /// `1 / (1 + e^-x)`.
    Sigmoid,
    /// `x * sigmoid(x)`.
    Silu,
    /// The hyperbolic tangent.
    Tanh,
    /// `x * (1 + erf(x / sqrt 2)) / 2`.
    Gelu,
    /// The approximation of GELU by the hyperbolic tangent.
    GeluTanh,
}

impl From<Option<weft_ir::Activation>> for Activation {
    fn from(activation: Option<weft_ir::Activation>) -> Self {
        use weft_ir::Activation as Ir;
        match activation {
            None => Activation::None,
            Some(Ir::Relu) => Activation::Relu,
            Some(Ir::Clip { min, max }) => Activation::Clip { low: min, high: max },
            Some(Ir::LeakyRelu { alpha }) => Activation::LeakyRelu { alpha },
            Some(Ir::HardSwish) => Activation::HardSwish,
            Some(Ir::HardSigmoid { alpha, beta }) => Activation::HardSigmoid { alpha, beta },
            Some(Ir::Sigmoid) => Activation::Sigmoid,
            Some(Ir::Silu) => Activation::Silu,
            Some(Ir::Tanh) => Activation::Tanh,
            Some(Ir::Gelu) => Activation::Gelu,
            Some(Ir::GeluTanh) => Activation::GeluTanh,
        }
    }
}

impl fmt::Display for Activation {
    /// The name, and the parameters where there are any.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Activation::None => formatter.write_str("none"),
            Activation::Relu => formatter.write_str("relu"),
            Activation::Clip { low, high } => write!(formatter, "clip {low} to {high}"),
            Activation::LeakyRelu { alpha } => write!(formatter, "leaky relu {alpha}"),
            Activation::HardSwish => formatter.write_str("hard swish"),
            Activation::HardSigmoid { alpha, beta } => {
                write!(formatter, "hard sigmoid {alpha} x + {beta}")
            }
            Activation::Sigmoid => formatter.write_str("sigmoid"),
            Activation::Silu => formatter.write_str("silu"),
            Activation::Tanh => formatter.write_str("tanh"),
            Activation::Gelu => formatter.write_str("gelu"),
            Activation::GeluTanh => formatter.write_str("gelu by tanh"),
        }
    }
}

impl Activation {
    /// The activation of a vector.
    #[inline(always)]
    pub fn apply<S: Simd>(self, simd: S, x: S::F32) -> S::F32 {
        match self {
            Activation::None => x,
            Activation::Relu => simd.max(simd.zero(), x),
            Activation::Clip { low, high } => math::clamp(simd, x, low, high),
            Activation::LeakyRelu { alpha } => {
                let scaled = simd.mul(x, simd.splat(alpha));
                simd.select(simd.lt(x, simd.zero()), scaled, x)
            }
            Activation::HardSwish => math::hard_swish(simd, x),
            Activation::HardSigmoid { alpha, beta } => math::hard_sigmoid(simd, x, alpha, beta),
            Activation::Sigmoid => math::sigmoid(simd, x),
            Activation::Silu => math::silu(simd, x),
            Activation::Tanh => math::tanh(simd, x),
            Activation::Gelu => math::gelu(simd, x),
            Activation::GeluTanh => math::gelu_tanh(simd, x),
        }
    }

    /// The activation in double precision, by its definition.
    pub(crate) fn in_double(self, x: f64) -> f64 {
        let erf = |x: f64| {
            let (mut term, mut total) = (x, x);
            for n in 1..400 {
                term *= -x * x / f64::from(n);
                total += term / f64::from(2 * n + 1);
            }
            if x.abs() > 4.0 { x.signum() } else { total * std::f64::consts::FRAC_2_SQRT_PI }
        };
        match self {
            Activation::None => x,
            Activation::Relu => x.max(0.0),
            Activation::Clip { low, high } => x.clamp(low.into(), high.into()),
            Activation::LeakyRelu { alpha } => {
                if x < 0.0 {
                    f64::from(alpha) * x
                } else {
                    x
                }
            }
            Activation::HardSwish => x * (x / 6.0 + 0.5).clamp(0.0, 1.0),
            Activation::HardSigmoid { alpha, beta } => {
                (f64::from(alpha) * x + f64::from(beta)).clamp(0.0, 1.0)
            }
            Activation::Sigmoid => 1.0 / (1.0 + (-x).exp()),
            Activation::Silu => x / (1.0 + (-x).exp()),
            Activation::Tanh => x.tanh(),
            Activation::Gelu => 0.5 * x * (1.0 + erf(x * std::f64::consts::FRAC_1_SQRT_2)),
            Activation::GeluTanh => {
                0.5 * x
                    * (1.0
                        + ((2.0 / std::f64::consts::PI).sqrt() * (x + 0.044715 * x * x * x)).tanh())
            }
        }
    }

    /// The range that the activation limits its argument to, if that is all it does.
    pub fn as_range(self) -> Option<(f32, f32)> {
        match self {
            Activation::None => Some((f32::NEG_INFINITY, f32::INFINITY)),
            Activation::Relu => Some((0.0, f32::INFINITY)),
            Activation::Clip { low, high } => Some((low, high)),
            _ => None,
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::{Isa, SimdTask};

    /// One of each kind, with unusual parameters.
    pub(crate) const EVERY: [Activation; 11] = [
        Activation::None,
        Activation::Relu,
        Activation::Clip { low: -0.75, high: 1.5 },
        Activation::LeakyRelu { alpha: 0.3 },
        Activation::HardSwish,
        Activation::HardSigmoid { alpha: 0.2, beta: 0.4 },
        Activation::Sigmoid,
        Activation::Silu,
        Activation::Tanh,
        Activation::Gelu,
        Activation::GeluTanh,
    ];

    struct Apply<'a>(Activation, &'a mut [f32]);

    impl SimdTask for Apply<'_> {
        type Output = ();
        #[inline(always)]
        fn run<S: Simd>(self, simd: S) {
            for chunk in self.1.chunks_mut(S::LANES) {
                let value = self.0.apply(simd, simd.load_slice(chunk));
                simd.store_slice(chunk, value);
            }
        }
    }

    #[test]
    fn every_activation_matches_its_formula() {
        let points: Vec<f32> = (-999..=999).map(|step| step as f32 * 0.0101).collect();
        for isa in Isa::ALL.into_iter().filter(|isa| isa.is_supported()) {
            for activation in EVERY {
                let mut values = points.clone();
                isa.run(Apply(activation, &mut values));
                for (&x, &value) in points.iter().zip(&values) {
                    let expected = activation.in_double(f64::from(x));
                    let error = (f64::from(value) - expected).abs();
                    assert!(
                        error <= 1e-6 * (1.0 + f64::from(x).abs()),
                        "{activation:?}({x}) = {value}, not {expected}"
                    );
                    if let Some((low, high)) = activation.as_range() {
                        assert_eq!(value, x.max(low).min(high));
                    }
                }
            }
        }
    }
}
