//! Conv: filters slid over the spatial axes of images.

use std::sync::Arc;

use super::convolve::{ConvolutionSizes, convolve};
use super::image::{ImageShape, channels_last_after};
use super::window::{AxisWindow, Padding, Window, sizes};
use crate::error::OperatorError;
use crate::fact::Fact;
use crate::operator::{InputFacts, Inputs, NodeSource, Operator};
use crate::operators::linear::scalar::{Scalar, in_scalars, same_type};
use crate::tensor::{Tensor, element_count};
use crate::value::Value;

/// A convolution of images `[N, C, spatial...]` with weights `[M, C / group, kernel...]` and a bias `[M]` or none.
#[derive(Clone, Debug)]
pub struct Conv {
    /// Steps between windows per axis; empty where all are 1.
    pub strides: Vec<usize>,
    /// Steps between the elements of a window per axis; empty where all are 1.
    pub dilations: Vec<usize>,
    /// How the input is extended with zeros.
    pub padding: Padding,
    /// Groups that channels and filters fall into.
    pub group: usize,
    /// The kernel's shape where the model states it; the weights must agree.
    pub kernel: Option<Vec<usize>>,
    /// Images, in and out, are `[N, spatial..., C]`; the weights' order stays. Never read from a model.
    pub channels_last: bool,
}

pub(super) fn build(source: &NodeSource<'_>) -> Result<Arc<dyn Operator>, OperatorError> {
    Ok(Arc::new(Conv::from_source(source)?))
}

impl Conv {
    /// The convolution whose attributes a node has: also those of the quantised convolutions.
    pub(crate) fn from_source(source: &NodeSource<'_>) -> Result<Self, OperatorError> {
        let attributes = source.attributes;
        Ok(Conv {
            strides: sizes(attributes, "strides", 1)?.unwrap_or_default(),
            dilations: sizes(attributes, "dilations", 1)?.unwrap_or_default(),
            padding: Padding::from_attributes(attributes)?,
            group: group(source)?,
            kernel: sizes(attributes, "kernel_shape", 1)?,
            channels_last: false,
        })
    }

    /// How the window moves.
    pub fn window(&self) -> Window<'_> {
        Window {
            strides: &self.strides,
            dilations: &self.dilations,
            padding: &self.padding,
            ceil_mode: false,
        }
    }

    /// The windows along the spatial axes, for shapes as [`Conv`] states them.
    pub fn axes(
        &self,
        input: &[usize],
        weights: &[usize],
    ) -> Result<Vec<AxisWindow>, OperatorError> {
        let input = ImageShape::split(input, self.channels_last)?;
        let kernel = weights.get(2..).unwrap_or_default();
        self.check_kernel(kernel.iter().map(|&size| Some(size)))?;
        self.window().axes(&input.spatial, kernel)
    }

    fn check_kernel(
        &self,
        kernel: impl ExactSizeIterator<Item = Option<usize>>,
    ) -> Result<(), OperatorError> {
        let Some(stated) = &self.kernel else { return Ok(()) };
        let agrees = stated.len() == kernel.len()
            && stated
                .iter()
                .zip(kernel)
                .all(|(&stated, size)| size.is_none_or(|size| size == stated));
        agrees.then_some(()).ok_or_else(|| OperatorError::Attribute {
            name: "kernel_shape".into(),
            problem: format!("{stated:?} is not the shape of the weights' kernel"),
        })
    }

    /// The sizes of this convolution on given shapes, checked.
    pub(crate) fn sizes(
        &self,
        input: &[usize],
        weights: &[usize],
    ) -> Result<ConvolutionSizes, OperatorError> {
        let axes = self.axes(input, weights)?;
        let input = ImageShape::split(input, self.channels_last)?;
        ConvolutionSizes::new(input, weights, self.group, axes)
    }

    /// The output's dimensions for input and weights of known rank.
    pub(crate) fn output_dimensions(
        &self,
        input: &[Option<usize>],
        weights: &[Option<usize>],
    ) -> Result<Vec<Option<usize>>, OperatorError> {
        let input = ImageShape::split(input, self.channels_last)?;
        let kernel = weights.get(2..).unwrap_or_default();
        if kernel.len() != input.spatial.len() {
            return Err(OperatorError::Invalid(format!(
                "weights of rank {} on {} spatial axes",
                weights.len(),
                input.spatial.len()
            )));
        }
        self.check_kernel(kernel.iter().copied())?;
        let spatial = self.window().output_dimensions(&input.spatial, kernel)?;
        Ok(ImageShape { channels: weights[0], spatial, ..input }.joined())
    }
}

/// The `group` attribute.
pub(super) fn group(source: &NodeSource<'_>) -> Result<usize, OperatorError> {
    let group = source.attributes.int_or("group", 1)?;
    usize::try_from(group).ok().filter(|&group| group > 0).ok_or_else(|| OperatorError::Attribute {
        name: "group".into(),
        problem: format!("{group} groups"),
    })
}

/// Refuses a bias that is not one number per filter.
pub(super) fn check_bias(bias: Option<&Tensor>, filters: usize) -> Result<(), OperatorError> {
    match bias {
        Some(bias) if bias.shape() != [filters] => {
            Err(OperatorError::Shapes { left: bias.shape().to_vec(), right: vec![filters] })
        }
        _ => Ok(()),
    }
}

impl Operator for Conv {
    fn name(&self) -> &'static str {
        "Conv"
    }

    fn evaluate(&self, inputs: &Inputs<'_>) -> Result<Vec<Value>, OperatorError> {
        let (x, weights) = (inputs.tensor(0)?, inputs.tensor(1)?);
        let bias = inputs.optional_tensor(2)?;
        let data_type = same_type(&[&[x, weights], bias.as_slice()].concat())?;
        let sizes = self.sizes(x.shape(), weights.shape())?;
        check_bias(bias, sizes.output.channels)?;
        let y: Result<Tensor, OperatorError> = in_scalars!(data_type, T => {
            let bias = bias.map(T::read).transpose()?;
            let (x, weights) = (T::read(x)?, T::read(weights)?);
            let y = convolve::<T>(&sizes, &x, &weights, bias.as_deref(), data_type)?;
            T::write(sizes.output.joined(), data_type, y)
        });
        Ok(vec![y?.into()])
    }

    fn infer(&self, inputs: &InputFacts<'_>) -> Result<Vec<Fact>, OperatorError> {
        let dimensions = match (inputs.dimensions(0), inputs.dimensions(1)) {
            (Some(input), Some(weights)) => Some(self.output_dimensions(input, weights)?),
            _ => None,
        };
        Ok(vec![Fact::partial(inputs.data_type(0), dimensions)])
    }

    fn flops(&self, inputs: &InputFacts<'_>, outputs: &[Fact]) -> u64 {
        let weights = inputs.shape(1);
        let per_output = weights.and_then(|shape| element_count(shape.get(1..)?)).unwrap_or(0);
        let count = outputs.first().and_then(Fact::element_count).unwrap_or(0);
        (count as u64).saturating_mul(per_output as u64).saturating_mul(2)
    }

    fn permuted(&self, permutation: &[usize]) -> Option<Arc<dyn Operator>> {
        let channels_last = channels_last_after(self.channels_last, permutation)?;
        Some(Arc::new(Conv { channels_last, ..self.clone() }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attribute::Attributes;
    use crate::builder::standard_operator;
    use crate::data_type::DataType;
    use crate::operators::layout::transpose;

    fn ramp(shape: &[usize]) -> Tensor {
        let count = shape.iter().product::<usize>();
        let elements = (0..count).map(|i| (i * 7 % 13) as f32 - 5.0).collect();
        Tensor::from_vec(shape.to_vec(), elements).unwrap()
    }

    fn run(operator: &dyn Operator, tensors: &[&Tensor]) -> Result<Tensor, OperatorError> {
        let values: Vec<_> = tensors.iter().map(|&t| Some(Value::from(t.clone()))).collect();
        operator.evaluate(&Inputs::new(&values, 1))?.remove(0).into_tensor()
    }

    #[test]
    fn channels_last_computes_the_same() {
        let attributes = Attributes::new()
            .with("group", 2)
            .with("strides", vec![2, 1])
            .with("dilations", vec![1, 2])
            .with("pads", vec![1, 0, 0, 2]);
        let first = standard_operator("Conv", 11, &attributes).unwrap();
        let last = first.permuted(&[0, 2, 3, 1]).unwrap();
        let (x, weights, bias) = (ramp(&[2, 4, 5, 6]), ramp(&[6, 2, 3, 2]), ramp(&[6]));
        let expected = run(&*first, &[&x, &weights, &bias]).unwrap();
        assert_eq!(expected.shape(), &[2, 6, 2, 6]);
        let x = transpose(&x, &[0, 2, 3, 1]).unwrap();
        let given = run(&*last, &[&x, &weights, &bias]).unwrap();
        assert_eq!(given, transpose(&expected, &[0, 2, 3, 1]).unwrap());
        assert!(first.permuted(&[1, 0, 2, 3]).is_none());
    }

    #[test]
    fn misfits_are_refused() {
        let conv = standard_operator("Conv", 11, &Attributes::new().with("group", 2)).unwrap();
        let cases: [(&[usize], &[usize], &[usize]); 6] = [
            (&[1, 4, 5], &[2, 4, 3], &[2]),
            (&[1, 4, 5], &[3, 2, 3], &[3]),
            (&[1, 4, 5], &[2, 2, 6], &[2]),
            (&[1, 4, 5], &[2, 2, 3], &[1]),
            (&[1, 4], &[2, 2], &[2]),
            (&[1, 4, 5], &[2], &[2]),
        ];
        for (x, weights, bias) in cases {
            assert!(run(&*conv, &[&ramp(x), &ramp(weights), &ramp(bias)]).is_err(), "{x:?}");
        }
    }

    #[test]
    fn unknown_dimensions_stay_unknown() {
        let conv = standard_operator("Conv", 11, &Attributes::new()).unwrap();
        let x = Fact::partial(Some(DataType::F32), Some(vec![None, Some(3), Some(8), None]));
        let weights = Fact::new(DataType::F32, &[16, 3, 3, 3]);
        let made = conv.infer(&InputFacts::new(&[Some(&x), Some(&weights)], 1)).unwrap();
        assert_eq!(made[0].dimensions, Some(vec![None, Some(16), Some(6), None]));
    }
}
