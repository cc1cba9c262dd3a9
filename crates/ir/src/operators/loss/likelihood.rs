//! NegativeLogLikelihoodLoss and SoftmaxCrossEntropyLoss: how unlikely the right classes were held.

use std::sync::Arc;

use crate::error::OperatorError;
use crate::fact::Fact;
use crate::operator::{InputFacts, Inputs, NodeSource, Operator};
use crate::operators::elementwise::inference::like_first;
use crate::operators::reduction::{LogSoftmax, Softmax};
use crate::tensor::Tensor;
use crate::value::Value;

/// The negated log-probability of each target class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LikelihoodLoss {
    /// The input holds scores, of which the log-probabilities are yet to be made.
    pub from_scores: bool,
    /// What becomes of the losses.
    pub reduction: Reduction,
    /// Targets of this value do not count.
    pub ignore_index: Option<i64>,
}

/// What becomes of many losses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Reduction {
    None,
    Sum,
    /// Weighted by the classes' weights.
    Mean,
}

pub(super) fn build(source: &NodeSource<'_>) -> Result<Arc<dyn Operator>, OperatorError> {
    let reduction = match source.attributes.string_or("reduction", "mean")? {
        "none" => Reduction::None,
        "sum" => Reduction::Sum,
        "mean" => Reduction::Mean,
        other => {
            return Err(OperatorError::Attribute {
                name: "reduction".into(),
                problem: format!("'{other}' is neither none, sum nor mean"),
            });
        }
    };
    Ok(Arc::new(LikelihoodLoss {
        from_scores: source.operator == "SoftmaxCrossEntropyLoss",
        reduction,
        ignore_index: source.attributes.int("ignore_index")?,
    }))
}

/// Each sample's loss, and the weight it has in their mean.
struct Losses {
    losses: Vec<f64>,
    weights: Vec<f64>,
}

impl LikelihoodLoss {
    fn losses(
        &self,
        likelihoods: &Tensor,
        targets: &Tensor,
        class_weights: Option<&Tensor>,
    ) -> Result<Losses, OperatorError> {
        let &[samples, classes, ref places @ ..] = likelihoods.shape() else {
            return Err(OperatorError::WrongKind { index: 0, expected: "of rank 2 at least" });
        };
        if targets.shape().split_first() != Some((&samples, places)) {
            return Err(OperatorError::Shapes {
                left: likelihoods.shape().to_vec(),
                right: targets.shape().to_vec(),
            });
        }
        let class_weights = class_weights.map(Tensor::to_f64s).transpose()?;
        if let Some(weights) = class_weights.as_ref().filter(|weights| weights.len() != classes) {
            return Err(OperatorError::Shapes { left: vec![classes], right: vec![weights.len()] });
        }
        let likelihoods = likelihoods.to_f64s()?;
        let targets = targets.to_i64s()?;
        let per_sample = targets.len() / samples.max(1);
        let mut result = Losses {
            losses: Vec::with_capacity(targets.len()),
            weights: Vec::with_capacity(targets.len()),
        };
        for (index, &target) in targets.iter().enumerate() {
            if Some(target) == self.ignore_index {
                result.losses.push(0.0);
                result.weights.push(0.0);
                continue;
            }
            let class =
                usize::try_from(target).ok().filter(|&class| class < classes).ok_or_else(|| {
                    OperatorError::Invalid(format!("target {target} is none of {classes} classes"))
                })?;
            let (sample, place) = (index / per_sample, index % per_sample);
            let weight = class_weights.as_ref().map_or(1.0, |weights| weights[class]);
            let likelihood = likelihoods[(sample * classes + class) * per_sample + place];
            result.losses.push(-likelihood * weight);
            result.weights.push(weight);
        }
        Ok(result)
    }
}

impl Operator for LikelihoodLoss {
    fn name(&self) -> &'static str {
        if self.from_scores { "SoftmaxCrossEntropyLoss" } else { "NegativeLogLikelihoodLoss" }
    }

    fn evaluate(&self, inputs: &Inputs<'_>) -> Result<Vec<Value>, OperatorError> {
        let x = inputs.tensor(0)?;
        let likelihoods = if self.from_scores {
            let softmax = Softmax { axis: 1, flattens: false };
            let scores = [Some(x.clone().into())];
            LogSoftmax { softmax }.evaluate(&Inputs::new(&scores, 1))?.remove(0).into_tensor()?
        } else {
            x.clone()
        };
        let targets = inputs.tensor(1)?;
        let Losses { losses, weights } =
            self.losses(&likelihoods, targets, inputs.optional_tensor(2)?)?;
        let sum: f64 = losses.iter().sum();
        let loss = match self.reduction {
            Reduction::None => Tensor::from_f64s(targets.shape().to_vec(), x.data_type(), losses)?,
            Reduction::Sum => Tensor::from_f64s(vec![], x.data_type(), vec![sum])?,
            Reduction::Mean => {
                let mean = sum / weights.iter().sum::<f64>();
                Tensor::from_f64s(vec![], x.data_type(), vec![mean])?
            }
        };
        Ok(vec![loss.into(), likelihoods.into()])
    }

    fn infer(&self, inputs: &InputFacts<'_>) -> Result<Vec<Fact>, OperatorError> {
        let loss = match self.reduction {
            Reduction::None => inputs.dimensions(1).map(<[_]>::to_vec),
            Reduction::Sum | Reduction::Mean => Some(Vec::new()),
        };
        let mut outputs = vec![Fact::partial(inputs.data_type(0), loss), like_first(inputs)];
        outputs.truncate(inputs.output_count());
        Ok(outputs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data_type::DataType;

    fn run(x: Tensor, targets: Tensor, weights: Tensor) -> Result<Vec<Value>, OperatorError> {
        let loss = LikelihoodLoss {
            from_scores: true,
            reduction: Reduction::Mean,
            ignore_index: Some(-7),
        };
        loss.evaluate(&Inputs::new(&[x, targets, weights].map(|input| Some(input.into())), 1))
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let x = |shape: &[usize]| Tensor::filled(shape.to_vec(), 0f32).unwrap();
        let targets = |class: i64| Tensor::vector(vec![class, -7]);
        assert!(run(x(&[2, 3]), targets(2), x(&[3])).is_ok());
        assert!(run(x(&[2, 3]), targets(3), x(&[3])).is_err());
        assert!(run(x(&[2, 3]), targets(-1), x(&[3])).is_err());
        assert!(run(x(&[2, 3]), targets(0), x(&[2])).is_err());
        assert!(run(x(&[2, 3, 2]), targets(0), x(&[3])).is_err());
        assert!(run(x(&[2]), targets(0), x(&[3])).is_err());
        assert!(run(x(&[2, 0]), targets(0), x(&[0])).is_err());
        assert!(run(x(&[2, 3]), Tensor::scalar(0i64), x(&[3])).is_err());
    }

    #[test]
    fn facts_follow_the_reduction() {
        let x = Fact::partial(Some(DataType::F32), Some(vec![None, Some(5), Some(4)]));
        let targets = Fact::partial(Some(DataType::I64), Some(vec![None, Some(4)]));
        for (reduction, expected) in
            [(Reduction::None, "float32[?,4]"), (Reduction::Mean, "float32[]")]
        {
            let loss = LikelihoodLoss { from_scores: true, reduction, ignore_index: None };
            let facts = [Some(&x), Some(&targets)];
            let inferred = loss.infer(&InputFacts::new(&facts, 2)).unwrap();
            assert_eq!(inferred[0].to_string(), expected);
            assert_eq!(inferred[1], x);
        }
    }
}
