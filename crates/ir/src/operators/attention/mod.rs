//! Attention and the position encodings that go with it.

mod causal_convolution;
mod dot_product_attention;
mod flex_attention;
mod heads;
mod linear_attention;
mod mask;
mod rotary_embedding;

use crate::operator::Registration;

pub(super) const OPERATORS: &[Registration] = &[
    Registration::standard("Attention", dot_product_attention::build),
    Registration::standard("CausalConvWithState", causal_convolution::build),
    Registration { domain: "ai.onnx.preview", name: "FlexAttention", build: flex_attention::build },
    Registration::standard("LinearAttention", linear_attention::build),
    Registration::standard("RotaryEmbedding", rotary_embedding::build),
];
