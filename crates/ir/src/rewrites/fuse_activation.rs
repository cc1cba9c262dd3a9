//! An activation joins the operator before it.

use super::producers::{activation_of, sole_conv};
use super::{Patch, Rewrite, View};
use crate::operators::fused::{FusedConv, FusedMatMul, ScaleShift};

pub(crate) const FUSE_ACTIVATION: Rewrite = Rewrite { name: "fuse-activation", rule };

fn rule(view: &View<'_>, root: usize) -> Option<Patch> {
    let node = view.node(root);
    let input = node.input(0)?;
    let activation = activation_of(view, node)?;
    if let Some(parts) = sole_conv(view, input) {
        let epilogue = parts.epilogue.then_activation(activation)?;
        let operator = FusedConv { conv: parts.conv.clone(), epilogue };
        return Patch::replace(view, root, operator, parts.node.inputs.clone());
    }
    if !view.has_one_use(input) {
        return None;
    }
    if let Some((producer, product)) = view.produced_by::<FusedMatMul>(input) {
        let epilogue = product.epilogue.then_activation(activation)?;
        return Patch::replace(
            view,
            root,
            FusedMatMul { epilogue, ..product.clone() },
            producer.inputs.clone(),
        );
    }
    let (producer, map) = view.produced_by::<ScaleShift>(input)?;
    let operator = ScaleShift { activation: Some(activation), ..map.clone() };
    map.activation
        .is_none()
        .then(|| Patch::replace(view, root, operator, producer.inputs.clone()))?
}

#[cfg(test)]
mod tests {
    use super::super::linear::LINEAR;
    use super::super::testing::{check_stages, finish, node, scalar, weights};
    use super::*;
    use crate::builder::GraphBuilder;
    use crate::data_type::DataType;

    #[test]
    fn one_activation_joins_and_a_second_does_not() {
        let mut builder = GraphBuilder::new("conv", 17);
        let x = builder.input("x", DataType::F32, &[2, 3, 5, 5]);
        let w = weights(&mut builder, &[4, 3, 3, 3]);
        let conv = node(&mut builder, "Conv", &[x, w]);
        let (low, high) = (scalar(&mut builder, 0.0), scalar(&mut builder, 6.0));
        let clipped = node(&mut builder, "Clip", &[conv, low, high]);
        let tanh = node(&mut builder, "Tanh", &[clipped]);
        let graph = finish(builder, tanh);
        assert_eq!(check_stages(&graph, &[&[FUSE_ACTIVATION]]), ["FusedConv", "Tanh"]);
    }

    #[test]
    fn a_value_read_twice_stays() {
        let mut builder = GraphBuilder::new("linear", 17);
        let x = builder.input("x", DataType::F32, &[3, 4]);
        let w = weights(&mut builder, &[4, 4]);
        let product = node(&mut builder, "MatMul", &[x, w]);
        let relu = node(&mut builder, "Relu", &[product]);
        let sum = node(&mut builder, "Add", &[relu, product]);
        let graph = finish(builder, sum);
        assert_eq!(
            check_stages(&graph, &[&[LINEAR, FUSE_ACTIVATION]]),
            ["FusedMatMul", "Relu", "Add"]
        );
    }
}
