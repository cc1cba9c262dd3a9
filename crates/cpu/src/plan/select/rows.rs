//! Operators along rows: softmax, normalisation, reductions, and rows picked from a table.

use weft_ir::axis::{normalise_axes, normalise_axis};
use weft_ir::operators::indexing::Gather;
use weft_ir::operators::normalisation::LayerNormalization;
use weft_ir::operators::reduction::{LogSoftmax, Reduce, ReduceAxes, ReduceFunction, Softmax};
use weft_ir::{GraphError, OperatorError};

use super::bound::bound;
use crate::kernels::{self, Normalisation, Normalise, Reduction, gather_rows};
use crate::plan::site::{Selected, Site};

pub(super) fn select(site: &Site<'_>) -> Option<Selected> {
    softmax(site).or_else(|| normalise(site)).or_else(|| reduce(site)).or_else(|| gather(site))
}

fn softmax(site: &Site<'_>) -> Option<Selected> {
    let (softmax, kernel) = match (site.operator::<Softmax>(), site.operator::<LogSoftmax>()) {
        (Some(softmax), _) => (*softmax, kernels::Softmax::Plain),
        (_, Some(logarithm)) => (logarithm.softmax, kernels::Softmax::Logarithm),
        _ => return None,
    };
    let shape = site.dense_input(0)?;
    let axis = normalise_axis(softmax.axis, shape.len()).ok()?;
    let columns = match softmax.flattens {
        true => shape[axis..].iter().product(),
        false if axis + 1 == shape.len() => shape[axis],
        false => return None,
    };
    let fits = columns > 0 && site.dense_output()? == shape;
    fits.then(|| {
        // SAFETY: as `bound` says.
        bound("softmax", vec![0], move |worker, call| unsafe {
            kernel.run(worker, call.input(0), columns, call.output())
        })
    })?
}

fn normalise(site: &Site<'_>) -> Option<Selected> {
    let operator = site.operator::<LayerNormalization>()?;
    let shape = site.dense_input(0)?;
    let axis = normalise_axis(operator.axis, shape.len()).ok()?;
    let columns: usize = shape[axis..].iter().product();
    let scale = site.constant_f32s(1)?;
    let shift = match site.has_input(2) {
        true => Some(site.constant_f32s(2)?),
        false => None,
    };
    let fits = columns > 0
        && scale.len() == columns
        && shift.is_none_or(|shift| shift.len() == columns)
        && site.dense_output()? == shape;
    let kernel =
        fits.then(|| Normalise::new(Normalisation::Layer, operator.epsilon, scale, shift))?;
    // SAFETY: as `bound` says.
    bound("layer_norm", vec![0], move |worker, call| unsafe {
        kernel.run(worker, call.input(0), None, None, call.output())
    })
}

fn reduce(site: &Site<'_>) -> Option<Selected> {
    let operator = site.operator::<Reduce>()?;
    let reduction = match operator.function {
        ReduceFunction::Sum => Reduction::Sum,
        ReduceFunction::Mean => Reduction::Mean,
        ReduceFunction::Max => Reduction::Max,
        ReduceFunction::Min => Reduction::Min,
        _ => return None,
    };
    let shape = site.dense_input(0)?;
    let ReduceAxes::Attribute(axes) = &operator.axes else { return None };
    let axes = match axes.is_empty() {
        true if operator.noop_with_empty_axes => return None,
        true => (0..shape.len()).collect(),
        false => normalise_axes(axes, shape.len()).ok()?,
    };
    let kernel = kernels::Reduce::new(reduction, &shape, &axes).ok()?;
    let fits = !shape.contains(&0)
        && site.dense_output()?.iter().product::<usize>() == kernel.output_elements();
    fits.then(|| {
        // SAFETY: as `bound` says.
        bound("reduce", vec![0], move |worker, call| unsafe {
            kernel.run(worker, call.input(0), call.output())
        })
    })?
}

fn gather(site: &Site<'_>) -> Option<Selected> {
    let operator = site.operator::<Gather>()?;
    let table = site.dense_input(0)?;
    site.dense_output()?;
    let axis = normalise_axis(operator.axis, table.len()).ok()?;
    let row_elements: usize = table[1..].iter().product();
    if axis != 0 || row_elements == 0 || site.input_fact(1)?.shape().is_none() {
        return None;
    }
    let node = site.node.name.clone();
    bound("gather_rows", vec![0, 1], move |worker, call| {
        let gathered = call.value(1).and_then(|value| {
            let tensor = value.ok_or(OperatorError::MissingInput(1))?.into_tensor()?;
            let indices = tensor.to_i64s()?;
            // SAFETY: as `bound` says.
            let outcome = unsafe {
                gather_rows(worker, call.input(0), row_elements, &indices, call.output())
            };
            outcome.map_err(|error| OperatorError::Invalid(error.to_string()))
        });
        if let Err(source) = gathered {
            call.fail(GraphError::Node { node: node.clone(), operator: "Gather".into(), source });
        }
    })
}
