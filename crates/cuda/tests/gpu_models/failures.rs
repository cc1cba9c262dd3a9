//! What goes wrong is a typed error that says where, and nothing else suffers.

use weft_cuda::driver::DeviceBuffer;
use weft_cuda::{Choice, CudaDevice, CudaOptions, Precision};
use weft_device::{Device, DeviceError, Executable};
use weft_ir::{Attributes, DataType, Dimension, Graph, GraphBuilder, Tensor, Value};

use super::subject::{Subject, gpu};

#[test]
fn a_model_that_does_not_fit_leaves_the_others_running() {
    let Some(gpu) = gpu(Choice::Estimated) else { return };
    let subject = Subject::named("tiny_resnet", 2);
    let running = gpu.prepare(&subject, Some(32), Precision::F16);
    let context = gpu.device.context();
    let free = context.free_memory_bytes().unwrap() as usize;
    // All but a little, in pieces, since no more than that may be there in one.
    let mut hoard = Vec::new();
    let mut piece = free / 2;
    while piece > 1 << 20 {
        match DeviceBuffer::new(context, piece) {
            Ok(buffer) => hoard.push(buffer),
            Err(_) => piece /= 2,
        }
    }
    let large = Large::new();
    let model = gpu.device.load_with_precision("large", &large.graph, Precision::F32);
    let partition = gpu.device.cuda_partition(&gpu.units(Some(32))).unwrap();
    let error = partition.prepare_model(&model, &[vec![1, Large::SIDE]]).err().unwrap();
    assert!(matches!(error.cause(), DeviceError::OutOfMemory { .. }), "{error}");
    assert!(error.to_string().contains("'large'"), "{error}");
    assert_eq!(model.weight_bytes(), 0, "nothing of it stays behind");
    subject.check(&running.run(&subject.inputs).unwrap(), Precision::F16, "beside a failure");

    drop(hoard);
    let executable = partition.prepare_model(&model, &[vec![1, Large::SIDE]]).unwrap();
    let input = Value::Tensor(Tensor::filled(vec![1, Large::SIDE], 1f32).unwrap());
    let outputs = executable.run(&[input]).unwrap();
    let sums = outputs[0].tensor().unwrap().to_f64s().unwrap();
    assert!(sums.iter().all(|&sum| (sum - Large::SIDE as f64).abs() < 1.0), "{}", sums[0]);
}

/// A product with more weights than the last piece of free memory holds.
struct Large {
    graph: Graph,
}

impl Large {
    const SIDE: usize = 4096;

    fn new() -> Self {
        let mut builder = GraphBuilder::new("large", 21);
        let x = builder.input("x", DataType::F32, &[1, Self::SIDE]);
        let ones = Tensor::filled(vec![Self::SIDE, Self::SIDE], 1f32).unwrap();
        let weights = builder.constant("weights", ones);
        let y = builder.node("MatMul", &[x, weights], Attributes::new());
        builder.output("y", y);
        Self { graph: builder.finish().unwrap() }
    }
}

#[test]
fn input_that_a_kernel_cannot_compute_with_is_an_error_that_names_the_node() {
    let Some(gpu) = gpu(Choice::Estimated) else { return };
    let mut builder = GraphBuilder::new("pick", 21);
    let table = builder.input("table", DataType::F32, &[4, 8]);
    let index = builder.symbolic_input("index", DataType::I64, &[Dimension::Known(2)]);
    let picked = builder.node("Gather", &[table, index], Attributes::new());
    builder.output("picked", picked);
    let graph = builder.finish().unwrap();
    let node = graph.nodes()[0].name.clone();
    let model = gpu.device.load("pick", &graph).unwrap();
    let partition = gpu.device.partition(&gpu.units(Some(8))).unwrap();
    let executable = partition.prepare(&*model, &[vec![4, 8], vec![2]]).unwrap();
    let run = |indices: Vec<i64>| {
        let table = Tensor::filled(vec![4, 8], 0.5f32).unwrap();
        executable.run(&[table.into(), Tensor::vector(indices).into()])
    };
    assert!(run(vec![0, 3]).is_ok());
    let error = run(vec![0, 4]).unwrap_err().to_string();
    assert!(error.contains("'pick'") && error.contains(&format!("'{node}'")), "{error}");
    assert!(run(vec![-1, 2]).is_ok(), "the run after a fault is not affected");
}

#[test]
fn a_model_of_another_device_is_refused() {
    let Some(gpu) = gpu(Choice::Estimated) else { return };
    let other = CudaDevice::open(0, CudaOptions::default()).unwrap();
    let subject = Subject::named("tiny_resnet", 1);
    let model = other.load(subject.name, &subject.graph).unwrap();
    let partition = gpu.device.partition(&gpu.units(Some(8))).unwrap();
    let refused = partition.prepare(&*model, &subject.shapes()).err().unwrap();
    assert!(matches!(refused, DeviceError::ForeignModel { .. }), "{refused}");
    assert_eq!(model.name(), subject.name);
}
