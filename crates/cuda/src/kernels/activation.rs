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

#[cfg(test)]
mod tests {
    use weft_ir::operators::elementwise::erf;

    /// The numbers of the prelude's polynomial, from the highest power down, as the kernel multiplies them.
    fn coefficients() -> Vec<f64> {
        let prelude = include_str!("../../kernels/prelude.cuh");
        let body = prelude.split_once("float gelu_of_16_bits(float x) {").unwrap().1;
        let body = body.split_once("return").unwrap().0;
        let number = |word: &str| word.trim_end_matches([';', 'f']).parse::<f64>().ok();
        let mut found = Vec::new();
        for line in body.lines().filter(|line| line.contains("exponent = ")) {
            let words: Vec<&str> = line.split_whitespace().collect();
            if found.is_empty() {
                found.extend(words.iter().find_map(|word| number(word)));
            }
            let [.., sign, last] = words[..] else { panic!("{line}") };
            let sign = if sign == "-" { -1.0 } else { 1.0 };
            found.extend(number(last).map(|last| sign * last));
        }
        found
    }

    #[test]
    fn gelu_of_16_bits_is_gelu_to_within_a_millionth() {
        let coefficients = coefficients();
        assert_eq!(coefficients.len(), 5, "{coefficients:?}");
        for at in -12_000..=12_000 {
            let x = f64::from(at) / 1000.0;
            let size = x.abs().min(10.0);
            let exponent = coefficients.iter().fold(0.0, |sum, of| sum * size + of) * size;
            let computed = x.max(0.0) - 0.5 * size * exponent.exp2();
            let expected = 0.5 * x * (1.0 + erf(x / 2f64.sqrt()));
            assert!((computed - expected).abs() < 1e-6, "{x}: {computed} for {expected}");
        }
    }
}
