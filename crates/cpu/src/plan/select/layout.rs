//! Operators that only move elements.

use weft_ir::InputFacts;
use weft_ir::axis::normalise_axis;
use weft_ir::operators::layout::{AxisRange, Concat, Pad, PadMode, Slice, Split, Transpose};

use super::bound::bound;
use crate::kernels::{CopyAxis, StridedCopy, pad};
use crate::plan::site::{Selected, Site};
use crate::plan::slot::is_dense;

pub(super) fn select(site: &Site<'_>) -> Option<Selected> {
    transpose(site)
        .or_else(|| concat(site))
        .or_else(|| split(site))
        .or_else(|| slice(site))
        .or_else(|| padded(site))
}

fn copy(name: &'static str, copy: StridedCopy) -> Option<Selected> {
    // SAFETY: as `bound` says.
    bound(name, vec![0], move |worker, call| unsafe {
        copy.run(worker, call.input(0), call.output())
    })
}

fn transpose(site: &Site<'_>) -> Option<Selected> {
    let operator = site.operator::<Transpose>()?;
    let shape = site.dense_input(0)?;
    site.dense_output()?;
    let permutation = operator.permutation_for(shape.len()).ok()?;
    copy("transpose", StridedCopy::transpose(&shape, &permutation).ok()?)
}

fn concat(site: &Site<'_>) -> Option<Selected> {
    let operator = site.operator::<Concat>()?;
    let output = site.dense_output()?;
    let axis = normalise_axis(operator.axis, output.len()).ok()?;
    let mut offset = 0;
    let mut parts = Vec::new();
    for index in 0..site.node.inputs.len() {
        let shape = site.dense_input(index)?;
        parts.push(StridedCopy::concat_part(&shape, axis, offset, output[axis]).ok()?);
        offset += shape[axis];
    }
    bound("concat", (0..parts.len()).collect(), move |worker, call| {
        for (index, part) in parts.iter().enumerate() {
            // SAFETY: as `bound` says; the parts do not overlap.
            unsafe { part.run(worker, call.input(index), call.output()) }
        }
    })
}

fn split(site: &Site<'_>) -> Option<Selected> {
    let operator = site.operator::<Split>()?;
    let input = site.dense_input(0)?;
    let axis = normalise_axis(operator.axis, input.len()).ok()?;
    let mut offset = 0;
    let mut parts = Vec::new();
    for output in &site.node.outputs {
        let fact = site.facts.of((*output)?);
        let shape = if is_dense(fact) { fact.shape()? } else { return None };
        parts.push(StridedCopy::split_part(&shape, axis, offset, input[axis]).ok()?);
        offset += shape[axis];
    }
    bound("split", vec![0], move |worker, call| {
        for (index, part) in parts.iter().enumerate() {
            if let Some(output) = call.optional_output(index) {
                // SAFETY: as `bound` says.
                unsafe { part.run(worker, call.input(0), output) }
            }
        }
    })
}

fn slice(site: &Site<'_>) -> Option<Selected> {
    let operator = site.operator::<Slice>()?;
    let shape = site.dense_input(0)?;
    let output = site.dense_output()?;
    let facts: Vec<_> = (0..site.node.inputs.len()).map(|index| site.input_fact(index)).collect();
    let bounds = operator.constant_bounds(&InputFacts::new(&facts, 1))?;
    let dimensions: Vec<Option<usize>> = shape.iter().map(|&size| Some(size)).collect();
    let ranges: Vec<AxisRange> =
        operator.ranges(&dimensions, &bounds).ok()?.into_iter().collect::<Option<_>>()?;
    let starts: Vec<usize> = ranges.iter().map(|range| range.start).collect();
    let steps: Vec<isize> = ranges.iter().map(|range| range.step as isize).collect();
    let sizes: Vec<usize> = ranges.iter().map(|range| range.count).collect();
    let fits = sizes == output && !output.contains(&0);
    fits.then(|| copy("slice", StridedCopy::slice(&shape, &starts, &steps, &sizes).ok()?))?
}

fn padded(site: &Site<'_>) -> Option<Selected> {
    let operator = site.operator::<Pad>()?;
    let shape = site.dense_input(0)?;
    let output = site.dense_output()?;
    let facts: Vec<_> = (0..site.node.inputs.len()).map(|index| site.input_fact(index)).collect();
    let amounts = operator.constant_amounts(shape.len(), &InputFacts::new(&facts, 1)).ok()??;
    let value = match (site.has_input(2), &operator.attributes) {
        (true, _) => *site.constant_f32s(2)?.first()?,
        (false, Some((_, value))) => *value,
        (false, None) => 0.0,
    };
    let is_plain = operator.mode == PadMode::Constant
        && amounts.iter().all(|&(begin, end)| begin >= 0 && end >= 0);
    if !is_plain || output.contains(&0) || shape.contains(&0) {
        return None;
    }
    let (mut axes, mut offset) = (Vec::new(), 0);
    let (from, to) = (weft_ir::strides(&shape), weft_ir::strides(&output));
    for axis in 0..shape.len() {
        offset += usize::try_from(amounts[axis].0).ok()? * to[axis];
        axes.push(CopyAxis {
            size: shape[axis],
            source_stride: from[axis] as isize,
            target_stride: to[axis],
        });
    }
    let elements = |shape: &[usize]| shape.iter().product();
    let copy = StridedCopy::new(&axes, elements(&shape), 0, elements(&output), offset).ok()?;
    // SAFETY: as `bound` says.
    bound("pad", vec![0], move |worker, call| unsafe {
        pad(worker, &copy, value, call.input(0), call.output())
    })
}
