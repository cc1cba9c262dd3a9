//! Activations with constant parameters: one table for all of them.

use std::sync::Arc;

use super::error_function::erf;
use super::inference::like_first;
use crate::error::OperatorError;
use crate::fact::Fact;
use crate::operator::{InputFacts, Inputs, NodeSource, Operator};
use crate::tensor::{Tensor, TensorData};
use crate::value::Value;

macro_rules! activations {
    ($(
        $(#[$doc:meta])*
        $activation:ident, $build:ident {
            $($(#[$field_doc:meta])* $field:ident = $default:expr,)*
        } $x:ident => $value:expr;
    )*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq)]
        pub struct $activation {
            $($(#[$field_doc])* pub $field: f32,)*
        }

        impl $activation {
            /// The activation of one element.
            pub fn apply(&self, $x: f32) -> f32 {
                $(let $field = self.$field;)*
                $value
            }

            fn apply_f64(&self, $x: f64) -> f64 {
                $(let $field = f64::from(self.$field);)*
                $value
            }
        }

        pub(super) fn $build(source: &NodeSource<'_>) -> Result<Arc<dyn Operator>, OperatorError> {
            Ok(Arc::new($activation {
                $($field: source.attributes.float_or(stringify!($field), $default)?,)*
            }))
        }

        impl Operator for $activation {
            fn name(&self) -> &'static str {
                stringify!($activation)
            }

            fn evaluate(&self, inputs: &Inputs<'_>) -> Result<Vec<Value>, OperatorError> {
                let y = map_floats(inputs.tensor(0)?, |x| self.apply(x), |x| self.apply_f64(x));
                Ok(vec![y?.into()])
            }

            fn infer(&self, inputs: &InputFacts<'_>) -> Result<Vec<Fact>, OperatorError> {
                Ok(vec![like_first(inputs)])
            }

            fn permuted(&self, _permutation: &[usize]) -> Option<Arc<dyn Operator>> {
                Some(Arc::new(*self))
            }
        }
    )*};
}

activations! {
    /// `x` where positive, else `alpha * (exp(x) - 1)`.
    Elu, build_elu {
        /// What large negative elements tend to, negated.
        alpha = 1.0,
    } x => if x < 0.0 { alpha * x.exp_m1() } else { x };

    /// `x` where positive, else `alpha * (exp(x / alpha) - 1)`.
    Celu, build_celu {
        /// What large negative elements tend to, negated.
        alpha = 1.0,
    } x => if x < 0.0 { alpha * (x / alpha).exp_m1() } else { x };

    /// `gamma * x` where positive, else `gamma * alpha * (exp(x) - 1)`.
    Selu, build_selu {
        /// What large negative elements tend to, negated and before scaling.
        alpha = 1.673_263_2,
        /// The scale of everything.
        gamma = 1.050_701,
    } x => if x < 0.0 { gamma * alpha * x.exp_m1() } else { gamma * x };

    /// `x` where positive, else `alpha * x`.
    LeakyRelu, build_leaky_relu {
        /// The slope of negative elements.
        alpha = 0.01,
    } x => if x < 0.0 { alpha * x } else { x };

    /// `x` where above `alpha`, else zero.
    ThresholdedRelu, build_thresholded_relu {
        /// The threshold.
        alpha = 1.0,
    } x => if x > alpha { x } else { 0.0 };

    /// `alpha * x + beta` between zero and one.
    HardSigmoid, build_hard_sigmoid {
        /// The slope.
        alpha = 0.2,
        /// The value at zero.
        beta = 0.5,
    } x => (alpha * x + beta).clamp(0.0, 1.0);

    /// `x * sigmoid(alpha * x)`.
    Swish, build_swish {
        /// How sharply the sigmoid rises.
        alpha = 1.0,
    } x => x / (1.0 + (-alpha * x).exp());
}

/// `x` times the normal distribution function of `x`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gelu {
    /// Approximates the distribution function with a hyperbolic tangent.
    pub tanh: bool,
}

impl Gelu {
    /// The activation of one element.
    pub fn apply(&self, x: f32) -> f32 {
        if self.tanh {
            const SLOPE: f32 = std::f32::consts::FRAC_2_SQRT_PI * std::f32::consts::FRAC_1_SQRT_2;
            0.5 * x * (1.0 + (SLOPE * (x + 0.044715 * x * x * x)).tanh())
        } else {
            self.apply_f64(x.into()) as f32
        }
    }

    fn apply_f64(&self, x: f64) -> f64 {
        use std::f64::consts::{FRAC_1_SQRT_2, FRAC_2_SQRT_PI};
        let shape = if self.tanh {
            (FRAC_2_SQRT_PI * FRAC_1_SQRT_2 * (x + 0.044715 * x * x * x)).tanh()
        } else {
            erf(x * FRAC_1_SQRT_2)
        };
        0.5 * x * (1.0 + shape)
    }
}

pub(super) fn build_gelu(source: &NodeSource<'_>) -> Result<Arc<dyn Operator>, OperatorError> {
    match source.attributes.string_or("approximate", "none")? {
        "none" => Ok(Arc::new(Gelu { tanh: false })),
        "tanh" => Ok(Arc::new(Gelu { tanh: true })),
        other => Err(OperatorError::Attribute {
            name: "approximate".into(),
            problem: format!("'{other}' is neither none nor tanh"),
        }),
    }
}

impl Operator for Gelu {
    fn name(&self) -> &'static str {
        "Gelu"
    }

    fn evaluate(&self, inputs: &Inputs<'_>) -> Result<Vec<Value>, OperatorError> {
        let y = map_floats(inputs.tensor(0)?, |x| self.apply(x), |x| self.apply_f64(x));
        Ok(vec![y?.into()])
    }

    fn infer(&self, inputs: &InputFacts<'_>) -> Result<Vec<Fact>, OperatorError> {
        Ok(vec![like_first(inputs)])
    }

    fn permuted(&self, _permutation: &[usize]) -> Option<Arc<dyn Operator>> {
        Some(Arc::new(*self))
    }
}

/// One function of every element, in `f64` for doubles and in `f32` for the rest.
pub(super) fn map_floats(
    x: &Tensor,
    single: impl Fn(f32) -> f32,
    double: impl Fn(f64) -> f64,
) -> Result<Tensor, OperatorError> {
    let shape = x.shape().to_vec();
    match x.data() {
        TensorData::F64(elements) => {
            Tensor::from_vec(shape, elements.iter().map(|&x| double(x)).collect())
        }
        _ => {
            let mapped = x.to_f32s()?.iter().map(|&x| single(x)).collect();
            Tensor::from_f32s(shape, x.data_type(), mapped)
        }
    }
}
