//! Products with one constant matrix become [`FusedMatMul`], with the bias that is added to them.

use std::sync::Arc;

use super::patch::NewNodes;
use super::producers::with_input;
use super::{Patch, Rewrite, View};
use crate::data_type::DataType;
use crate::operators::elementwise::{Binary, BinaryFunction};
use crate::operators::fused::{Epilogue, FusedMatMul};
use crate::operators::linear::{Gemm, MatMul};

pub(crate) const LINEAR: Rewrite = Rewrite { name: "linear", rule: linear };
pub(crate) const LINEAR_BIAS: Rewrite = Rewrite { name: "linear-bias", rule: bias };

fn linear(view: &View<'_>, root: usize) -> Option<Patch> {
    let node = view.node(root);
    let (left, right) = (node.input(0)?, node.input(1)?);
    let matrix = view.constant(right)?;
    let is_f32 = [left, right].iter().all(|&id| view.fact(id).data_type == Some(DataType::F32));
    if !is_f32 || matrix.rank() != 2 || view.rank(left)? == 0 {
        return None;
    }
    if node.is::<MatMul>().is_some() {
        let operator = FusedMatMul { transpose_right: false, epilogue: Epilogue::default() };
        return Patch::replace(view, root, operator, vec![Some(left), Some(right)]);
    }
    let gemm = node.is::<Gemm>()?;
    if gemm.transpose_left || gemm.alpha != 1.0 {
        return None;
    }
    let columns = matrix.shape()[usize::from(!gemm.transpose_right)];
    let mut nodes = NewNodes::new(view, root);
    let bias = match node.input(2) {
        None => None,
        Some(id) => {
            let constant = view.constant(id)?;
            if gemm.beta != 1.0
                || constant.len() != columns
                || constant.shape().last() != Some(&columns)
            {
                return None;
            }
            Some(nodes.constant(constant.reshaped(vec![columns]).ok()?))
        }
    };
    let operator =
        FusedMatMul { transpose_right: gemm.transpose_right, epilogue: Epilogue::default() };
    nodes.last(Arc::new(operator), vec![Some(left), Some(right), bias], node.outputs.clone());
    nodes.done()
}

fn bias(view: &View<'_>, root: usize) -> Option<Patch> {
    let node = view.node(root);
    if node.is::<Binary>()?.function != BinaryFunction::Add {
        return None;
    }
    let (left, right) = (node.input(0)?, node.input(1)?);
    let (product, constant) = match (view.constant(left), view.constant(right)) {
        (None, Some(constant)) => (left, constant),
        (Some(constant), None) => (right, constant),
        _ => return None,
    };
    let (producer, operator) = view.produced_by::<FusedMatMul>(product)?;
    let columns = view.fact(product).dimensions.as_ref()?.last().copied().flatten()?;
    let fits = constant.len() == columns
        && constant.shape().last() == Some(&columns)
        && constant.rank() <= view.rank(product)?
        && constant.data_type() == DataType::F32;
    if !fits
        || producer.input(2).is_some()
        || !operator.epilogue.is_empty()
        || !view.has_one_use(product)
    {
        return None;
    }
    let mut nodes = NewNodes::new(view, root);
    let bias = nodes.constant(constant.reshaped(vec![columns]).ok()?);
    nodes.last(Arc::new(operator.clone()), with_input(producer, 2, bias), node.outputs.clone());
    nodes.done()
}

#[cfg(test)]
mod tests {
    use super::super::testing::{check_stages, finish, node, weights};
    use super::*;
    use crate::attribute::Attributes;
    use crate::builder::GraphBuilder;

    #[test]
    fn a_product_takes_its_bias() {
        let mut builder = GraphBuilder::new("linear", 17);
        let x = builder.input("x", DataType::F32, &[2, 3, 4]);
        let (w, b) = (weights(&mut builder, &[4, 5]), weights(&mut builder, &[5]));
        let product = node(&mut builder, "MatMul", &[x, w]);
        let sum = node(&mut builder, "Add", &[b, product]);
        let graph = finish(builder, sum);
        assert_eq!(check_stages(&graph, &[&[LINEAR, LINEAR_BIAS]]), ["FusedMatMul"]);
    }

    #[test]
    fn gemm_is_taken_only_where_it_is_plain() {
        let transposed = || Attributes::new().with("transB", 1i64);
        let cases = [
            (transposed(), "FusedMatMul"),
            (transposed().with("alpha", 0.5f32), "Gemm"),
            (transposed().with("transA", 1i64), "Gemm"),
        ];
        for (attributes, expected) in cases {
            let mut builder = GraphBuilder::new("gemm", 17);
            let x = builder.input("x", DataType::F32, &[4, 4]);
            let (w, b) = (weights(&mut builder, &[5, 4]), weights(&mut builder, &[5]));
            let product = builder.node("Gemm", &[x, w, b], attributes);
            let graph = finish(builder, product);
            assert_eq!(check_stages(&graph, &[&[LINEAR, LINEAR_BIAS]]), [expected]);
        }
    }

    #[test]
    fn a_bias_that_widens_the_product_is_not_taken() {
        let mut builder = GraphBuilder::new("wide", 17);
        let x = builder.input("x", DataType::F32, &[3, 4]);
        let (w, b) = (weights(&mut builder, &[4, 5]), weights(&mut builder, &[1, 1, 5]));
        let product = node(&mut builder, "MatMul", &[x, w]);
        let sum = node(&mut builder, "Add", &[product, b]);
        let graph = finish(builder, sum);
        assert_eq!(check_stages(&graph, &[&[LINEAR, LINEAR_BIAS]]), ["FusedMatMul", "Add"]);
    }
}
