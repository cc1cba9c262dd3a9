//! Whatever side each node is computed on, the plan brings every value to where it is read, and the results are right.

use std::sync::Arc;

use proptest::prelude::*;
use weft_ir::{Graph, OptimizedGraph, Tensor, Value, reference};
use weft_zoo::{ZooOptions, sample_inputs};

use super::fake_device::{FakeMemory, FakeRun, select};
use crate::choosing::Choosing;
use crate::library_call::LibrarySet;
use crate::plan::ExecutionPlan;
use crate::plan::build::build_with;
use crate::plan::chooser::FirstCandidate;
use crate::plan::steps::{HostStep, Stage};
use crate::plan::target::Target;
use crate::{Chip, Precision, WeightStore};

fn zoo(name: &str) -> (Graph, OptimizedGraph, Vec<Tensor>) {
    let options = ZooOptions::default();
    let graph = weft_zoo::build(name, &options).unwrap();
    let inputs = sample_inputs(weft_zoo::entry(name).unwrap(), &options, 2, 4).unwrap();
    let shapes: Vec<Vec<usize>> = inputs.iter().map(|input| input.shape().to_vec()).collect();
    let optimised = graph.specialise(&shapes).unwrap();
    (graph, optimised, inputs)
}

fn plan_with(
    graph: &OptimizedGraph,
    precision: Precision,
    memory: Arc<FakeMemory>,
    is_on_device: &dyn Fn(usize) -> bool,
) -> ExecutionPlan {
    let weights = WeightStore::new(memory);
    let target = Target {
        model: "test",
        weights: &weights,
        chip: Chip::H200,
        precision,
        chooser: &FirstCandidate,
        libraries: LibrarySet::default().into(),
        choosing: Choosing::Ranked,
    };
    let alone: Vec<Vec<usize>> = (0..graph.graph().nodes().len()).map(|node| vec![node]).collect();
    build_with(graph, &target, &alone, &|site| select(site, is_on_device)).unwrap()
}

fn expected(graph: &Graph, inputs: &[Tensor]) -> Vec<Value> {
    let mut given = inputs.iter().cloned();
    let inputs: Vec<Option<Value>> = graph
        .inputs()
        .iter()
        .map(|&id| graph.constant(id).is_none().then(|| given.next().unwrap().into()))
        .collect();
    reference::evaluate(graph, &inputs).unwrap()
}

fn assert_close(expected: &Value, actual: &Value, tolerance: f64) {
    let (expected, actual) = (expected.tensor().unwrap(), actual.tensor().unwrap());
    assert_eq!(expected.shape(), actual.shape());
    assert_eq!(expected.data_type(), actual.data_type());
    if !expected.data_type().is_float() {
        assert_eq!(expected, actual);
        return;
    }
    let (expected, actual) = (expected.to_f64s().unwrap(), actual.to_f64s().unwrap());
    let norm = |values: &[f64]| values.iter().map(|x| x * x).sum::<f64>().sqrt();
    let difference: Vec<f64> = expected.iter().zip(&actual).map(|(a, b)| a - b).collect();
    let error = norm(&difference) / norm(&expected);
    assert!(error <= tolerance, "relative error {error:.1e} is more than {tolerance:.0e}");
}

fn check(name: &str, precision: Precision, is_on_device: &dyn Fn(usize) -> bool) -> ExecutionPlan {
    let (graph, optimised, inputs) = zoo(name);
    let memory = Arc::new(FakeMemory::default());
    let plan = plan_with(&optimised, precision, memory.clone(), is_on_device);
    let given = inputs.iter().cloned().map(Value::Tensor).collect();
    let results = FakeRun::new(&optimised, &plan, precision, &memory, given).run();
    let expected = expected(&graph, &inputs);
    assert_eq!(expected.len(), results.len());
    let tolerance = match precision {
        Precision::F16 => 1e-2,
        Precision::Bf16 => 6e-2,
        Precision::Tf32 | Precision::F32 => 1e-4,
    };
    for (expected, actual) in expected.iter().zip(&results) {
        assert_close(expected, actual, tolerance);
    }
    plan
}

fn host_steps(plan: &ExecutionPlan) -> usize {
    plan.stages.iter().filter(|stage| matches!(stage, Stage::Host(_))).count()
}

#[test]
fn a_model_without_host_steps_is_one_device_stage() {
    for precision in [Precision::F16, Precision::F32] {
        let plan = check("tiny_resnet", precision, &|_| true);
        assert_eq!(plan.stages.len(), 1, "{precision}");
        assert!(matches!(plan.stages[0], Stage::Device(_)), "{precision}");
    }
}

#[test]
fn narrow_storage_converts_inputs_and_outputs_on_the_device() {
    let conversions = |precision| {
        let plan = check("tiny_resnet", precision, &|_| true);
        plan.report.steps.iter().filter(|step| step.kernel == "convert").count()
    };
    assert_eq!(conversions(Precision::F16), 2);
    assert_eq!(conversions(Precision::F32), 0);
}

#[test]
fn a_host_step_in_the_middle_is_fed_by_a_download_and_feeds_an_upload() {
    let plan = check("tiny_vgg", Precision::F16, &|node| node != 2);
    let kinds: Vec<&str> = plan
        .stages
        .iter()
        .map(|stage| match stage {
            Stage::Device(_) => "device",
            Stage::Host(HostStep::Evaluate { .. }) => "evaluate",
            Stage::Host(HostStep::Download { .. }) => "download",
            Stage::Host(HostStep::Upload { .. }) => "upload",
        })
        .collect();
    assert_eq!(kinds, ["device", "download", "evaluate", "upload", "device"]);
}

#[test]
fn a_model_on_the_host_alone_uses_no_device_memory() {
    let plan = check("tiny_bert", Precision::F16, &|_| false);
    assert_eq!(plan.report.arena_bytes, 0);
    assert_eq!(plan.report.weight_bytes, 0);
    assert_eq!(host_steps(&plan), plan.stages.len());
    assert!(plan.inputs.iter().all(|input| input.uploaded.is_none()));
}

#[test]
fn every_tiny_model_runs_on_the_device_alone() {
    for entry in weft_zoo::entries().filter(|entry| entry.name.starts_with("tiny_")) {
        for precision in [Precision::F16, Precision::Bf16, Precision::F32] {
            check(entry.name, precision, &|_| true);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]
    #[test]
    fn any_mix_of_sides_gives_the_same_results(
        sides in prop::collection::vec(any::<bool>(), 7..40),
        model in prop::sample::select(vec!["tiny_mobilenet_v3", "tiny_bert", "tiny_shufflenet", "tiny_gpt2"]),
        precision in prop::sample::select(vec![Precision::F16, Precision::F32]),
    ) {
        check(model, precision, &|node| sides[node % sides.len()]);
    }
}
