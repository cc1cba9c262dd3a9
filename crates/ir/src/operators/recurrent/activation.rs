//! The activation functions that a recurrent layer names in its attributes.

use crate::attribute::Attributes;
use crate::error::OperatorError;

/// One activation function with its parameters.
#[derive(Clone, Copy, Debug)]
pub(super) struct Activation {
    function: fn(f64, f64, f64) -> f64,
    alpha: f64,
    beta: f64,
}

/// Name, default alpha and beta (absent where the function takes none), and `f(x, alpha, beta)`.
type Row = (&'static str, Option<f32>, Option<f32>, fn(f64, f64, f64) -> f64);

const FUNCTIONS: &[Row] = &[
    ("Relu", None, None, |x, _, _| x.max(0.0)),
    ("Tanh", None, None, |x, _, _| x.tanh()),
    ("Sigmoid", None, None, |x, _, _| 1.0 / (1.0 + (-x).exp())),
    ("Affine", Some(1.0), Some(0.0), |x, alpha, beta| alpha * x + beta),
    ("LeakyRelu", Some(0.01), None, |x, alpha, _| if x >= 0.0 { x } else { alpha * x }),
    ("ThresholdedRelu", Some(1.0), None, |x, alpha, _| if x >= alpha { x } else { 0.0 }),
    ("ScaledTanh", Some(1.0), Some(1.0), |x, alpha, beta| alpha * (beta * x).tanh()),
    ("HardSigmoid", Some(0.2), Some(0.5), |x, alpha, beta| (alpha * x + beta).clamp(0.0, 1.0)),
    ("Elu", Some(1.0), None, |x, alpha, _| if x >= 0.0 { x } else { alpha * x.exp_m1() }),
    ("Softsign", None, None, |x, _, _| x / (1.0 + x.abs())),
    // Written so that a large x does not overflow the exponential.
    ("Softplus", None, None, |x, _, _| x.max(0.0) + (-x.abs()).exp().ln_1p()),
];

impl Activation {
    pub(super) fn apply(self, x: f64) -> f64 {
        (self.function)(x, self.alpha, self.beta)
    }
}

/// The functions of all directions in order: `defaults` once per direction where the node names none.
/// A function that takes an alpha or a beta takes the next one of the node's list.
pub(super) fn parse_activations(
    attributes: &Attributes,
    defaults: &[&str],
    directions: usize,
) -> Result<Vec<Activation>, OperatorError> {
    let count = defaults.len() * directions;
    let names: Vec<&str> = match attributes.strings("activations")? {
        None => defaults.repeat(directions),
        Some(given) => given.iter().map(String::as_str).collect(),
    };
    if names.len() < count {
        let problem = format!("names {} functions where {count} are needed", names.len());
        return Err(OperatorError::Attribute { name: "activations".into(), problem });
    }
    let mut alphas = attributes.floats("activation_alpha")?.unwrap_or_default().iter();
    let mut betas = attributes.floats("activation_beta")?.unwrap_or_default().iter();
    let find = |name: &str| {
        let row = FUNCTIONS.iter().find(|row| row.0.eq_ignore_ascii_case(name));
        row.ok_or_else(|| OperatorError::Attribute {
            name: "activations".into(),
            problem: format!("'{name}' is not a known function"),
        })
    };
    names[..count]
        .iter()
        .map(|name| {
            let &(_, alpha, beta, function) = find(name)?;
            let next = |default: Option<f32>, given: &mut std::slice::Iter<'_, f32>| {
                default.map_or(0.0, |default| f64::from(*given.next().unwrap_or(&default)))
            };
            let alpha = next(alpha, &mut alphas);
            let beta = next(beta, &mut betas);
            Ok(Activation { function, alpha, beta })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attributes(names: &[&str]) -> Attributes {
        let names: Vec<String> = names.iter().map(|name| name.to_string()).collect();
        Attributes::new().with("activations", names)
    }

    #[test]
    fn parameters_go_to_the_functions_that_take_them() {
        let given = attributes(&["Tanh", "LeakyRelu", "affine", "Elu"])
            .with("activation_alpha", vec![0.5f32, 2.0])
            .with("activation_beta", vec![7.0f32]);
        let functions = parse_activations(&given, &["Sigmoid", "Tanh"], 2).unwrap();
        let values: Vec<f64> = functions.iter().map(|function| function.apply(-2.0)).collect();
        assert_eq!(values, [(-2f64).tanh(), -1.0, 3.0, (-2f64).exp_m1()]);
    }

    #[test]
    fn unknown_or_missing_functions_are_refused() {
        for names in [&["Sigmoid"][..], &["Sigmoid", "Cosine"]] {
            assert!(parse_activations(&attributes(names), &["Sigmoid", "Tanh"], 1).is_err());
        }
    }

    #[test]
    fn softplus_does_not_overflow() {
        let softplus = parse_activations(&attributes(&["Softplus"]), &["Tanh"], 1).unwrap()[0];
        assert_eq!(softplus.apply(1e4), 1e4);
        assert_eq!(softplus.apply(0.0), 2f64.ln());
    }
}
