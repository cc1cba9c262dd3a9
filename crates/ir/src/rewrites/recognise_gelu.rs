//! GELU written out with Erf or Tanh.

use std::f32::consts::{FRAC_1_SQRT_2, FRAC_2_SQRT_PI};

use super::factors::{is_about, plus_scalar, product, times_scalar};
use super::{Patch, Rewrite, View};
use crate::graph::ValueId;
use crate::operators::elementwise::{Binary, BinaryFunction, Gelu, Unary, UnaryFunction};

pub(crate) const RECOGNISE_GELU: Rewrite = Rewrite { name: "recognise-gelu", rule };

/// `0.5 * x * (1 + f(x))`, in any order of factors.
fn rule(view: &View<'_>, root: usize) -> Option<Patch> {
    let product = product(view, root)?;
    let [a, b] = product.values[..] else { return None };
    if !is_about(product.scalar, 0.5) {
        return None;
    }
    [(a, b), (b, a)].into_iter().find_map(|(x, gate)| {
        let (function, one) = plus_scalar(view, gate)?;
        let (node, unary) = view.produced_by::<Unary>(function)?;
        let argument = node.input(0)?;
        let tanh = match unary.function {
            UnaryFunction::Erf => (times_scalar(view, argument)?.0 == x
                && is_about(times_scalar(view, argument)?.1, FRAC_1_SQRT_2))
            .then_some(false)?,
            UnaryFunction::Tanh => is_tanh_argument(view, argument, x).then_some(true)?,
            _ => return None,
        };
        is_about(one, 1.0).then(|| Patch::replace(view, root, Gelu { tanh }, vec![Some(x)]))?
    })
}

/// True for `sqrt(2 / pi) * (x + 0.044715 * x^3)`.
fn is_tanh_argument(view: &View<'_>, argument: ValueId, x: ValueId) -> bool {
    let is_match = || {
        let (sum, scale) = times_scalar(view, argument)?;
        let (node, binary) = view.produced_by::<Binary>(sum)?;
        let (left, right) = (node.input(0)?, node.input(1)?);
        let cube = if left == x { right } else { left };
        let is_sum = binary.function == BinaryFunction::Add && (left == x || right == x);
        let is_scaled = is_about(scale, FRAC_2_SQRT_PI * FRAC_1_SQRT_2);
        (is_sum && is_scaled && is_cube(view, cube, x)?).then_some(())
    };
    is_match().is_some()
}

fn is_cube(view: &View<'_>, id: ValueId, x: ValueId) -> Option<bool> {
    let (index, _) = view.producer(id)?;
    let product = product(view, index)?;
    let is_power = match product.values[..] {
        [a, b, c] => [a, b, c] == [x; 3],
        [power] => {
            let (node, binary) = view.produced_by::<Binary>(power)?;
            binary.function == BinaryFunction::Pow
                && node.input(0)? == x
                && view.scalar(node.input(1)?)? == 3.0
        }
        _ => false,
    };
    Some(is_power && is_about(product.scalar, 0.044715))
}

#[cfg(test)]
mod tests {
    use super::super::testing::{check, finish, node, scalar};
    use super::*;
    use crate::builder::GraphBuilder;
    use crate::data_type::DataType;

    fn start() -> (GraphBuilder, ValueId) {
        let mut builder = GraphBuilder::new("gelu", 17);
        let x = builder.input("x", DataType::F32, &[3, 4]);
        (builder, x)
    }

    fn one_plus_erf(b: &mut GraphBuilder, x: ValueId, root: f32) -> ValueId {
        let root = scalar(b, root);
        let scaled = node(b, "Div", &[x, root]);
        let erf = node(b, "Erf", &[scaled]);
        let one = scalar(b, 1.0);
        node(b, "Add", &[erf, one])
    }

    #[test]
    fn every_order_of_factors_is_found() {
        for order in 0..3 {
            let (mut b, x) = start();
            let gate = one_plus_erf(&mut b, x, std::f32::consts::SQRT_2);
            let half = scalar(&mut b, 0.5);
            let [first, second, third] = [[x, gate, half], [x, half, gate], [half, gate, x]][order];
            let inner = node(&mut b, "Mul", &[first, second]);
            let gelu = node(&mut b, "Mul", &[inner, third]);
            let graph = finish(b, gelu);
            assert_eq!(check(&graph, RECOGNISE_GELU), ["Gelu"], "order {order}");
        }
    }

    #[test]
    fn another_constant_is_another_function() {
        let (mut b, x) = start();
        let gate = one_plus_erf(&mut b, x, 1.5);
        let half = scalar(&mut b, 0.5);
        let inner = node(&mut b, "Mul", &[x, gate]);
        let near = node(&mut b, "Mul", &[inner, half]);
        let graph = finish(b, near);
        assert!(!check(&graph, RECOGNISE_GELU).contains(&"Gelu"));
    }

    #[test]
    fn the_tanh_form_is_found() {
        let (mut b, x) = start();
        let three = scalar(&mut b, 3.0);
        let cube = node(&mut b, "Pow", &[x, three]);
        let small = scalar(&mut b, 0.044715);
        let term = node(&mut b, "Mul", &[cube, small]);
        let sum = node(&mut b, "Add", &[x, term]);
        let scale = scalar(&mut b, 0.797_884_6);
        let argument = node(&mut b, "Mul", &[sum, scale]);
        let tanh = node(&mut b, "Tanh", &[argument]);
        let one = scalar(&mut b, 1.0);
        let gate = node(&mut b, "Add", &[tanh, one]);
        let half = scalar(&mut b, 0.5);
        let halved = node(&mut b, "Mul", &[x, half]);
        let gelu = node(&mut b, "Mul", &[halved, gate]);
        let graph = finish(b, gelu);
        assert_eq!(check(&graph, RECOGNISE_GELU), ["Gelu"]);
    }
}
