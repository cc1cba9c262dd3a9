//! Batches that cores compute in parts give what they give when they are computed at once.

use weft_cpu::CpuDevice;
use weft_device::{Device, MixMember, UnitSet};
use weft_ir::{Attributes, DataType, Dimension, Graph, GraphBuilder, Tensor, Value};
use weft_zoo::{ZooOptions, sample_inputs};

/// Outputs on a partition of so many cores, and where all cores compute every step together.
fn outputs(graph: &Graph, inputs: &[Value], cores: &UnitSet) -> [Vec<Value>; 2] {
    let device = CpuDevice::new().unwrap();
    let model = device.load("model", graph).unwrap();
    let shapes: Vec<Vec<usize>> =
        inputs.iter().map(|input| input.tensor().unwrap().shape().to_vec()).collect();
    let executable = device.partition(cores).unwrap().prepare(&*model, &shapes).unwrap();
    let mut mix = device.mix(&[MixMember { model, shapes }], cores).unwrap().unwrap();
    [executable.run(inputs).unwrap(), mix.run_alone(0, inputs).unwrap()]
}

fn cores() -> UnitSet {
    CpuDevice::new().unwrap().units().iter().take(4).collect()
}

#[test]
fn all_models_have_the_same_bits_in_parts() {
    let cores = cores();
    for name in weft_zoo::names().iter().filter(|name| name.starts_with("tiny")) {
        let options = ZooOptions::default();
        let entry = weft_zoo::entry(name).unwrap();
        let inputs = sample_inputs(entry, &options, 4 * cores.len(), 8).unwrap();
        let inputs: Vec<Value> = inputs.into_iter().map(Value::Tensor).collect();
        let [parted, together] =
            outputs(&weft_zoo::build(name, &options).unwrap(), &inputs, &cores);
        assert_eq!(parted, together, "{name}");
    }
}

/// A product of few weights, and one of so many that all cores had better share them.
fn widening() -> Graph {
    let ramp = |rows: usize, columns: usize| {
        let value = |index: usize| (index * 37 % 101) as f32 / 101.0 - 0.4;
        Tensor::from_vec(vec![rows, columns], (0..rows * columns).map(value).collect()).unwrap()
    };
    let mut builder = GraphBuilder::new("widening", 18);
    let dimensions = [Dimension::Symbol("batch".into()), Dimension::Known(64)];
    let x = builder.symbolic_input("x", DataType::F32, &dimensions);
    let (few, many) =
        (builder.constant("few", ramp(64, 64)), builder.constant("many", ramp(64, 40_000)));
    let narrow = builder.node("MatMul", &[x, few], Attributes::new());
    let narrow = builder.node("Relu", &[narrow], Attributes::new());
    let wide = builder.node("MatMul", &[narrow, many], Attributes::new());
    builder.output("narrow", narrow);
    builder.output("wide", wide);
    builder.finish().unwrap()
}

#[test]
fn parts_are_put_together_where_cores_share_weights() {
    let cores = cores();
    let batch = 3 * cores.len();
    let elements = (0..batch * 64).map(|index| (index * 29 % 83) as f32 / 83.0).collect();
    let x = Value::Tensor(Tensor::from_vec(vec![batch, 64], elements).unwrap());
    let [parted, together] = outputs(&widening(), std::slice::from_ref(&x), &cores);
    assert_eq!(parted, together);
}
