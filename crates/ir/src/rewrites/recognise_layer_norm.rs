//! LayerNormalization written out as primitive operators.

use super::{Patch, Rewrite, View};
use crate::axis::normalise_axes;
use crate::data_type::DataType;
use crate::graph::ValueId;
use crate::operators::elementwise::{Binary, BinaryFunction, Unary, UnaryFunction};
use crate::operators::normalisation::LayerNormalization;
use crate::operators::reduction::{Reduce, ReduceAxes, ReduceFunction};

pub(crate) const RECOGNISE_LAYER_NORM: Rewrite = Rewrite { name: "recognise-layer-norm", rule };

/// `(x - mean(x)) / sqrt(mean((x - mean(x))^2) + epsilon) * gamma + beta` along the last axis.
fn rule(view: &View<'_>, root: usize) -> Option<Patch> {
    let output = view.node(root).output()?;
    let (scaled, beta) = with_constant(view, output, BinaryFunction::Add)?;
    let (normal, gamma) = with_constant(view, scaled, BinaryFunction::Mul)?;
    let (centred, deviation) = operands(view, normal, BinaryFunction::Div)?;
    let (node, unary) = view.produced_by::<Unary>(deviation)?;
    if unary.function != UnaryFunction::Sqrt {
        return None;
    }
    let (variance, epsilon) = super::factors::plus_scalar(view, node.input(0)?)?;
    let x = mean_subtracted(view, centred)?;
    if mean_subtracted(view, squared(view, last_axis_mean(view, variance)?)?)? != x {
        return None;
    }
    let size = view.fact(x).dimensions.as_ref()?.last().copied().flatten()?;
    let is_vector = |id: ValueId| view.shape(id).is_some_and(|shape| shape == [size]);
    let fits = is_vector(gamma) && is_vector(beta) && view.fact(x).data_type == Some(DataType::F32);
    let operator = LayerNormalization { axis: -1, epsilon, stash_type: DataType::F32 };
    fits.then(|| Patch::replace(view, root, operator, vec![Some(x), Some(gamma), Some(beta)]))?
}

fn operands(view: &View<'_>, id: ValueId, function: BinaryFunction) -> Option<(ValueId, ValueId)> {
    let (node, binary) = view.produced_by::<Binary>(id)?;
    (binary.function == function).then_some((node.input(0)?, node.input(1)?))
}

/// The computed and the constant operand of a sum or product.
fn with_constant(
    view: &View<'_>,
    id: ValueId,
    function: BinaryFunction,
) -> Option<(ValueId, ValueId)> {
    let (left, right) = operands(view, id, function)?;
    match (view.constant(left), view.constant(right)) {
        (None, Some(_)) => Some((left, right)),
        (Some(_), None) => Some((right, left)),
        _ => None,
    }
}

/// `x` where a value is its mean along the last axis, with the axis kept.
fn last_axis_mean(view: &View<'_>, id: ValueId) -> Option<ValueId> {
    let (node, reduce) = view.produced_by::<Reduce>(id)?;
    let x = node.input(0)?;
    let rank = view.rank(x)?;
    let axes = match &reduce.axes {
        ReduceAxes::Attribute(axes) => axes.clone(),
        ReduceAxes::Input => view.constant(node.input(1)?)?.to_i64s().ok()?.into_owned(),
    };
    let is_last = normalise_axes(&axes, rank).ok()? == [rank.checked_sub(1)?];
    (is_last && reduce.keep_dimensions && reduce.function == ReduceFunction::Mean).then_some(x)
}

/// `x` where a value is `x - mean(x)`.
fn mean_subtracted(view: &View<'_>, id: ValueId) -> Option<ValueId> {
    let (x, mean) = operands(view, id, BinaryFunction::Sub)?;
    (last_axis_mean(view, mean)? == x).then_some(x)
}

/// `x` where a value is `x * x` or `x ^ 2`.
fn squared(view: &View<'_>, id: ValueId) -> Option<ValueId> {
    let (node, binary) = view.produced_by::<Binary>(id)?;
    let (left, right) = (node.input(0)?, node.input(1)?);
    let is_square = match binary.function {
        BinaryFunction::Mul => left == right,
        BinaryFunction::Pow => view.scalar(right) == Some(2.0),
        _ => false,
    };
    is_square.then_some(left)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{check, finish, node, scalar, weights};
    use super::*;
    use crate::attribute::Attributes;
    use crate::builder::GraphBuilder;

    fn written_out(axis: i64, power: f32) -> Vec<&'static str> {
        let mut b = GraphBuilder::new("norm", 17);
        let x = b.input("x", DataType::F32, &[2, 6, 6]);
        let mean = |b: &mut GraphBuilder, x| {
            b.node("ReduceMean", &[x], Attributes::new().with("axes", vec![axis]))
        };
        let average = mean(&mut b, x);
        let centred = node(&mut b, "Sub", &[x, average]);
        let two = scalar(&mut b, power);
        let square = node(&mut b, "Pow", &[centred, two]);
        let variance = mean(&mut b, square);
        let epsilon = scalar(&mut b, 1e-5);
        let sum = node(&mut b, "Add", &[variance, epsilon]);
        let deviation = node(&mut b, "Sqrt", &[sum]);
        let normal = node(&mut b, "Div", &[centred, deviation]);
        let (gamma, beta) = (weights(&mut b, &[6]), weights(&mut b, &[6]));
        let scaled = node(&mut b, "Mul", &[gamma, normal]);
        let shifted = node(&mut b, "Add", &[scaled, beta]);
        let graph = finish(b, shifted);
        check(&graph, RECOGNISE_LAYER_NORM)
    }

    #[test]
    fn it_is_found_along_the_last_axis_alone() {
        assert_eq!(written_out(-1, 2.0), ["LayerNormalization"]);
        assert_eq!(written_out(2, 2.0), ["LayerNormalization"]);
        assert!(!written_out(1, 2.0).contains(&"LayerNormalization"));
        assert!(!written_out(-1, 4.0).contains(&"LayerNormalization"));
    }
}
