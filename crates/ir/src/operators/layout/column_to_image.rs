//! Col2Im: overlapping blocks, one per column, summed back into an image.

use std::sync::Arc;

use super::expand::sizes;
use super::selection::zero;
use crate::error::OperatorError;
use crate::fact::Fact;
use crate::operator::{InputFacts, Inputs, NodeSource, Operator};
use crate::operators::indexing::scatter::{Combination, scatter};
use crate::tensor::{checked_count, element_count};
use crate::value::Value;

/// The image whose blocks, taken as a convolution takes them, are the columns of the first input; where blocks
/// overlap they are summed.
#[derive(Clone, Debug)]
struct ColumnToImage {
    strides: Option<Vec<usize>>,
    dilations: Option<Vec<usize>>,
    pads: Option<Vec<usize>>,
}

pub(super) fn build(source: &NodeSource<'_>) -> Result<Arc<dyn Operator>, OperatorError> {
    let list = |name: &str| source.attributes.ints(name)?.map(sizes).transpose();
    Ok(Arc::new(ColumnToImage {
        strides: list("strides")?,
        dilations: list("dilations")?,
        pads: list("pads")?,
    }))
}

/// One spatial axis: how blocks and columns lie along it.
#[derive(Clone, Copy, Debug)]
struct SpatialAxis {
    image: usize,
    block: usize,
    stride: usize,
    dilation: usize,
    pad_before: usize,
    columns: usize,
}

impl ColumnToImage {
    fn axes(&self, image: &[usize], block: &[usize]) -> Option<Vec<SpatialAxis>> {
        let rank = image.len();
        let of = |list: &Option<Vec<usize>>, axis: usize, default| match list {
            None => Some(default),
            Some(list) => list.get(axis).copied(),
        };
        let axis = |axis: usize| {
            let (image, block) = (image[axis], *block.get(axis)?);
            let stride = of(&self.strides, axis, 1).filter(|&stride| stride > 0)?;
            let dilation = of(&self.dilations, axis, 1).filter(|&dilation| dilation > 0)?;
            let pad_before = of(&self.pads, axis, 0)?;
            let pad_after = of(&self.pads, axis.checked_add(rank)?, 0)?;
            let reach = block.checked_sub(1)?.checked_mul(dilation)?.checked_add(1)?;
            let padded = image.checked_add(pad_before)?.checked_add(pad_after)?;
            let columns = padded.checked_sub(reach)? / stride + 1;
            Some(SpatialAxis { image, block, stride, dilation, pad_before, columns })
        };
        (block.len() == rank).then(|| (0..rank).map(axis).collect())?
    }
}

impl SpatialAxis {
    /// Where one place of one block falls in the image; `None` in the padding.
    fn pixel(self, place: usize, column: usize) -> Option<usize> {
        let padded = column * self.stride + place * self.dilation;
        padded.checked_sub(self.pad_before).filter(|&pixel| pixel < self.image)
    }
}

impl Operator for ColumnToImage {
    fn name(&self) -> &'static str {
        "Col2Im"
    }

    fn evaluate(&self, inputs: &Inputs<'_>) -> Result<Vec<Value>, OperatorError> {
        let x = inputs.tensor(0)?;
        let image = sizes(&inputs.tensor(1)?.to_i64s()?)?;
        let block = sizes(&inputs.tensor(2)?.to_i64s()?)?;
        let invalid = || {
            let shape = x.shape();
            OperatorError::Invalid(format!(
                "{shape:?} are no blocks {block:?} of an image {image:?}"
            ))
        };
        let axes = self.axes(&image, &block).ok_or_else(invalid)?;
        let columns: Vec<usize> = axes.iter().map(|axis| axis.columns).collect();
        let places = element_count(&block).filter(|&places| places > 0).ok_or_else(invalid)?;
        let &[batch, rows, width] = x.shape() else {
            return Err(invalid());
        };
        if rows % places != 0 || element_count(&columns) != Some(width) {
            return Err(invalid());
        }
        let shape = [&[batch, rows / places], &image[..]].concat();
        let count = checked_count(&shape, x.data_type())?;
        let mut sources = Vec::new();
        let mut targets = Vec::new();
        if !x.is_empty() && count > 0 {
            let pixels = element_count(&image).ok_or_else(invalid)?;
            for source in 0..x.len() {
                let (row, mut column) = (source / width, source % width);
                let mut place = row % places;
                let mut pixel = Some(0);
                let mut step = 1;
                for axis in axes.iter().rev() {
                    let along = axis.pixel(place % axis.block, column % axis.columns);
                    pixel = pixel.zip(along).map(|(sum, along)| sum + along * step);
                    step *= axis.image;
                    place /= axis.block;
                    column /= axis.columns;
                }
                if let Some(pixel) = pixel {
                    sources.push(source);
                    targets.push(row / places * pixels + pixel);
                }
            }
        }
        let empty = zero(x.data_type()).gathered(shape, &vec![0; count])?;
        let updates = x.gathered(vec![sources.len()], &sources)?;
        Ok(vec![scatter(&empty, &targets, &updates, Combination::Add)?.into()])
    }

    fn infer(&self, inputs: &InputFacts<'_>) -> Result<Vec<Fact>, OperatorError> {
        let (image, block) = (inputs.constant_i64s(1), inputs.constant_i64s(2));
        let from = inputs.dimensions(0).filter(|from| from.len() == 3);
        let places =
            block.as_deref().map(sizes).transpose()?.and_then(|block| element_count(&block));
        let channels = from.and_then(|from| from[1]?.checked_div(places?));
        let dimensions = image.as_deref().map(sizes).transpose()?.map(|image| {
            let batch = from.and_then(|from| from[0]);
            [batch, channels].into_iter().chain(image.into_iter().map(Some)).collect()
        });
        Ok(vec![Fact::partial(inputs.data_type(0), dimensions)])
    }
}
