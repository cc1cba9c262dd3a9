//! Reductions over constant axes state them as attributes and keep them, so that other rewrites meet one form alone.

use std::sync::Arc;

use super::patch::NewNodes;
use super::{Patch, Rewrite, View};
use crate::operators::layout::Reshape;
use crate::operators::reduction::{Reduce, ReduceAxes};
use crate::tensor::Tensor;

pub(crate) const NORMALISE_REDUCE: Rewrite = Rewrite { name: "normalise-reduce", rule };

fn rule(view: &View<'_>, root: usize) -> Option<Patch> {
    let node = view.node(root);
    let reduce = node.is::<Reduce>()?;
    let input = node.input(0)?;
    if let ReduceAxes::Input = reduce.axes {
        let axes = match node.input(1) {
            None => Vec::new(),
            Some(id) => view.constant(id)?.to_i64s().ok()?.into_owned(),
        };
        let operator = Reduce { axes: ReduceAxes::Attribute(axes), ..reduce.clone() };
        return Patch::replace(view, root, operator, vec![Some(input)]);
    }
    let output = view.shape(node.output()?)?;
    if reduce.keep_dimensions {
        return None;
    }
    let mut nodes = NewNodes::new(view, root);
    let kept =
        nodes.node(Arc::new(Reduce { keep_dimensions: true, ..reduce.clone() }), vec![Some(input)]);
    let target = nodes.constant(Tensor::vector(output.iter().map(|&size| size as i64).collect()));
    nodes.last(
        Arc::new(Reshape { allow_zero: true }),
        vec![Some(kept), Some(target)],
        node.outputs.clone(),
    );
    nodes.done()
}

#[cfg(test)]
mod tests {
    use super::super::testing::{check, finish};
    use super::*;
    use crate::attribute::Attributes;
    use crate::builder::GraphBuilder;
    use crate::data_type::DataType;

    #[test]
    fn axes_become_an_attribute_and_dropped_axes_a_reshape() {
        let mut b = GraphBuilder::new("mean", 18);
        let x = b.input("x", DataType::F32, &[2, 3, 4, 5]);
        let axes = b.constant("axes", Tensor::vector(vec![-1i64, 2]));
        let mean = b.node("ReduceMean", &[x, axes], Attributes::new().with("keepdims", 0i64));
        let graph = finish(b, mean);
        assert_eq!(check(&graph, NORMALISE_REDUCE), ["ReduceMean", "Reshape"]);
    }
}
