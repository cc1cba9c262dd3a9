//! Products written as trees of multiplications, in whatever order an exporter chose, read as lists of factors.

use super::View;
use crate::graph::ValueId;
use crate::operators::elementwise::{Binary, BinaryFunction};

/// A product: one scalar, and the values it multiplies.
pub(super) struct Product {
    pub(super) scalar: f32,
    pub(super) values: Vec<ValueId>,
}

/// The most factors that a pattern looks at.
const MAX_FACTORS: usize = 4;

/// The product that a node computes, following inner multiplications that nobody else reads.
pub(super) fn product(view: &View<'_>, root: usize) -> Option<Product> {
    let mut product = Product { scalar: 1.0, values: Vec::new() };
    let node = view.node(root);
    let function = node.is::<Binary>()?.function;
    collect(view, function, node.input(0)?, node.input(1)?, &mut product)?;
    Some(product)
}

fn collect(
    view: &View<'_>,
    function: BinaryFunction,
    left: ValueId,
    right: ValueId,
    product: &mut Product,
) -> Option<()> {
    match function {
        BinaryFunction::Mul => {
            collect_value(view, left, product)?;
            collect_value(view, right, product)
        }
        BinaryFunction::Div => {
            product.scalar /= view.scalar(right)?;
            collect_value(view, left, product)
        }
        _ => None,
    }
}

fn collect_value(view: &View<'_>, id: ValueId, product: &mut Product) -> Option<()> {
    if let Some(scalar) = view.scalar(id) {
        product.scalar *= scalar;
        return Some(());
    }
    if view.has_one_use(id)
        && let Some((node, binary)) = view.produced_by::<Binary>(id)
        && (binary.function == BinaryFunction::Mul
            || binary.function == BinaryFunction::Div
                && node.input(1).and_then(|id| view.scalar(id)).is_some())
    {
        return collect(view, binary.function, node.input(0)?, node.input(1)?, product);
    }
    product.values.push(id);
    (product.values.len() <= MAX_FACTORS).then_some(())
}

/// `x` and `c` where a value is `x + c` for a scalar `c`.
pub(super) fn plus_scalar(view: &View<'_>, id: ValueId) -> Option<(ValueId, f32)> {
    let (node, binary) = view.produced_by::<Binary>(id)?;
    let (left, right) = (node.input(0)?, node.input(1)?);
    match binary.function {
        BinaryFunction::Add => match (view.scalar(left), view.scalar(right)) {
            (None, Some(scalar)) => Some((left, scalar)),
            (Some(scalar), None) => Some((right, scalar)),
            _ => None,
        },
        BinaryFunction::Sub => Some((left, -view.scalar(right)?)),
        _ => None,
    }
}

/// `x` and `c` where a value is `c * x` for a scalar `c`.
pub(super) fn times_scalar(view: &View<'_>, id: ValueId) -> Option<(ValueId, f32)> {
    let (index, _) = view.producer(id)?;
    let product = product(view, index)?;
    match product.values[..] {
        [only] => Some((only, product.scalar)),
        _ => None,
    }
}

/// True where two numbers are the same but for how an exporter rounded them.
pub(super) fn is_about(given: f32, expected: f32) -> bool {
    (given - expected).abs() <= 1e-4 * expected.abs()
}
