//! Names, parameter counts, inputs and declared outputs.

use std::collections::HashSet;

use weft_ir::{Dimension, reference};

use crate::network::Network;
use crate::{ZooError, ZooOptions, build, entries, entry, sample_inputs};

#[test]
fn models_have_as_many_parameters_as_their_originals() {
    let originals = [
        ("alexnet", 61_100_840),
        ("vgg16", 138_357_544),
        ("resnet18", 11_689_512),
        ("resnet34", 21_797_672),
        ("resnet50", 25_557_032),
        ("resnet101", 44_549_160),
        ("mobilenet_v2", 3_504_872),
        ("mobilenet_v3_large", 5_483_032),
        ("mobilenet_v3_small", 2_542_856),
        ("squeezenet1_1", 1_235_496),
        ("shufflenet_v2_x1_0", 2_278_604),
        ("densenet121", 7_978_856),
        ("densenet169", 14_149_480),
        ("inception_v3", 23_834_568),
        ("efficientnet_b0", 5_288_548),
        ("bert_base", 109_482_240),
        ("bert_small", 28_763_648),
        ("minilm_l6", 22_713_216),
        ("vit_b_16", 86_567_656),
        ("deit_tiny", 5_717_416),
    ];
    for (name, parameters) in originals {
        assert_eq!(entry(name).unwrap().parameters, parameters, "{name}");
    }
}

#[test]
fn every_model_is_as_its_entry_says() {
    for entry in entries() {
        let name = entry.name;
        let mut network = Network::new(entry, &ZooOptions::default()).unwrap();
        (entry.assemble)(&mut network);
        assert_eq!(network.parameters(), entry.parameters, "{name}");
        assert_eq!(entry.parameters * 4 < 1 << 20, name.starts_with("tiny_"), "{name}");

        let graph = network.finish().unwrap();
        let mut seen = HashSet::new();
        for value in graph.values() {
            assert!(seen.insert(&value.name), "{name}: '{}' names two values", value.name);
        }
        for id in graph.inputs().iter().chain(graph.outputs()) {
            let declared = graph.value(*id).declared.as_ref().unwrap();
            let first = &declared.dimensions.as_ref().unwrap()[0];
            assert_eq!(*first, Dimension::Symbol("batch".into()), "{name}");
        }
    }
}

#[test]
fn outputs_have_the_declared_shapes() {
    for entry in entries().filter(|entry| entry.name.starts_with("tiny_")) {
        let options = ZooOptions::default();
        let graph = build(entry.name, &options).unwrap();
        let inputs = sample_inputs(entry, &options, 2, 5).unwrap();
        let inputs: Vec<_> = inputs.into_iter().map(|tensor| Some(tensor.into())).collect();
        let outputs = reference::evaluate(&graph, &inputs).unwrap();
        for (id, output) in graph.outputs().iter().zip(outputs) {
            let declared = graph.value(*id).declared.as_ref().unwrap();
            let expected: Vec<usize> = declared
                .dimensions
                .iter()
                .flatten()
                .map(|dimension| match dimension {
                    Dimension::Known(size) => *size,
                    Dimension::Symbol(name) if name == "batch" => 2,
                    _ => 5,
                })
                .collect();
            let output = output.into_tensor().unwrap();
            assert_eq!(output.shape(), expected, "{} {}", entry.name, graph.value(*id).name);
            assert_eq!(output.data_type(), declared.data_type);
        }
    }
}

#[test]
fn what_cannot_be_built_says_what_can() {
    let message = build("resnet51", &ZooOptions::default()).unwrap_err().to_string();
    assert!(message.contains("'resnet51'") && message.contains("resnet101, tiny_resnet"));
    let side = |image_side| ZooOptions { image_side: Some(image_side), ..Default::default() };
    for (model, image_side) in [("alexnet", 64), ("resnet50", 16), ("resnet50", usize::MAX)] {
        let error = build(model, &side(image_side)).unwrap_err();
        assert!(matches!(error, ZooError::ImageSide { .. }), "{error}");
    }
    assert!(build("resnet50", &side(64)).is_ok());
    let long = sample_inputs(entry("tiny_bert").unwrap(), &ZooOptions::default(), 1, 65);
    assert!(matches!(long, Err(ZooError::Sequence { longest: 64, given: 65, .. })));
    for model in ["tiny_bert", "tiny_vgg", "tiny_lstm"] {
        let many = sample_inputs(entry(model).unwrap(), &ZooOptions::default(), usize::MAX, 8);
        assert!(matches!(many, Err(ZooError::Inputs { .. })), "{model}");
    }
}
