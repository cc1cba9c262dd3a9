//! Saved models: where their tensors lie, and what cannot be saved.

use std::path::PathBuf;

use weft_ir::{Attributes, DataType, Graph, GraphBuilder, Tensor, Value, reference};
use weft_onnx::{SaveError, load, save, save_with_external_data, to_bytes};

/// Enough elements that the file is mapped rather than read.
const LARGE: usize = 300_000;

fn model() -> Graph {
    let mut builder = GraphBuilder::new("sums", 21);
    let x = builder.input("x", DataType::F32, &[LARGE]);
    let odd = builder.constant("odd", Tensor::vector(vec![1u8; 1025]));
    let w = builder.constant("w", Tensor::vector((0..LARGE).map(|i| i as f32).collect::<Vec<_>>()));
    let b = builder.constant("b", Tensor::vector(vec![0.5f32]));
    let sum = builder.node("Add", &[x, w], Attributes::new());
    let sum = builder.node("Add", &[sum, b], Attributes::new());
    builder.output("y", sum);
    builder.output("odd", odd);
    builder.finish().unwrap()
}

fn run(graph: &Graph) -> Vec<Value> {
    let x = Tensor::vector(vec![1f32; LARGE]);
    reference::evaluate(graph, &[Some(x.into())]).unwrap()
}

fn constant<'a>(graph: &'a Graph, name: &str) -> &'a Tensor {
    graph.values().iter().find(|value| value.name == name).unwrap().constant.as_ref().unwrap()
}

fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("weft-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

#[test]
fn a_model_can_be_saved_over_the_file_it_views() {
    let folder = folder("saving");
    let path = folder.join("model.onnx");
    let original = model();
    save(&original, &path).unwrap();
    let mut loaded = load(&path).unwrap();
    for _ in 0..2 {
        save(&loaded, &path).unwrap();
        loaded = load(&path).unwrap();
    }
    assert_eq!(run(&loaded), run(&original));
    let files: Vec<_> = std::fs::read_dir(&folder).unwrap().collect();
    assert_eq!(files.len(), 1, "{files:?}");
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn external_data_are_aligned_and_used_in_place() {
    let folder = folder("external-saving");
    let path = folder.join("model.onnx");
    save_with_external_data(&model(), &path).unwrap();
    let data = std::fs::metadata(folder.join("model.onnx.data")).unwrap();
    assert!(data.len() >= (LARGE * 4) as u64);
    assert!(std::fs::metadata(&path).unwrap().len() < 2048);

    let loaded = load(&path).unwrap();
    let [w, odd] = ["w", "odd"].map(|name| {
        let tensor = constant(&loaded, name);
        assert!(!tensor.is_copied_when_read());
        tensor.source_bytes().unwrap().as_ptr() as usize
    });
    assert_eq!((w % 64, odd % 64), (0, 0));
    assert_eq!(w.abs_diff(odd), if odd < w { 1088 } else { LARGE * 4 }, "both lie in one mapping");
    assert_eq!(run(&loaded), run(&model()));
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn undeclared_outputs_are_declared_by_inference() {
    let saved = to_bytes(&model()).unwrap();
    let loaded = weft_onnx::load_bytes(saved.into(), None).unwrap();
    let declared = loaded.value(loaded.outputs()[0]).declared.as_ref().unwrap();
    assert_eq!(declared.to_string(), format!("float32[{LARGE}]"));
}

#[test]
fn rewritten_nodes_are_named() {
    let original = model();
    let mut rewritten = Graph::new("rewritten", 21);
    let ids: Vec<_> =
        original.values().iter().map(|value| rewritten.add_value(value.clone())).collect();
    rewritten.add_input(ids[original.inputs()[0].index()]);
    for node in original.nodes() {
        let mut node = node.clone();
        node.origin = None;
        rewritten.add_node(node);
    }
    let error = to_bytes(&rewritten).unwrap_err();
    assert!(matches!(error, SaveError::Rewritten { .. }));
    assert!(error.to_string().starts_with("node 'Add_0' (Add) was made by a rewrite"), "{error}");
}
