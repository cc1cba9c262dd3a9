//! Softmax, LogSoftmax and Hardmax: lines of elements become shares of one.

use std::sync::Arc;

use super::lines::for_each_line;
use crate::axis::{around_axis, normalise_axis, permuted_axis};
use crate::error::OperatorError;
use crate::fact::Fact;
use crate::operator::{InputFacts, Inputs, NodeSource, Operator};
use crate::operators::elementwise::inference::like_first;
use crate::tensor::{Tensor, TensorData};
use crate::value::Value;

/// `exp(x)` over the sum of `exp` along an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Softmax {
    /// The axis along which the shares sum to one.
    pub axis: i64,
    /// The axis and all after it count as one, as they did before opset 13.
    pub flattens: bool,
}

/// The logarithm of [`Softmax`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogSoftmax {
    /// What it is the logarithm of.
    pub softmax: Softmax,
}

/// One for the first largest element of each line, zero for the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hardmax {
    /// The lines, as [`Softmax`] has them.
    pub softmax: Softmax,
}

fn parse(source: &NodeSource<'_>) -> Result<Softmax, OperatorError> {
    let flattens = source.opset < 13;
    let axis = source.attributes.int_or("axis", if flattens { 1 } else { -1 })?;
    Ok(Softmax { axis, flattens })
}

pub(super) fn build(source: &NodeSource<'_>) -> Result<Arc<dyn Operator>, OperatorError> {
    Ok(Arc::new(parse(source)?))
}

pub(super) fn build_log(source: &NodeSource<'_>) -> Result<Arc<dyn Operator>, OperatorError> {
    Ok(Arc::new(LogSoftmax { softmax: parse(source)? }))
}

pub(super) fn build_hard(source: &NodeSource<'_>) -> Result<Arc<dyn Operator>, OperatorError> {
    Ok(Arc::new(Hardmax { softmax: parse(source)? }))
}

impl Softmax {
    /// Lets one of two functions, as the element type has it, change every line.
    fn map_lines(
        &self,
        inputs: &Inputs<'_>,
        single: impl Fn(&mut [f32]),
        double: impl Fn(&mut [f64]),
    ) -> Result<Vec<Value>, OperatorError> {
        let x = inputs.tensor(0)?;
        let axis = normalise_axis(self.axis, x.rank())?;
        if x.is_empty() {
            return Ok(vec![x.clone().into()]);
        }
        let (before, along, after) = around_axis(x.shape(), axis);
        let lines = if self.flattens { (before, along * after, 1) } else { (before, along, after) };
        let shape = x.shape().to_vec();
        let y = match x.data() {
            TensorData::F64(elements) => {
                let mut elements = elements.to_vec();
                for_each_line(&mut elements, lines, double);
                Tensor::from_vec(shape, elements)?
            }
            _ => {
                let mut elements = x.to_f32s()?.into_owned();
                for_each_line(&mut elements, lines, single);
                Tensor::from_f32s(shape, x.data_type(), elements)?
            }
        };
        Ok(vec![y.into()])
    }

    /// The same along the same lines where the axes are permuted, which flattened axes are not.
    fn permuted_axis(&self, permutation: &[usize]) -> Option<Softmax> {
        let axis = permuted_axis(self.axis, permutation)?;
        // The last axis alone is one line, flattened or not.
        let is_last = normalise_axis(self.axis, permutation.len()) == Ok(permutation.len() - 1);
        (is_last || !self.flattens).then_some(Softmax { axis, flattens: false })
    }
}

macro_rules! lines {
    ($float:ident, $softmax:ident, $log_softmax:ident, $hardmax:ident) => {
        fn $softmax(line: &mut [$float]) {
            let peak = peak(line, $float::NEG_INFINITY);
            line.iter_mut().for_each(|x| *x = (*x - peak).exp());
            let sum: f64 = line.iter().map(|&x| f64::from(x)).sum();
            let scale = (1.0 / sum) as $float;
            line.iter_mut().for_each(|x| *x *= scale);
        }

        fn $log_softmax(line: &mut [$float]) {
            let peak = peak(line, $float::NEG_INFINITY);
            let sum: f64 = line.iter().map(|&x| f64::from((x - peak).exp())).sum();
            let offset = sum.ln() as $float;
            line.iter_mut().for_each(|x| *x = *x - peak - offset);
        }

        fn $hardmax(line: &mut [$float]) {
            let peak = peak(line, $float::NEG_INFINITY);
            let first = line.iter().position(|&x| x == peak);
            line.iter_mut().enumerate().for_each(|(index, x)| {
                *x = if Some(index) == first { 1.0 } else { 0.0 };
            });
        }
    };
}
lines!(f32, softmax_f32, log_softmax_f32, hardmax_f32);
lines!(f64, softmax_f64, log_softmax_f64, hardmax_f64);

fn peak<T: Copy + PartialOrd>(line: &[T], lowest: T) -> T {
    line.iter().fold(lowest, |peak, &x| if x > peak { x } else { peak })
}

macro_rules! operator {
    ($operator:ident, $softmax:expr, $wrap:expr, $single:ident, $double:ident) => {
        impl Operator for $operator {
            fn name(&self) -> &'static str {
                stringify!($operator)
            }

            fn evaluate(&self, inputs: &Inputs<'_>) -> Result<Vec<Value>, OperatorError> {
                $softmax(self).map_lines(inputs, $single, $double)
            }

            fn infer(&self, inputs: &InputFacts<'_>) -> Result<Vec<Fact>, OperatorError> {
                Ok(vec![like_first(inputs)])
            }

            fn permuted(&self, permutation: &[usize]) -> Option<Arc<dyn Operator>> {
                Some(Arc::new($wrap($softmax(self).permuted_axis(permutation)?)))
            }
        }
    };
}
operator!(Softmax, Softmax::clone, std::convert::identity, softmax_f32, softmax_f64);
operator!(
    LogSoftmax,
    |log: &LogSoftmax| log.softmax,
    |softmax| LogSoftmax { softmax },
    log_softmax_f32,
    log_softmax_f64
);
operator!(
    Hardmax,
    |hard: &Hardmax| hard.softmax,
    |softmax| Hardmax { softmax },
    hardmax_f32,
    hardmax_f64
);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attribute::Attributes;
    use crate::builder::standard_operator;

    fn run(operator: &dyn Operator, x: Tensor) -> Result<Vec<f32>, OperatorError> {
        let outputs = operator.evaluate(&Inputs::new(&[Some(x.into())], 1))?;
        outputs[0].clone().into_tensor()?.into_elements()
    }

    #[test]
    fn before_opset_13_the_axes_after_count_as_one() {
        let x = Tensor::filled(vec![2, 2, 2], 0f32).unwrap();
        for (opset, share) in [(11, 0.25), (13, 0.5)] {
            let attributes = Attributes::new().with("axis", 1i64);
            let softmax = standard_operator("Softmax", opset, &attributes).unwrap();
            assert_eq!(run(&*softmax, x.clone()).unwrap(), [share; 8]);
            assert_eq!(softmax.permuted(&[0, 2, 1]).is_some(), opset == 13);
        }
    }

    #[test]
    fn permuting_moves_the_axis() {
        let softmax = Softmax { axis: -3, flattens: false };
        let permuted = softmax.permuted(&[0, 2, 3, 1]).unwrap();
        assert_eq!(permuted.downcast(), Some(&Softmax { axis: 3, flattens: false }));
    }

    #[test]
    fn a_scalar_has_no_axis() {
        assert!(run(&Softmax { axis: -1, flattens: false }, Tensor::scalar(1f32)).is_err());
    }
}
