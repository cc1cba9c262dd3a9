//! Activations neither vanish nor explode, and outputs depend on inputs.

use weft_ir::{DataType, Tensor, reference};

use crate::{ZooOptions, build, entries, entry, sample_inputs};

const F16_LARGEST: f32 = 65504.0;

/// The value of every node, in order of node, with the operator and name of each.
fn all_values(model: &str, options: &ZooOptions, input_seed: u64) -> Vec<(String, Tensor)> {
    let mut graph = build(model, options).unwrap();
    let outputs = graph.outputs().len();
    let ids: Vec<_> = graph.nodes().iter().filter_map(|node| node.output()).collect();
    let names: Vec<_> = graph.nodes().iter().map(|node| format!("{model} {}", node.name)).collect();
    ids.iter().for_each(|&id| graph.add_output(id));
    let of_inputs = ZooOptions { seed: input_seed, ..*options };
    let inputs = sample_inputs(entry(model).unwrap(), &of_inputs, 2, 12).unwrap();
    let inputs: Vec<_> = inputs.into_iter().map(|tensor| Some(tensor.into())).collect();
    let values = reference::evaluate(&graph, &inputs).unwrap();
    let tensors = values.into_iter().skip(outputs).map(|value| value.into_tensor().unwrap());
    names.into_iter().zip(tensors).collect()
}

fn root_mean_square(elements: &[f32]) -> f32 {
    let sum: f64 = elements.iter().map(|&e| f64::from(e).powi(2)).sum();
    (sum / elements.len() as f64).sqrt() as f32
}

fn check(model: &str, options: &ZooOptions) {
    let values = all_values(model, options, 0);
    for (name, tensor) in values.iter().filter(|(_, tensor)| tensor.data_type() == DataType::F32) {
        let elements = tensor.elements::<f32>().unwrap();
        assert!(elements.iter().all(|e| e.abs() < F16_LARGEST), "{name} leaves f16's range");
        let has_weights = ["Conv", "Gemm", "MatMul", "LSTM", "GRU"]
            .iter()
            .any(|operator| name.contains(&format!(" {operator}")));
        let size = root_mean_square(elements);
        assert!(!has_weights || (0.1..16.0).contains(&size), "{name} has root mean square {size}");
    }
    let (name, output) = values.last().unwrap();
    let (_, other) = all_values(model, options, 1).pop().unwrap();
    let (output, other) = (output.elements::<f32>().unwrap(), other.elements::<f32>().unwrap());
    let size = root_mean_square(output);
    let difference: Vec<f32> = output.iter().zip(other).map(|(a, b)| a - b).collect();
    let change = root_mean_square(&difference) / size;
    assert!(change > 1e-2, "{name} hardly depends on the input: it changes by {change}");
}

#[test]
fn tiny_models_keep_their_activations_in_range() {
    for entry in entries().filter(|entry| entry.name.starts_with("tiny_")) {
        check(entry.name, &ZooOptions { seed: 3, ..Default::default() });
    }
}

#[test]
#[ignore = "minutes on the reference executor"]
fn deep_models_keep_their_activations_in_range() {
    for (model, image_side) in [
        ("resnet18", 96),
        ("resnet34", 96),
        ("resnet50", 96),
        ("resnet101", 96),
        ("mobilenet_v2", 96),
        ("mobilenet_v3_large", 96),
        ("mobilenet_v3_small", 96),
        ("efficientnet_b0", 96),
        ("densenet121", 96),
        ("densenet169", 96),
        ("squeezenet1_1", 96),
        ("inception_v3", 107),
    ] {
        check(model, &ZooOptions { image_side: Some(image_side), ..Default::default() });
    }
}

#[test]
#[ignore = "minutes on the reference executor"]
fn large_models_keep_their_activations_in_range() {
    for model in [
        "alexnet",
        "vgg16",
        "shufflenet_v2_x1_0",
        "minilm_l6",
        "bert_base",
        "bert_small",
        "vit_b_16",
        "deit_tiny",
    ] {
        check(model, &ZooOptions::default());
    }
}
