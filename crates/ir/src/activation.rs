//! Activations: functions of one element that other operators can have fused into them.

use crate::operator::Operator;
use crate::operators::elementwise::{
    BoundInput, Clip, Gelu, HardSigmoid, LeakyRelu, Swish, Unary, UnaryFunction, evaluate_unary,
};

/// A cheap function of one element, with its parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum Activation {
    Relu,
    Clip {
        min: f32,
        max: f32,
    },
    LeakyRelu {
        alpha: f32,
    },
    HardSwish,
    HardSigmoid {
        alpha: f32,
        beta: f32,
    },
    Sigmoid,
    /// `x * sigmoid(x)`.
    Silu,
    Tanh,
    Gelu,
    GeluTanh,
}

impl Activation {
    /// The activation of one element.
    pub fn apply(self, x: f32) -> f32 {
        match self {
            Activation::Relu => evaluate_unary(UnaryFunction::Relu, x),
            // Unlike f32::clamp, this is defined for crossed bounds too.
            Activation::Clip { min, max } => {
                let raised = if x < min { min } else { x };
                if raised > max { max } else { raised }
            }
            Activation::LeakyRelu { alpha } => LeakyRelu { alpha }.apply(x),
            Activation::HardSwish => evaluate_unary(UnaryFunction::HardSwish, x),
            Activation::HardSigmoid { alpha, beta } => HardSigmoid { alpha, beta }.apply(x),
            Activation::Sigmoid => evaluate_unary(UnaryFunction::Sigmoid, x),
            Activation::Silu => Swish { alpha: 1.0 }.apply(x),
            Activation::Tanh => evaluate_unary(UnaryFunction::Tanh, x),
            Activation::Gelu => Gelu { tanh: false }.apply(x),
            Activation::GeluTanh => Gelu { tanh: true }.apply(x),
        }
    }

    /// The activation that `operator` is, where it is one. `input` says what is known of the operator's
    /// further inputs, which hold the bounds of a Clip.
    pub fn of<'a>(
        operator: &dyn Operator,
        input: impl Fn(usize) -> BoundInput<'a>,
    ) -> Option<Self> {
        if let Some(Unary { function }) = operator.downcast() {
            return match function {
                UnaryFunction::Relu => Some(Activation::Relu),
                UnaryFunction::HardSwish => Some(Activation::HardSwish),
                UnaryFunction::Sigmoid => Some(Activation::Sigmoid),
                UnaryFunction::Tanh => Some(Activation::Tanh),
                _ => None,
            };
        }
        if let Some(clip) = operator.downcast::<Clip>() {
            let (min, max) = clip.bounds(input)?;
            return Some(Activation::Clip { min, max });
        }
        if let Some(&LeakyRelu { alpha }) = operator.downcast() {
            return Some(Activation::LeakyRelu { alpha });
        }
        if let Some(&HardSigmoid { alpha, beta }) = operator.downcast() {
            return Some(Activation::HardSigmoid { alpha, beta });
        }
        if let Some(&Swish { alpha }) = operator.downcast() {
            return (alpha == 1.0).then_some(Activation::Silu);
        }
        let &Gelu { tanh } = operator.downcast()?;
        Some(if tanh { Activation::GeluTanh } else { Activation::Gelu })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attribute::Attributes;
    use crate::builder::standard_operator;
    use crate::operator::Inputs;
    use crate::tensor::Tensor;

    #[test]
    fn an_activation_computes_what_its_operator_does() {
        let six = Tensor::scalar(6f32);
        let zero = Tensor::scalar(0f32);
        let elements = vec![-7f32, -2.5, -0.1, 0.0, 0.3, 2.0, 8.0];
        let cases = [
            ("Relu", Attributes::new()),
            ("Clip", Attributes::new()),
            ("LeakyRelu", Attributes::new().with("alpha", 0.2f32)),
            ("HardSwish", Attributes::new()),
            ("HardSigmoid", Attributes::new().with("beta", 0.4f32)),
            ("Sigmoid", Attributes::new()),
            ("Swish", Attributes::new()),
            ("Tanh", Attributes::new()),
            ("Gelu", Attributes::new()),
            ("Gelu", Attributes::new().with("approximate", "tanh")),
        ];
        for (name, attributes) in cases {
            let operator = standard_operator(name, 24, &attributes).unwrap();
            let bounds = [&six, &zero, &six];
            let activation =
                Activation::of(&*operator, |index| BoundInput::Constant(bounds[index])).unwrap();
            let mut inputs = vec![Some(Tensor::vector(elements.clone()).into())];
            if name == "Clip" {
                inputs.extend([Some(zero.clone().into()), Some(six.clone().into())]);
            }
            let outputs = operator.evaluate(&Inputs::new(&inputs, 1)).unwrap();
            let expected: Vec<f32> = elements.iter().map(|&x| activation.apply(x)).collect();
            let given = outputs[0].tensor().unwrap().elements::<f32>().unwrap();
            assert_eq!(given, expected, "{name}");
        }
        for name in ["Exp", "Elu", "Add"] {
            let operator = standard_operator(name, 24, &Attributes::new()).unwrap();
            assert_eq!(Activation::of(&*operator, |_| BoundInput::Computed), None);
        }
    }
}
