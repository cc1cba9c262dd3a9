//! The standard's node tests on every executor: the reference, models that were saved and loaded again, the CPU device
//! on one core and on two, and a GPU at several numbers of SMs. Where there is no GPU, its tests say so and pass, unless
//! `WEFT_REQUIRE_GPU` is `1`.

#![allow(clippy::print_stderr)]

use std::path::PathBuf;
use std::sync::Arc;

use weft_conformance::{Executor, OnDevice, Reference, RoundTrip, cases, on_cuda, run_suite};
use weft_cpu::{CpuDevice, Isa};
use weft_cuda::{Chip, Precision, preview};
use weft_device::UnitSet;
use weft_ir::{Graph, Value};

/// How many cases must pass; the rest belong to operators that are not claimed.
const MIN_PASSED: usize = 1753;

/// The folder of the standard's test cases, from the environment.
fn data_folder() -> PathBuf {
    let folder = std::env::var_os("WEFT_ONNX_DATA").expect(
        "WEFT_ONNX_DATA must name the folder onnx/backend/test/data/node of the PyPI package onnx==1.22.0; \
         `make test` installs the package and sets it",
    );
    folder.into()
}

fn check(executor: &dyn Executor) {
    let folder = data_folder();
    let cases = cases(&folder, "").expect("WEFT_ONNX_DATA names a folder");
    let summary = run_suite(&cases, executor, |_, _| ());
    let failures: Vec<String> =
        summary.failed.iter().map(|(name, why)| format!("{name}: {why}")).collect();
    assert!(failures.is_empty(), "{} cases fail:\n{}", failures.len(), failures.join("\n"));
    assert!(
        summary.passed >= MIN_PASSED,
        "{} cases pass, {} are not claimed for lack of {:?}",
        summary.passed,
        summary.not_claimed.len(),
        summary.missing
    );
}

#[test]
fn the_reference_executor_conforms() {
    check(&Reference);
}

#[test]
fn models_mean_the_same_after_being_saved_and_loaded() {
    check(&RoundTrip);
}

fn check_cpu(isa: Isa, cores: usize) {
    let device = CpuDevice::with_isa(isa).expect("every machine has a CPU");
    let units: UnitSet = device.units().iter().take(cores).collect();
    check(
        &OnDevice::new(Arc::new(device), &units).expect("the device's own units make a partition"),
    );
}

#[test]
fn one_core_conforms() {
    check_cpu(Isa::detect(), 1);
}

#[test]
fn two_cores_conform() {
    check_cpu(Isa::detect(), 2);
}

#[test]
fn the_portable_instruction_set_conforms() {
    check_cpu(Isa::Portable, 1);
}

/// The reference, after a plan for a GPU was made at every precision: none is needed for that.
struct Planned;

impl Executor for Planned {
    fn name(&self) -> &str {
        "planned"
    }

    fn run(&self, graph: &Graph, inputs: Vec<Option<Value>>) -> Result<Vec<Value>, String> {
        let given = graph
            .inputs()
            .iter()
            .zip(&inputs)
            .filter_map(|(&id, input)| input.as_ref().filter(|_| graph.constant(id).is_none()));
        let shape = |value: &Value| match value {
            Value::Tensor(tensor) => tensor.shape().to_vec(),
            _ => Vec::new(),
        };
        let shapes: Vec<Vec<usize>> = given.map(shape).collect();
        for (precision, sms) in Precision::ALL.into_iter().zip([8, 132, 32, 132]) {
            preview(&graph.name, graph, &shapes, Chip::H200.with_sms(sms), precision)
                .map_err(|error| error.to_string())?;
        }
        Reference.run(graph, inputs)
    }
}

#[test]
fn every_case_has_a_plan_for_a_gpu() {
    check(&Planned);
}

fn check_cuda(sms: Option<u32>) {
    match on_cuda(sms, Precision::F32) {
        Ok(executor) => check(&executor.expect("the GPU has that many SMs")),
        Err(why) => {
            let is_required = std::env::var("WEFT_REQUIRE_GPU").is_ok_and(|value| value == "1");
            assert!(!is_required, "a GPU is required: {why}");
            eprintln!("skipped: {why}");
        }
    }
}

#[test]
fn eight_sms_conform() {
    check_cuda(Some(8));
}

#[test]
fn thirty_two_sms_conform() {
    check_cuda(Some(32));
}

#[test]
fn a_whole_gpu_conforms() {
    check_cuda(None);
}
