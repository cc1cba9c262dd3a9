//! Adagrad, Adam and Momentum: one step of gradient descent each.

use std::sync::Arc;

use crate::error::OperatorError;
use crate::fact::Fact;
use crate::operator::{InputFacts, Inputs, NodeSource, Operator};
use crate::tensor::Tensor;
use crate::value::Value;

/// One step of an optimiser over any number of tensors.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OptimiserStep {
    /// The rule that is followed.
    pub rule: Rule,
    /// How strongly large values are drawn to zero.
    pub norm_coefficient: f32,
}

/// How a value and its history change by a gradient; the parameters are named as the standard names them.
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum Rule {
    Adagrad { decay_factor: f32, epsilon: f32 },
    Adam { alpha: f32, beta: f32, epsilon: f32, norm_coefficient_post: f32 },
    Momentum { alpha: f32, beta: f32, nesterov: bool },
}

pub(super) fn build(source: &NodeSource<'_>) -> Result<Arc<dyn Operator>, OperatorError> {
    let attributes = source.attributes;
    let required = |name: &str| {
        attributes.float(name)?.ok_or_else(|| OperatorError::Attribute {
            name: name.to_string(),
            problem: "is missing".into(),
        })
    };
    let rule = match source.operator {
        "Adagrad" => Rule::Adagrad {
            decay_factor: attributes.float_or("decay_factor", 0.0)?,
            epsilon: attributes.float_or("epsilon", 1e-6)?,
        },
        "Adam" => Rule::Adam {
            alpha: attributes.float_or("alpha", 0.9)?,
            beta: attributes.float_or("beta", 0.999)?,
            epsilon: attributes.float_or("epsilon", 1e-6)?,
            norm_coefficient_post: attributes.float_or("norm_coefficient_post", 0.0)?,
        },
        _ => Rule::Momentum {
            alpha: required("alpha")?,
            beta: required("beta")?,
            nesterov: match attributes.string("mode")? {
                Some("nesterov") => true,
                Some("standard") => false,
                _ => {
                    return Err(OperatorError::Attribute {
                        name: "mode".into(),
                        problem: "must be standard or nesterov".into(),
                    });
                }
            },
        },
    };
    let norm_coefficient = attributes.float_or("norm_coefficient", 0.0)?;
    Ok(Arc::new(OptimiserStep { rule, norm_coefficient }))
}

impl Rule {
    /// How many tensors of history each optimised tensor has.
    fn history_count(&self) -> usize {
        match self {
            Rule::Adagrad { .. } | Rule::Momentum { .. } => 1,
            Rule::Adam { .. } => 2,
        }
    }

    /// The new value and history of one element. `rate` is the learning rate and `step` counts the steps so far.
    fn apply(
        &self,
        (rate, step): (f64, f64),
        value: f64,
        gradient: f64,
        history: [f64; 2],
    ) -> (f64, [f64; 2]) {
        match *self {
            Rule::Adagrad { decay_factor, epsilon } => {
                let rate = rate / (1.0 + step * f64::from(decay_factor));
                let squares = history[0] + gradient * gradient;
                let scale = squares.sqrt() + f64::from(epsilon);
                (value - rate * gradient / scale, [squares, 0.0])
            }
            Rule::Adam { alpha, beta, epsilon, norm_coefficient_post } => {
                let (alpha, beta) = (f64::from(alpha), f64::from(beta));
                let mean = alpha * history[0] + (1.0 - alpha) * gradient;
                let squares = beta * history[1] + (1.0 - beta) * gradient * gradient;
                let rate = if step > 0.0 {
                    rate * (1.0 - beta.powf(step)).sqrt() / (1.0 - alpha.powf(step))
                } else {
                    rate
                };
                let moved = value - rate * mean / (squares.sqrt() + f64::from(epsilon));
                ((1.0 - f64::from(norm_coefficient_post)) * moved, [mean, squares])
            }
            Rule::Momentum { alpha, beta, nesterov } => {
                let alpha = f64::from(alpha);
                // There is no momentum yet to damp the first gradient against.
                let beta = if step > 0.0 { f64::from(beta) } else { 1.0 };
                let momentum = alpha * history[0] + beta * gradient;
                let direction = if nesterov { gradient + alpha * momentum } else { momentum };
                (value - rate * direction, [momentum, 0.0])
            }
        }
    }
}

impl OptimiserStep {
    /// How many tensors are optimised by a node of so many inputs, after learning rate and step count.
    fn tensor_count(&self, input_count: usize) -> Result<usize, OperatorError> {
        let kinds = 2 + self.rule.history_count();
        match input_count.checked_sub(2) {
            Some(listed) if listed.is_multiple_of(kinds) => Ok(listed / kinds),
            _ => Err(OperatorError::Invalid(format!(
                "{input_count} inputs are not a rate, a count and groups of {kinds}"
            ))),
        }
    }

    /// New value and new history of the tensor at `index` of `count`.
    fn step(
        &self,
        inputs: &Inputs<'_>,
        index: usize,
        count: usize,
    ) -> Result<Vec<Tensor>, OperatorError> {
        let rate = inputs.tensor(0)?.to_f64s()?;
        let step = inputs.tensor(1)?.to_i64s()?;
        let (&[rate], &[step]) = (&rate[..], &step[..]) else {
            return Err(OperatorError::Invalid(
                "learning rate and step are one number each".into(),
            ));
        };
        let value = inputs.tensor(2 + index)?;
        let mut columns = Vec::new();
        for kind in 0..2 + self.rule.history_count() {
            let tensor = inputs.tensor(2 + kind * count + index)?;
            if tensor.shape() != value.shape() {
                return Err(OperatorError::Shapes {
                    left: value.shape().to_vec(),
                    right: tensor.shape().to_vec(),
                });
            }
            columns.push(tensor.to_f64s()?);
        }
        let mut results = vec![Vec::with_capacity(value.len()); 1 + self.rule.history_count()];
        for element in 0..value.len() {
            let value = columns[0][element];
            let gradient = f64::from(self.norm_coefficient) * value + columns[1][element];
            let history =
                [2, 3].map(|kind| columns.get(kind).map_or(0.0, |column| column[element]));
            let (value, history) = self.rule.apply((rate, step as f64), value, gradient, history);
            let changed = std::iter::once(value).chain(history);
            results.iter_mut().zip(changed).for_each(|(result, changed)| result.push(changed));
        }
        let shape = value.shape();
        let data_type = value.data_type();
        results
            .into_iter()
            .map(|result| Tensor::from_f64s(shape.to_vec(), data_type, result))
            .collect()
    }
}

impl Operator for OptimiserStep {
    fn name(&self) -> &'static str {
        match self.rule {
            Rule::Adagrad { .. } => "Adagrad",
            Rule::Adam { .. } => "Adam",
            Rule::Momentum { .. } => "Momentum",
        }
    }

    fn evaluate(&self, inputs: &Inputs<'_>) -> Result<Vec<Value>, OperatorError> {
        let count = self.tensor_count(inputs.len())?;
        let steps = (0..count)
            .map(|index| self.step(inputs, index, count))
            .collect::<Result<Vec<_>, _>>()?;
        // All new values come first, then all new histories of one kind, then of the next.
        let kinds = 1 + self.rule.history_count();
        Ok((0..kinds)
            .flat_map(|kind| steps.iter().map(move |step| step[kind].clone().into()))
            .collect())
    }

    fn infer(&self, inputs: &InputFacts<'_>) -> Result<Vec<Fact>, OperatorError> {
        let count = self.tensor_count(inputs.len())?;
        Ok((0..inputs.output_count())
            .map(|output| {
                let like = 2 + output % count.max(1);
                let dimensions = inputs.dimensions(like).map(<[_]>::to_vec);
                Fact::partial(inputs.data_type(like), dimensions)
            })
            .collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_inputs_are_refused() {
        let rule = Rule::Momentum { alpha: 0.9, beta: 0.1, nesterov: false };
        let step = OptimiserStep { rule, norm_coefficient: 0.0 };
        let (rate, count) = (Tensor::scalar(0.1f32), Tensor::scalar(0i64));
        let (short, long) = (Tensor::vector(vec![1f32]), Tensor::vector(vec![1f32, 2.0]));
        let run = |inputs: &[&Tensor]| {
            let inputs: Vec<_> = inputs.iter().map(|&input| Some(input.clone().into())).collect();
            step.evaluate(&Inputs::new(&inputs, 2))
        };
        assert!(run(&[&rate, &count, &short, &short, &short]).is_ok());
        assert!(run(&[&rate, &count, &short, &long, &short]).is_err());
        assert!(run(&[&rate, &count, &short, &short]).is_err());
        assert!(run(&[&long, &count, &short, &short, &short]).is_err());
        assert!(run(&[&rate]).is_err());
    }
}
