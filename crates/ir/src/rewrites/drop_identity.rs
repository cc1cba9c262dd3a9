//! Nodes that change nothing are removed.

use super::{Patch, Rewrite, View};
use crate::operators::elementwise::{Binary, BinaryFunction, Cast, Dropout};
use crate::operators::layout::{Concat, Identity, Transpose, is_view};

pub(crate) const DROP_IDENTITY: Rewrite = Rewrite { name: "drop-identity", rule };

fn rule(view: &View<'_>, root: usize) -> Option<Patch> {
    let node = view.node(root);
    let is_only_output = node.outputs.iter().skip(1).all(Option::is_none);
    let (input, output) = (node.input(0)?, node.output()?);
    let unchanged = is_only_output
        && (node.is::<Identity>().is_some()
            || same_shape_view(view, root)
            || node.is::<Dropout>().is_some() && is_inference(view, root)
            || node
                .is::<Cast>()
                .is_some_and(|cast| cast.to.is_some() && view.fact(input).data_type == cast.to)
            || node.is::<Concat>().is_some() && node.inputs.len() == 1
            || node
                .is::<Transpose>()
                .is_some_and(|transpose| keeps_order(transpose, view.rank(input))));
    if unchanged {
        return Patch::alias(view, root, input);
    }
    let neutral = neutral_operand(view, root)?;
    (view.shape(neutral).is_some() && view.shape(neutral) == view.shape(output))
        .then(|| Patch::alias(view, root, neutral))?
}

/// True where a dropout keeps every element: it has no training mode, or the mode is a constant false.
fn is_inference(view: &View<'_>, root: usize) -> bool {
    let node = view.node(root);
    let mode = node.input(2).and_then(|id| view.constant(id));
    let is_off = mode.is_some_and(|mode| mode.only::<bool>() == Ok(false));
    node.is::<Dropout>().is_some_and(|dropout| !dropout.may_train) || is_off
}

fn same_shape_view(view: &View<'_>, root: usize) -> bool {
    let node = view.node(root);
    let (Some(input), Some(output)) = (node.input(0), node.output()) else { return false };
    let shape = view.shape(input);
    is_view(&*node.operator) && shape.is_some() && shape == view.shape(output)
}

fn keeps_order(transpose: &Transpose, rank: Option<usize>) -> bool {
    let permutation = rank.and_then(|rank| transpose.permutation_for(rank).ok());
    permutation.is_some_and(|permutation| permutation.is_sorted())
}

/// The other operand of `x + 0`, `x - 0`, `x * 1` or `x / 1`.
fn neutral_operand(view: &View<'_>, root: usize) -> Option<crate::graph::ValueId> {
    let node = view.node(root);
    let function = node.is::<Binary>()?.function;
    let (left, right) = (node.input(0)?, node.input(1)?);
    let (element, commutes) = match function {
        BinaryFunction::Add => (0.0, true),
        BinaryFunction::Sub => (0.0, false),
        BinaryFunction::Mul => (1.0, true),
        BinaryFunction::Div => (1.0, false),
        _ => return None,
    };
    if view.scalar(right) == Some(element) {
        Some(left)
    } else if commutes && view.scalar(left) == Some(element) {
        Some(right)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{check, finish, node, scalar};
    use super::*;
    use crate::attribute::Attributes;
    use crate::builder::GraphBuilder;
    use crate::data_type::DataType;

    #[test]
    fn what_changes_nothing_goes_and_names_stay() {
        let mut builder = GraphBuilder::new("identity", 17);
        let x = builder.input("x", DataType::F32, &[2, 3]);
        let relu = node(&mut builder, "Relu", &[x]);
        let same = node(&mut builder, "Identity", &[relu]);
        let kept =
            builder.node("Transpose", &[same], Attributes::new().with("perm", vec![0i64, 1]));
        let one = scalar(&mut builder, 1.0);
        let times = node(&mut builder, "Mul", &[one, kept]);
        let cast = builder.node("Cast", &[times], Attributes::new().with("to", 1i64));
        let dropped = node(&mut builder, "Dropout", &[cast]);
        let graph = finish(builder, dropped);
        assert_eq!(check(&graph, DROP_IDENTITY), ["Relu"]);
    }

    #[test]
    fn an_output_that_is_an_input_keeps_its_node() {
        let mut builder = GraphBuilder::new("identity", 17);
        let x = builder.input("x", DataType::F32, &[2, 3]);
        let same = node(&mut builder, "Identity", &[x]);
        let graph = finish(builder, same);
        assert_eq!(check(&graph, DROP_IDENTITY), ["Identity"]);
    }

    #[test]
    fn one_that_broadcasts_is_not_neutral() {
        let mut builder = GraphBuilder::new("identity", 17);
        let x = builder.input("x", DataType::F32, &[3]);
        let one = builder.constant("one", crate::Tensor::filled(vec![1, 1], 1f32).unwrap());
        let wider = node(&mut builder, "Mul", &[x, one]);
        let relu = node(&mut builder, "Relu", &[wider]);
        let graph = finish(builder, relu);
        assert_eq!(check(&graph, DROP_IDENTITY), ["Mul", "Relu"]);
    }
}
