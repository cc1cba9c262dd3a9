//! What all pools with a window share: its attributes, shapes, and the walk over it.

use super::image::{ImageShape, channels_last_after};
use super::taps::{OUTSIDE, Taps, kernel_count, runs};
use super::window::{AxisWindow, Padding, Window, sizes};
use crate::data_type::DataType;
use crate::error::OperatorError;
use crate::fact::Fact;
use crate::operator::NodeSource;
use crate::operators::linear::scalar::Scalar;
use crate::tensor::{checked_count, element_count};

/// A pool's window over images `[N, C, spatial...]`.
#[derive(Clone, Debug)]
pub struct Pooling {
    /// Elements of the window per axis.
    pub kernel: Vec<usize>,
    /// Steps between windows per axis; empty where all are 1.
    pub strides: Vec<usize>,
    /// Steps between the elements of a window per axis; empty where all are 1.
    pub dilations: Vec<usize>,
    /// How the input is extended.
    pub padding: Padding,
    /// A last window that reaches past the padding counts too, unless it would start there.
    pub ceil_mode: bool,
    /// Images, in and out, are `[N, spatial..., C]`. Never read from a model.
    pub channels_last: bool,
}

impl Pooling {
    pub(super) fn from_source(source: &NodeSource<'_>) -> Result<Self, OperatorError> {
        let attributes = source.attributes;
        let kernel = sizes(attributes, "kernel_shape", 1)?.ok_or_else(|| {
            OperatorError::Attribute { name: "kernel_shape".into(), problem: "is missing".into() }
        })?;
        Ok(Pooling {
            kernel,
            strides: sizes(attributes, "strides", 1)?.unwrap_or_default(),
            dilations: sizes(attributes, "dilations", 1)?.unwrap_or_default(),
            padding: Padding::from_attributes(attributes)?,
            ceil_mode: attributes.int_or("ceil_mode", 0)? != 0,
            channels_last: false,
        })
    }

    /// How the window moves.
    pub fn window(&self) -> Window<'_> {
        Window {
            strides: &self.strides,
            dilations: &self.dilations,
            padding: &self.padding,
            ceil_mode: self.ceil_mode,
        }
    }

    /// The windows along the spatial axes of an input of the given shape; too many or too large ones are refused.
    pub fn axes(&self, input: &[usize]) -> Result<Vec<AxisWindow>, OperatorError> {
        let input = ImageShape::split(input, self.channels_last)?;
        let axes = self.window().axes(&input.spatial, &self.kernel)?;
        let output: Vec<usize> = axes.iter().map(|axis| axis.output).collect();
        checked_count(&output, DataType::I64)?;
        kernel_count(&axes)?;
        Ok(axes)
    }

    /// One operation for each element of each window.
    pub(super) fn flops(&self, outputs: &[Fact]) -> u64 {
        let per_output = element_count(&self.kernel).unwrap_or(0);
        let count = outputs.first().and_then(Fact::element_count).unwrap_or(0);
        (count as u64).saturating_mul(per_output as u64)
    }

    /// The output's dimensions.
    pub(super) fn output_dimensions(
        &self,
        input: &[Option<usize>],
    ) -> Result<Vec<Option<usize>>, OperatorError> {
        let input = ImageShape::split(input, self.channels_last)?;
        if input.spatial.len() != self.kernel.len() {
            return Err(OperatorError::Invalid(format!(
                "a window of {} axes on {} spatial axes",
                self.kernel.len(),
                input.spatial.len()
            )));
        }
        let kernel: Vec<Option<usize>> = self.kernel.iter().map(|&size| Some(size)).collect();
        let spatial = self.window().output_dimensions(&input.spatial, &kernel)?;
        Ok(ImageShape { spatial, ..input }.joined())
    }

    /// The same on permuted images.
    pub(super) fn permuted(&self, permutation: &[usize]) -> Option<Self> {
        let channels_last = channels_last_after(self.channels_last, permutation)?;
        Some(Pooling { channels_last, ..self.clone() })
    }

    /// Folds each window of `x`: from `start`, with `step` for each element and its place in `x` and in its plane,
    /// to what `finish` makes of it and the output position in the plane. Returns the output's shape and elements.
    pub(super) fn fold<T: Scalar, A: Clone, O: Clone + Default>(
        &self,
        shape: &[usize],
        x: &[T],
        start: A,
        step: impl Fn(&mut A, T, usize, usize),
        finish: impl Fn(&A, usize) -> O,
    ) -> Result<(Vec<usize>, Vec<O>), OperatorError> {
        let axes = self.axes(shape)?;
        let input = ImageShape::split(shape, self.channels_last)?;
        let spatial = axes.iter().map(|axis| axis.output).collect();
        let output = ImageShape { spatial, ..input.clone() };
        let shape = output.joined();
        let mut y = vec![O::default(); checked_count(&shape, DataType::I64)?];
        if y.is_empty() {
            return Ok((shape, y));
        }
        let mut folds = Vec::new();
        for run in runs(&axes, kernel_count(&axes)?)? {
            let taps = Taps::new(&axes, run.clone());
            for (from, to) in input.planes().zip(output.planes()) {
                folds.clear();
                folds.resize(run.len(), start.clone());
                for row in taps.rows() {
                    for (fold, &source) in folds.iter_mut().zip(row) {
                        if source != OUTSIDE {
                            let place = from.at(source);
                            step(fold, x[place], place, source);
                        }
                    }
                }
                for (position, fold) in run.clone().zip(&folds) {
                    y[to.at(position)] = finish(fold, position);
                }
            }
        }
        Ok((shape, y))
    }
}
