//! How rewrites are tested: the graph before and after gives the same results on random inputs.

use super::{Rewrite, Stage};
use crate::attribute::Attributes;
use crate::builder::GraphBuilder;
use crate::graph::{Graph, ValueId};
use crate::reference::evaluate;
use crate::tensor::{Tensor, element_count};
use crate::value::Value;

/// Numbers between -1 and 1 that depend on the seed alone.
pub(crate) fn random_tensor(shape: &[usize], seed: u64) -> Tensor {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15).wrapping_add(1);
    let next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 40) as f32 / (1u64 << 23) as f32 - 1.0
    };
    let count = element_count(shape).unwrap();
    Tensor::from_vec(shape.to_vec(), std::iter::repeat_with(next).take(count).collect()).unwrap()
}

/// A random constant.
pub(super) fn weights(builder: &mut GraphBuilder, shape: &[usize]) -> ValueId {
    let seed = builder.graph().values().len() as u64;
    builder.constant(&format!("w{seed}"), random_tensor(shape, seed))
}

/// A constant scalar.
pub(super) fn scalar(builder: &mut GraphBuilder, value: f32) -> ValueId {
    let name = format!("s{}", builder.graph().values().len());
    builder.constant(&name, Tensor::scalar(value))
}

/// A node without attributes.
pub(super) fn node(builder: &mut GraphBuilder, operator: &str, inputs: &[ValueId]) -> ValueId {
    builder.node(operator, inputs, Attributes::new())
}

/// Finishes the graph with one output.
pub(super) fn finish(mut builder: GraphBuilder, output: ValueId) -> Graph {
    builder.output("y", output);
    builder.finish().unwrap()
}

/// Runs the stages, checks that results agree to about `1e-5` of their magnitude, and gives the operators left.
pub(super) fn check_stages(graph: &Graph, stages: &[Stage]) -> Vec<&'static str> {
    let ids: Vec<ValueId> = graph.required_inputs().collect();
    let shapes: Vec<Vec<usize>> = graph
        .input_shapes(&crate::Dimensions {
            batch: 2,
            named: Default::default(),
            otherwise: Some(3),
        })
        .unwrap();
    let rewritten = graph.specialise_with(&shapes, stages).unwrap();
    let inputs: Vec<Option<Value>> = graph
        .inputs()
        .iter()
        .map(|id| {
            let index = ids.iter().position(|other| other == id)?;
            Some(random_tensor(&shapes[index], 77 + index as u64).into())
        })
        .collect();
    let before = evaluate(graph, &inputs).unwrap();
    let after = evaluate(rewritten.graph(), &inputs).unwrap();
    for (before, after) in before.iter().zip(&after) {
        let (before, after) = (before.tensor().unwrap(), after.tensor().unwrap());
        assert_eq!(before.shape(), after.shape());
        let (before, after) = (before.to_f32s().unwrap(), after.to_f32s().unwrap());
        let scale = before.iter().fold(0f32, |scale, element| scale.max(element.abs()));
        for (before, after) in before.iter().zip(after.iter()) {
            assert!((before - after).abs() <= 2e-5 * scale, "{before} became {after}");
        }
    }
    rewritten.graph().nodes().iter().map(|node| node.operator.name()).collect()
}

/// [`check_stages`] with one rewrite alone.
pub(super) fn check(graph: &Graph, rewrite: Rewrite) -> Vec<&'static str> {
    // A stage lives as long as the program; a test may leak one.
    check_stages(graph, &[Box::leak(Box::new([rewrite]))])
}
