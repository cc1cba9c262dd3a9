//! Profiles that an engine measures itself.

use std::time::Duration;

use weft_cpu::CpuDevice;
use weft_device::{Device, UnitSet};
use weft_engine::{Profiling, ProfilingError, measure};
use weft_ir::{Attributes, DataType};
use weft_ir::{Dimension, Dimensions, Graph, GraphBuilder};
use weft_scheduler::Profile;
use weft_zoo::{ZooOptions, build};

fn profile(graph: &Graph, otherwise: Option<usize>) -> Result<Profile, ProfilingError> {
    let device = CpuDevice::new().expect("there is a CPU");
    let model = device.load("model", graph).expect("it loads");
    let units: UnitSet = device.units().iter().take(2).collect();
    let profiling = Profiling {
        units: &units,
        dimensions: &Dimensions { otherwise, ..Dimensions::batch(1) },
        largest_batch: 4,
        time_per_case: Duration::from_millis(1),
    };
    let mut shares = Vec::new();
    let profile = measure(&device, &*model, &profiling, |share| shares.push(share));
    assert!(shares.is_sorted() && shares.iter().all(|share| (0.0..=1.0).contains(share)));
    profile
}

#[test]
fn batches_and_units_are_measured_in_powers_of_two() {
    for name in ["tiny_resnet", "tiny_bert"] {
        let graph = build(name, &ZooOptions::default()).expect("the zoo has it");
        let profile = profile(&graph, Some(8)).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(profile.batches(), [1, 2, 4], "{name}");
        assert!(profile.units().len() <= 2 && profile.units()[0] == 1, "{name}");
        assert!(profile.memory_bytes > 1000, "{name}");
        assert!(profile.latency(4, 1) >= profile.latency(1, 1), "{name}");
    }
}

#[test]
fn a_model_without_a_batch_is_measured_alone() {
    let mut builder = GraphBuilder::new("negated", 21);
    let x = builder.symbolic_input("x", DataType::F32, &[Dimension::Known(3)]);
    let y = builder.node("Neg", &[x], Attributes::new());
    builder.output("y", y);
    let profile = profile(&builder.finish().expect("it is a graph"), None).expect("it runs");
    assert_eq!(profile.batches(), [1]);
}

#[test]
fn a_model_whose_dimensions_are_open_says_so() {
    let graph = build("tiny_bert", &ZooOptions::default()).expect("the zoo has it");
    assert!(profile(&graph, None).is_err());
}
