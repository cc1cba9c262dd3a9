//! Tiny models never change silently: a change of topology or of weights changes their hash.

use weft_ir::{Attribute, Graph, TensorData, ValueId};

use crate::{ZooOptions, build, entries};

const HASHES: &[(&str, &str)] = &[
    ("tiny_alexnet", "8c5828e5bb39606b"),
    ("tiny_vgg", "06d0d426dbb07da1"),
    ("tiny_resnet", "d872e789086813e7"),
    ("tiny_mobilenet_v2", "0347cceec8673e86"),
    ("tiny_mobilenet_v3", "cc8f70f1659aeeea"),
    ("tiny_squeezenet", "7ce175e48334fee4"),
    ("tiny_shufflenet", "04c328dc6c109ce0"),
    ("tiny_densenet", "857fb99b6ccc0c4d"),
    ("tiny_inception", "cce678b1f6cf588c"),
    ("tiny_efficientnet", "4ab4feb53c847380"),
    ("tiny_unet", "68d69d83d5cc03d1"),
    ("tiny_yolo", "c40ea612a016c0a2"),
    ("tiny_bert", "88fa475ccf855266"),
    ("tiny_vit", "83dfe43d9fde75fd"),
    ("tiny_gpt2", "30ddb8ff93afe925"),
    ("tiny_lstm", "e6d66f07c2f7754c"),
    ("tiny_gru", "da8bbe8a3a56ab86"),
];

/// FNV-1a.
struct Hash(u64);

impl Hash {
    fn bytes(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }

    /// Text with an end, so that neighbours cannot run together.
    fn text(&mut self, text: &str) {
        self.bytes(text.as_bytes());
        self.bytes(&[0xff]);
    }

    fn values(&mut self, graph: &Graph, ids: &[Option<ValueId>]) {
        for id in ids {
            self.text(id.map_or("", |id| &graph.value(id).name));
        }
        self.text("");
    }
}

fn hash(graph: &Graph) -> u64 {
    let mut hash = Hash(0xcbf2_9ce4_8422_2325);
    hash.text(&format!("{} {}", graph.name, graph.opset));
    for value in graph.values() {
        hash.text(&value.name);
        if let Some(declared) = &value.declared {
            hash.text(&declared.to_string());
        }
        if let Some(constant) = &value.constant {
            hash.text(&format!("{} {:?}", constant.data_type(), constant.shape()));
            match constant.data() {
                TensorData::F32(floats) => {
                    floats.iter().for_each(|e| hash.bytes(&e.to_bits().to_le_bytes()));
                }
                TensorData::I64(ints) => ints.iter().for_each(|e| hash.bytes(&e.to_le_bytes())),
                TensorData::Bool(flags) => flags.iter().for_each(|&e| hash.bytes(&[e.into()])),
                other => panic!("no tiny model has a constant like {other:?}"),
            }
        }
    }
    for node in graph.nodes() {
        let origin = node.origin.as_ref().unwrap();
        hash.text(&origin.operator);
        for (name, attribute) in origin.attributes.iter() {
            hash.text(name);
            match attribute {
                Attribute::Int(int) => hash.text(&int.to_string()),
                Attribute::Float(float) => hash.bytes(&float.to_bits().to_le_bytes()),
                Attribute::String(string) => hash.text(string),
                Attribute::Ints(ints) => hash.text(&format!("{ints:?}")),
                other => panic!("no tiny model has an attribute like {other:?}"),
            }
        }
        hash.values(graph, &node.inputs);
        hash.values(graph, &node.outputs);
    }
    let ends = [graph.inputs(), graph.outputs()].concat();
    hash.values(graph, &ends.into_iter().map(Some).collect::<Vec<_>>());
    hash.0
}

#[test]
fn tiny_models_are_what_they_were() {
    let hashes: Vec<(&str, String)> = entries()
        .filter(|entry| entry.name.starts_with("tiny_"))
        .map(|entry| {
            let options = ZooOptions { seed: 0, image_side: None };
            (entry.name, format!("{:016x}", hash(&build(entry.name, &options).unwrap())))
        })
        .collect();
    let hashes: Vec<(&str, &str)> = hashes.iter().map(|(name, hash)| (*name, &**hash)).collect();
    assert_eq!(hashes, HASHES, "a tiny model changed; if that is meant, write its new hash here");
}
