//! Activations as kernels know them.

use bytemuck::{Pod, Zeroable};
use weft_ir::Activation;

/// The parameters of an activation, as the prelude declares them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct ActivationParameters {
    pub(crate) first: f32,
    pub(crate) second: f32,
}

/// The prelude's name of an activation, and its parameters.
pub(crate) fn activation(activation: Option<Activation>) -> (&'static str, ActivationParameters) {
    let plain = |name| (name, ActivationParameters::default());
    match activation {
        None => plain("ACTIVATION_NONE"),
        Some(Activation::Relu) => plain("ACTIVATION_RELU"),
        Some(Activation::Clip { min, max }) => {
            ("ACTIVATION_CLIP", ActivationParameters { first: min, second: max })
        }
        Some(Activation::LeakyRelu { alpha }) => {
            ("ACTIVATION_LEAKY_RELU", ActivationParameters { first: alpha, second: 0.0 })
        }
        Some(Activation::HardSwish) => plain("ACTIVATION_HARD_SWISH"),
        Some(Activation::HardSigmoid { alpha, beta }) => {
            ("ACTIVATION_HARD_SIGMOID", ActivationParameters { first: alpha, second: beta })
        }
        Some(Activation::Sigmoid) => plain("ACTIVATION_SIGMOID"),
        Some(Activation::Silu) => plain("ACTIVATION_SILU"),
        Some(Activation::Tanh) => plain("ACTIVATION_TANH"),
        Some(Activation::Gelu) => plain("ACTIVATION_GELU"),
        Some(Activation::GeluTanh) => plain("ACTIVATION_GELU_TANH"),
    }
}
