//! HardSigmoid and HardSwish written out with a clip.

use super::factors::{is_about, plus_scalar, product};
use super::producers::activation_of;
use super::{Patch, Rewrite, View};
use crate::activation::Activation;
use crate::graph::ValueId;
use crate::operators::elementwise::{HardSigmoid, Unary, UnaryFunction};

pub(crate) const RECOGNISE_HARD_SWISH: Rewrite =
    Rewrite { name: "recognise-hard-swish", rule: hard_swish };
pub(crate) const RECOGNISE_HARD_SIGMOID: Rewrite =
    Rewrite { name: "recognise-hard-sigmoid", rule: hard_sigmoid };

const SIXTH: f32 = 1.0 / 6.0;

/// `x` where a value is `clip(x + 3, 0, 6)`.
fn clipped(view: &View<'_>, id: ValueId) -> Option<ValueId> {
    let (_, node) = view.producer(id)?;
    let (x, three) = plus_scalar(view, node.input(0)?)?;
    let is_clip = activation_of(view, node)? == Activation::Clip { min: 0.0, max: 6.0 };
    (is_clip && three == 3.0).then_some(x)
}

/// `x` and how much of the sixth is still to be divided, where a value is a hard sigmoid of `x` or six times one.
fn gate(view: &View<'_>, id: ValueId) -> Option<(ValueId, f32)> {
    if let Some(x) = clipped(view, id) {
        return Some((x, SIXTH));
    }
    let (node, sigmoid) = view.produced_by::<HardSigmoid>(id)?;
    let is_standard = is_about(sigmoid.alpha, SIXTH) && sigmoid.beta == 0.5;
    is_standard.then_some((node.input(0)?, 1.0))
}

fn hard_swish(view: &View<'_>, root: usize) -> Option<Patch> {
    let product = product(view, root)?;
    let [a, b] = product.values[..] else { return None };
    let matches = |(x, other): &(ValueId, ValueId)| {
        gate(view, *other).is_some_and(|(of, scalar)| of == *x && is_about(product.scalar, scalar))
    };
    let (x, _) = [(a, b), (b, a)].into_iter().find(matches)?;
    Patch::replace(view, root, Unary { function: UnaryFunction::HardSwish }, vec![Some(x)])
}

fn hard_sigmoid(view: &View<'_>, root: usize) -> Option<Patch> {
    let product = product(view, root)?;
    let [only] = product.values[..] else { return None };
    let x = clipped(view, only)?;
    let operator = HardSigmoid { alpha: SIXTH, beta: 0.5 };
    is_about(product.scalar, SIXTH).then(|| Patch::replace(view, root, operator, vec![Some(x)]))?
}

#[cfg(test)]
mod tests {
    use super::super::testing::{check_stages, finish, node, scalar};
    use super::*;
    use crate::builder::GraphBuilder;
    use crate::data_type::DataType;

    fn written_out(three: f32) -> (GraphBuilder, ValueId, ValueId) {
        let mut b = GraphBuilder::new("hard", 17);
        let x = b.input("x", DataType::F32, &[3, 4]);
        let three = scalar(&mut b, three);
        let sum = node(&mut b, "Add", &[x, three]);
        let (low, high) = (scalar(&mut b, 0.0), scalar(&mut b, 6.0));
        let clip = node(&mut b, "Clip", &[sum, low, high]);
        (b, x, clip)
    }

    #[test]
    fn hard_swish_is_found_whichever_factor_is_divided() {
        for divide_first in [false, true] {
            let (mut b, x, clip) = written_out(3.0);
            let six = scalar(&mut b, 6.0);
            let result = if divide_first {
                let gate = node(&mut b, "Div", &[clip, six]);
                node(&mut b, "Mul", &[x, gate])
            } else {
                let product = node(&mut b, "Mul", &[x, clip]);
                node(&mut b, "Div", &[product, six])
            };
            let graph = finish(b, result);
            assert_eq!(check_stages(&graph, &[&[RECOGNISE_HARD_SWISH]]), ["HardSwish"]);
        }
    }

    #[test]
    fn hard_sigmoid_is_found_and_another_offset_is_not() {
        for (three, expected) in [(3.0, 1), (2.5, 3)] {
            let (mut b, _, clip) = written_out(three);
            let six = scalar(&mut b, 6.0);
            let result = node(&mut b, "Div", &[clip, six]);
            let graph = finish(b, result);
            assert_eq!(check_stages(&graph, &[&[RECOGNISE_HARD_SIGMOID]]).len(), expected);
        }
    }
}
