//! SiLU written out as a value times its sigmoid.

use super::factors::product;
use super::{Patch, Rewrite, View};
use crate::operators::elementwise::{Swish, Unary, UnaryFunction};

pub(crate) const RECOGNISE_SILU: Rewrite = Rewrite { name: "recognise-silu", rule };

fn rule(view: &View<'_>, root: usize) -> Option<Patch> {
    let product = product(view, root)?;
    let [a, b] = product.values[..] else { return None };
    let (x, _) = [(a, b), (b, a)].into_iter().find(|&(x, gate)| {
        let sigmoid = view.produced_by::<Unary>(gate);
        sigmoid.is_some_and(|(node, unary)| {
            unary.function == UnaryFunction::Sigmoid && node.input(0) == Some(x)
        })
    })?;
    (product.scalar == 1.0)
        .then(|| Patch::replace(view, root, Swish { alpha: 1.0 }, vec![Some(x)]))?
}

#[cfg(test)]
mod tests {
    use super::super::testing::{check, finish, node};
    use super::*;
    use crate::builder::GraphBuilder;
    use crate::data_type::DataType;

    #[test]
    fn both_orders_are_found_and_another_gate_is_not() {
        for (order, expected) in [(0, 1), (1, 1), (2, 2)] {
            let mut b = GraphBuilder::new("silu", 17);
            let x = b.input("x", DataType::F32, &[3, 4]);
            let other = b.input("other", DataType::F32, &[3, 4]);
            let gate = node(&mut b, "Sigmoid", &[if order == 2 { other } else { x }]);
            let factors = if order == 0 { [x, gate] } else { [gate, x] };
            let silu = node(&mut b, "Mul", &factors);
            let graph = finish(b, silu);
            assert_eq!(check(&graph, RECOGNISE_SILU).len(), expected, "order {order}");
        }
    }
}
