//! ConvInteger and QLinearConv: convolutions of quantised numbers.

use std::sync::Arc;

use crate::data_type::DataType;
use crate::error::OperatorError;
use crate::fact::Fact;
use crate::operator::{InputFacts, Inputs, NodeSource, Operator};
use crate::operators::convolution::Conv;
use crate::operators::convolution::convolve::{ConvolutionSizes, convolve};
use crate::tensor::Tensor;
use crate::value::Value;

use super::number;
use super::zero_point::{centred_integers, spread};

/// The convolution as 32-bit integers. Padding stands for zero, whatever its code.
fn convolve_integers(
    conv: &Conv,
    [x, x_zero]: [Option<&Tensor>; 2],
    [w, w_zero]: [Option<&Tensor>; 2],
    bias: Option<&Tensor>,
) -> Result<(ConvolutionSizes, Vec<i32>), OperatorError> {
    let x = x.ok_or(OperatorError::MissingInput(0))?;
    let w = w.ok_or(OperatorError::MissingInput(1))?;
    let sizes = conv.sizes(x.shape(), w.shape())?;
    if x_zero.is_some_and(|zero| zero.len() != 1) {
        return Err(OperatorError::Invalid("the input has several zero points".into()));
    }
    let images = centred_integers(x, x_zero, 0)?;
    let weights = centred_integers(w, w_zero, 0)?;
    let bias = match bias {
        None => None,
        Some(bias) if bias.shape() == [sizes.output.channels] => Some(bias.elements::<i32>()?),
        Some(bias) => {
            return Err(OperatorError::Shapes {
                left: bias.shape().to_vec(),
                right: vec![sizes.output.channels],
            });
        }
    };
    let sums = convolve(&sizes, &images, &weights, bias, DataType::I32)?;
    Ok((sizes, sums))
}

fn infer_convolution(
    conv: &Conv,
    inputs: &InputFacts<'_>,
    weights: usize,
    data_type: Option<DataType>,
) -> Result<Vec<Fact>, OperatorError> {
    let dimensions = match (inputs.dimensions(0), inputs.dimensions(weights)) {
        (Some(input), Some(weights)) => Some(conv.output_dimensions(input, weights)?),
        _ => None,
    };
    Ok(vec![Fact::partial(data_type, dimensions)])
}

fn convolution_flops(
    conv: &Conv,
    inputs: &InputFacts<'_>,
    weights: usize,
    outputs: &[Fact],
) -> u64 {
    conv.flops(&InputFacts::new(&[inputs.fact(0), inputs.fact(weights)], 1), outputs)
}

/// The same convolution on permuted images, where there is one.
fn permuted(conv: &Conv, permutation: &[usize]) -> Option<Conv> {
    conv.permuted(permutation)?.downcast::<Conv>().cloned()
}

#[derive(Debug)]
struct ConvInteger {
    conv: Conv,
}

pub(super) fn build_integer(source: &NodeSource<'_>) -> Result<Arc<dyn Operator>, OperatorError> {
    Ok(Arc::new(ConvInteger { conv: Conv::from_source(source)? }))
}

impl Operator for ConvInteger {
    fn name(&self) -> &'static str {
        "ConvInteger"
    }

    fn evaluate(&self, inputs: &Inputs<'_>) -> Result<Vec<Value>, OperatorError> {
        let at = |index| inputs.optional_tensor(index);
        let (sizes, sums) =
            convolve_integers(&self.conv, [at(0)?, at(2)?], [at(1)?, at(3)?], None)?;
        Ok(vec![Tensor::from_vec(sizes.output.joined(), sums)?.into()])
    }

    fn infer(&self, inputs: &InputFacts<'_>) -> Result<Vec<Fact>, OperatorError> {
        infer_convolution(&self.conv, inputs, 1, Some(DataType::I32))
    }

    fn flops(&self, inputs: &InputFacts<'_>, outputs: &[Fact]) -> u64 {
        convolution_flops(&self.conv, inputs, 1, outputs)
    }

    fn permuted(&self, permutation: &[usize]) -> Option<Arc<dyn Operator>> {
        Some(Arc::new(ConvInteger { conv: permuted(&self.conv, permutation)? }))
    }
}

/// The convolution, quantised again.
#[derive(Debug)]
struct QLinearConv {
    conv: Conv,
}

pub(super) fn build_quantised(source: &NodeSource<'_>) -> Result<Arc<dyn Operator>, OperatorError> {
    Ok(Arc::new(QLinearConv { conv: Conv::from_source(source)? }))
}

impl Operator for QLinearConv {
    fn name(&self) -> &'static str {
        "QLinearConv"
    }

    fn evaluate(&self, inputs: &Inputs<'_>) -> Result<Vec<Value>, OperatorError> {
        let at = |index| inputs.optional_tensor(index);
        let (sizes, sums) =
            convolve_integers(&self.conv, [at(0)?, at(2)?], [at(3)?, at(5)?], at(8)?)?;
        let shape = sizes.output.joined();
        let x_scale = inputs.tensor(1)?.only::<f32>()?;
        let y_scale = inputs.tensor(6)?.only::<f32>()?;
        let filters = sizes.output.channels;
        let factors: Vec<f64> = spread(inputs.tensor(4)?, &[filters], 0)?
            .into_iter()
            .map(|w_scale| f64::from(x_scale * w_scale as f32 / y_scale))
            .collect();
        let zero = inputs.tensor(7)?;
        let &[zero_point] = &number::read(zero)?[..] else {
            return Err(OperatorError::Invalid("the output has several zero points".into()));
        };
        let positions = if sizes.output.channels_last { 1 } else { sizes.output.positions() };
        let numbers = sums.iter().enumerate().map(|(index, &sum)| {
            (f64::from(sum) * factors[index / positions % filters], zero_point)
        });
        Ok(vec![number::write(shape, zero.data_type(), numbers, true)?.into()])
    }

    fn infer(&self, inputs: &InputFacts<'_>) -> Result<Vec<Fact>, OperatorError> {
        infer_convolution(&self.conv, inputs, 3, inputs.data_type(7))
    }

    fn flops(&self, inputs: &InputFacts<'_>, outputs: &[Fact]) -> u64 {
        convolution_flops(&self.conv, inputs, 3, outputs)
    }

    fn permuted(&self, permutation: &[usize]) -> Option<Arc<dyn Operator>> {
        Some(Arc::new(QLinearConv { conv: permuted(&self.conv, permutation)? }))
    }
}
