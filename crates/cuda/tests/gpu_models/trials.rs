//! Trials of a tuner: what is right on one bench is right on every other.

use std::time::Duration;

use weft_cuda::Choice;
use weft_device::{Device, Trial, TunableDevice};
use weft_ir::{Attributes, DataType, GraphBuilder, Tensor};

use super::subject::gpu;

#[test]
fn blocks_that_stay_have_all_tiles_in_the_background_and_on_smaller_benches() {
    let Some(gpu) = gpu(Choice::Estimated) else { return };
    let mut builder = GraphBuilder::new("product", 21);
    let x = builder.input("x", DataType::F32, &[1260, 64]);
    let weights = (0..64 * 192).map(|number| (number % 13) as f32 / 13.0 - 0.5).collect();
    let weights = Tensor::from_vec::<f32>(vec![64, 192], weights).unwrap();
    let weights = builder.constant("weights", weights);
    let product = builder.node("MatMul", &[x, weights], Attributes::new());
    builder.output("y", product);
    let model = gpu.device.load("product", &builder.finish().unwrap()).unwrap();
    let units = [Some(8), Some(16)].map(|sms| gpu.units(sms));
    let size = gpu.device.size_of(&units[1]);
    let operators = gpu.device.operators(&*model, &[vec![1260, 64]], size).unwrap();
    let [operator] = &operators[..] else { panic!("{} operators", operators.len()) };
    for units in &units {
        let background = gpu.device.background_bench(units).expect("a GPU has a background");
        for bench in [gpu.device.bench(units), background] {
            let mut bench = bench.unwrap();
            let mut tried = 0;
            for (number, candidate) in operator.candidates().iter().enumerate() {
                if candidate.name.starts_with("streamed") {
                    let trial = bench.try_candidate(&**operator, number, Duration::ZERO).unwrap();
                    let is_right = matches!(trial, Trial::Measured(_));
                    assert!(is_right, "{} on {units:?}: {trial:?}", candidate.name);
                    tried += 1;
                }
            }
            assert!(tried >= 3, "{tried} tiles");
        }
    }
}
