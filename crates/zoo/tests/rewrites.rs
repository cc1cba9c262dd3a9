//! The whole set of rewrites on whole models: results before and after agree, and what should be fused is.

use weft_ir::{DataType, Graph, Tensor, Value, reference};
use weft_zoo::{Entry, ZooOptions, build, entries, sample_inputs};

const BATCH: usize = 2;
const SEQUENCE: usize = 5;

fn inputs(entry: &Entry) -> Vec<Tensor> {
    sample_inputs(entry, &ZooOptions::default(), BATCH, SEQUENCE).unwrap()
}

fn evaluate(graph: &Graph, inputs: &[Tensor]) -> Vec<Tensor> {
    let mut given = inputs.iter();
    let values: Vec<Option<Value>> = graph
        .inputs()
        .iter()
        .map(|&id| {
            graph.constant(id).is_none().then(|| Value::Tensor(given.next().unwrap().clone()))
        })
        .collect();
    let outputs = reference::evaluate(graph, &values).unwrap();
    outputs.into_iter().map(|value| value.into_tensor().unwrap()).collect()
}

fn assert_close(model: &str, before: &Tensor, after: &Tensor) {
    assert_eq!(before.shape(), after.shape(), "{model}");
    if before.data_type() != DataType::F32 {
        assert_eq!(before, after, "{model}");
        return;
    }
    let (before, after) = (before.elements::<f32>().unwrap(), after.elements::<f32>().unwrap());
    let scale = before.iter().fold(0f32, |scale, element| scale.max(element.abs()));
    for (before, after) in before.iter().zip(after) {
        assert!((before - after).abs() <= 1e-4 * scale, "{model}: {before} became {after}");
    }
}

#[test]
fn every_tiny_model_computes_the_same_after_all_rewrites() {
    for entry in entries().filter(|entry| entry.name.starts_with("tiny_")) {
        let graph = build(entry.name, &ZooOptions::default()).unwrap();
        let inputs = inputs(entry);
        let shapes: Vec<Vec<usize>> = inputs.iter().map(|input| input.shape().to_vec()).collect();
        let plain = graph.specialise_plainly(&shapes).unwrap();
        let optimised = graph.specialise(&shapes).unwrap();
        let before = evaluate(plain.graph(), &inputs);
        let after = evaluate(optimised.graph(), &inputs);
        assert_eq!(before.len(), after.len());
        before
            .iter()
            .zip(&after)
            .for_each(|(before, after)| assert_close(entry.name, before, after));
        assert!(optimised.graph().nodes().len() <= plain.graph().nodes().len(), "{}", entry.name);
    }
}

#[test]
fn what_exporters_write_out_is_recognised() {
    let expected = [
        ("tiny_resnet", "fold-batch-norm"),
        ("tiny_resnet", "fuse-residual"),
        ("tiny_mobilenet_v3", "recognise-hard-swish"),
        ("tiny_efficientnet", "recognise-silu"),
        ("tiny_densenet", "batch-norm-as-scale-shift"),
        ("tiny_bert", "recognise-gelu"),
        ("tiny_bert", "recognise-layer-norm"),
        ("tiny_bert", "recognise-attention"),
        ("tiny_vit", "recognise-attention"),
        ("tiny_vit", "linear-bias"),
    ];
    for (model, rewrite) in expected {
        let entry = weft_zoo::entry(model).unwrap();
        let graph = build(model, &ZooOptions::default()).unwrap();
        let shapes: Vec<Vec<usize>> =
            inputs(entry).iter().map(|input| input.shape().to_vec()).collect();
        let optimised = graph.specialise(&shapes).unwrap();
        let applied: Vec<&str> = optimised.applied().iter().map(|entry| entry.rewrite).collect();
        assert!(applied.contains(&rewrite), "{model}: {rewrite} is not among {applied:?}");
    }
}
