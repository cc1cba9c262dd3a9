//! Indices as models give them, turned into offsets: negative ones count from the end, and none may lie outside.

use crate::broadcast::strided_indices;
use crate::error::OperatorError;
use crate::tensor::{Tensor, strides};

/// The index as a position in a dimension.
pub(super) fn normalise_index(index: i64, dimension: usize) -> Result<usize, OperatorError> {
    let shifted = if index < 0 { index.checked_add(dimension as i64) } else { Some(index) };
    shifted
        .and_then(|index| usize::try_from(index).ok())
        .filter(|&index| index < dimension)
        .ok_or_else(|| {
            OperatorError::Invalid(format!("index {index} is outside a dimension of {dimension}"))
        })
}

/// For each element of `indices`, the offset of the element of a tensor of the given shape that stands at the same
/// place along every axis but `axis`, and at the index along that one.
pub(super) fn element_offsets(
    shape: &[usize],
    indices: &Tensor,
    axis: usize,
) -> Result<Vec<usize>, OperatorError> {
    let fits =
        |(along, (&picked, &size)): (usize, (&usize, &usize))| along == axis || picked <= size;
    if indices.rank() != shape.len() || !indices.shape().iter().zip(shape).enumerate().all(fits) {
        let (left, right) = (shape.to_vec(), indices.shape().to_vec());
        return Err(OperatorError::Shapes { left, right });
    }
    let mut steps = strides(shape);
    let step = std::mem::take(&mut steps[axis]);
    let given = indices.to_i64s()?;
    let positions = given
        .iter()
        .map(|&index| normalise_index(index, shape[axis]))
        .collect::<Result<Vec<usize>, _>>()?;
    let bases = strided_indices(indices.shape(), &steps, 0);
    Ok(bases.into_iter().zip(positions).map(|(base, position)| base + position * step).collect())
}

/// Slices of a tensor named by index tuples.
pub(super) struct TupleSlices {
    /// The offset of each slice's first element.
    pub(super) offsets: Vec<usize>,
    /// Elements in each slice.
    pub(super) length: usize,
    /// The shape of all slices together.
    pub(super) shape: Vec<usize>,
}

impl TupleSlices {
    /// The slices of a tensor of the given shape that the tuples along the last axis of `indices` name,
    /// the first `batches` axes of both standing for the same thing.
    pub(super) fn new(
        shape: &[usize],
        indices: &Tensor,
        batches: usize,
    ) -> Result<Self, OperatorError> {
        let invalid = || {
            let problem = "index tuples do not name slices of the data: shapes";
            OperatorError::Invalid(format!("{problem} {:?}, {shape:?}", indices.shape()))
        };
        let (&width, leading) = indices.shape().split_last().ok_or_else(invalid)?;
        let named = batches.checked_add(width).filter(|&named| named <= shape.len());
        let named = named.filter(|_| width > 0).ok_or_else(invalid)?;
        if leading.get(..batches).is_none_or(|leading| *leading != shape[..batches]) {
            return Err(invalid());
        }
        let steps = strides(shape);
        let (tuple_shape, tuple_steps) = (&shape[batches..named], &steps[batches..named]);
        let given = indices.to_i64s()?;
        let mut offsets = Vec::with_capacity(given.len() / width);
        // Without tuples the batch dimensions may be of any size, so they are not walked.
        if !given.is_empty() {
            let batch_starts = strided_indices(&shape[..batches], &steps[..batches], 0);
            let tuples_per_batch = given.len() / width / batch_starts.len();
            for (place, tuple) in given.chunks_exact(width).enumerate() {
                let mut offset = batch_starts[place / tuples_per_batch];
                for ((&index, &size), &step) in tuple.iter().zip(tuple_shape).zip(tuple_steps) {
                    offset += normalise_index(index, size)? * step;
                }
                offsets.push(offset);
            }
        }
        let rest = &shape[named..];
        let length = crate::tensor::element_count(rest).ok_or_else(invalid)?;
        Ok(Self { offsets, length, shape: [leading, rest].concat() })
    }

    /// The offset of every element of every slice.
    pub(super) fn elements(&self) -> Vec<usize> {
        self.offsets.iter().flat_map(|&offset| offset..offset + self.length).collect()
    }
}
