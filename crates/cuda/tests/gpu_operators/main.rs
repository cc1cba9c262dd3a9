//! Operators on a GPU, or on one in software, at awkward shapes and at every precision. Where there is none the test says so and passes,
//! unless `WEFT_REQUIRE_GPU` is `1`. `WEFT_CASE=softmax,!streamed` picks the cases whose names contain the one and not the other.
#![allow(clippy::print_stderr)]

mod cases;
mod staying;

use cases::Case;
use weft_cuda::{Chip, Choice, CudaDevice, CudaExecutable, CudaOptions, Precision, preview};
use weft_device::{Executable, UnitSet};
use weft_ir::{DataType, Tensor, Value, reference};

fn shapes(case: &Case) -> Vec<Vec<usize>> {
    case.inputs.iter().map(|input| input.shape().to_vec()).collect()
}

fn picked() -> Vec<Case> {
    let asked = std::env::var("WEFT_CASE").unwrap_or_default();
    let parts = asked.split(',').filter(|part| !part.is_empty());
    let (left_out, wanted): (Vec<&str>, Vec<&str>) = parts.partition(|part| part.starts_with('!'));
    let is_picked = |case: &Case| {
        (wanted.is_empty() || wanted.iter().any(|part| case.name.contains(part)))
            && !left_out.iter().any(|part| case.name.contains(&part[1..]))
    };
    cases::all().into_iter().filter(is_picked).collect()
}

/// How far an element may be off, relative to the largest that is expected.
fn tolerance(precision: Precision) -> f64 {
    match precision {
        Precision::F16 | Precision::Bf16 => 1e-2,
        Precision::Tf32 => 1e-3,
        Precision::F32 => 1e-5,
    }
}

/// Products alone differ between the precisions that store `f32`.
fn precisions(case: &Case) -> Vec<Precision> {
    let multiplies = case.graph.nodes().iter().any(|node| node.operator.name().contains("Conv"));
    let differs = |precision: &Precision| *precision != Precision::Tf32 || multiplies;
    Precision::ALL.into_iter().filter(differs).collect()
}

#[test]
fn every_operator_of_the_cases_has_a_kernel() {
    let mut missing = Vec::new();
    for case in cases::all() {
        let report =
            preview(&case.name, &case.graph, &shapes(&case), Chip::H200, Precision::F16).unwrap();
        let on_host = report.steps.iter().filter(|step| step.kernel == "reference");
        missing.extend(on_host.map(|step| format!("{} in {}", step.operator, case.name)));
    }
    assert!(
        missing.is_empty(),
        "{} steps are left to the host:\n{}",
        missing.len(),
        missing.join("\n")
    );
}

fn device(choice: Choice) -> Option<CudaDevice> {
    match CudaDevice::open(0, CudaOptions { choice, ..Default::default() }) {
        Ok(device) => Some(device),
        Err(why) => {
            let is_required = std::env::var("WEFT_REQUIRE_GPU").is_ok_and(|value| value == "1");
            assert!(!is_required, "a GPU is required: {why}");
            eprintln!("skipped: {why}");
            None
        }
    }
}

/// Where another kernel is expected to be faster than the one that a case is meant for.
#[test]
fn windows_in_shared_memory_agree_with_the_reference() {
    let Some(device) = device(Choice::Named("window_conv")) else { return };
    let all = device.layout().all();
    let mut failures = Vec::new();
    for case in cases::all().iter().filter(|case| case.name.starts_with("windows of")) {
        for precision in [Precision::F16, Precision::Bf16] {
            let executable = prepared(&device, case, precision, &all).unwrap();
            let kernels: Vec<&str> =
                executable.report().steps.iter().map(|step| step.kernel.as_str()).collect();
            let is_used = kernels.iter().any(|kernel| kernel.starts_with("window_conv"));
            assert!(is_used, "{}: {kernels:?}", case.name);
            let is_pooled = kernels.iter().any(|kernel| kernel.ends_with("pooled"));
            assert_eq!(is_pooled, case.name.ends_with("pooled"), "{}: {kernels:?}", case.name);
            if let Err(problem) = run(&device, case, precision, &all) {
                failures.push(format!("{} at {precision}: {problem}", case.name));
            }
        }
    }
    assert!(failures.is_empty(), "{} fail:\n{}", failures.len(), failures.join("\n"));
}

/// Every tile, on few SMs, so that blocks have several of them.
#[test]
fn blocks_that_stay_agree_with_the_reference() {
    let tiles = [
        ("streamed 128x64 2 teams", "streamed"),
        ("streamed 128x64 3 teams", "streamed"),
        ("streamed 64x128 3 teams", "streamed"),
        ("streamed 128x128 2 teams", "streamed"),
        ("streamed 64x256 2 teams", "streamed"),
        ("streamed 64x64 one team", "few rows"),
        ("streamed 64x128 one team", "few rows"),
        ("streamed 64x256 one team", "few rows"),
    ];
    let mut failures = Vec::new();
    for (tile, cases_of) in tiles {
        let Some(device) = device(Choice::Named(tile)) else { return };
        for case in cases::all().iter().filter(|case| case.name.starts_with(cases_of)) {
            for precision in [Precision::F16, Precision::Bf16] {
                let units = UnitSet::first(1);
                let executable = prepared(&device, case, precision, &units).unwrap();
                let kernels: Vec<&str> =
                    executable.report().steps.iter().map(|step| step.kernel.as_str()).collect();
                let is_used = kernels.iter().any(|kernel| kernel.starts_with(tile));
                assert!(is_used, "{}: {kernels:?}", case.name);
                if let Err(problem) = run(&device, case, precision, &units) {
                    failures.push(format!("{} by {tile} at {precision}: {problem}", case.name));
                }
            }
        }
    }
    assert!(failures.is_empty(), "{} fail:\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn every_operator_agrees_with_the_reference() {
    let Some(device) = device(Choice::Estimated) else { return };
    let all = device.layout().all();
    let mut failures = Vec::new();
    for case in picked() {
        for precision in precisions(&case) {
            // All of them are tried, so that one run on a GPU tells as much as it can.
            if let Err(problem) = run(&device, &case, precision, &all) {
                failures.push(format!("{} at {precision}: {problem}", case.name));
            }
        }
    }
    assert!(failures.is_empty(), "{} fail:\n{}", failures.len(), failures.join("\n"));
}

fn prepared(
    device: &CudaDevice,
    case: &Case,
    precision: Precision,
    units: &UnitSet,
) -> Result<CudaExecutable, String> {
    let model = device.load_with_precision(&case.name, &case.graph, precision);
    let partition = device.cuda_partition(units).map_err(|error| error.to_string())?;
    partition.prepare_model(&model, &shapes(case)).map_err(|error| error.to_string())
}

fn run(
    device: &CudaDevice,
    case: &Case,
    precision: Precision,
    units: &UnitSet,
) -> Result<(), String> {
    let inputs: Vec<Value> = case.inputs.iter().cloned().map(Value::Tensor).collect();
    let mut given = inputs.iter().cloned();
    let of_graph: Vec<Option<Value>> = case
        .graph
        .inputs()
        .iter()
        .map(|&id| case.graph.constant(id).is_none().then(|| given.next()).flatten())
        .collect();
    let expected = reference::evaluate(&case.graph, &of_graph).map_err(|e| e.to_string())?;
    let executable = prepared(device, case, precision, units)?;
    for _ in 0..2 {
        executable.poison().map_err(|error| error.to_string())?;
        let outputs = executable.run(&inputs).map_err(|error| error.to_string())?;
        for (expected, actual) in expected.iter().zip(&outputs) {
            let (Some(expected), Some(actual)) = (expected.tensor(), actual.tensor()) else {
                return Err("an output is no tensor".into());
            };
            compare(expected, actual, precision)?;
        }
    }
    Ok(())
}

fn compare(expected: &Tensor, actual: &Tensor, precision: Precision) -> Result<(), String> {
    if (expected.shape(), expected.data_type()) != (actual.shape(), actual.data_type()) {
        return Err(format!(
            "{}{:?} instead of {}{:?}",
            actual.data_type(),
            actual.shape(),
            expected.data_type(),
            expected.shape()
        ));
    }
    if !matches!(expected.data_type(), DataType::F32 | DataType::F16 | DataType::BF16) {
        let is_equal = expected == actual;
        return is_equal.then_some(()).ok_or_else(|| format!("{actual:?} instead of {expected:?}"));
    }
    // What the storage cannot hold is as large as it can.
    let most = if precision == Precision::F16 { 65504.0 } else { f64::MAX };
    let numbers = |tensor: &Tensor| {
        let numbers = tensor.to_f64s().map_err(|error| error.to_string())?;
        Ok::<_, String>(numbers.into_iter().map(|x| x.clamp(-most, most)).collect::<Vec<f64>>())
    };
    let (expected, actual) = (numbers(expected)?, numbers(actual)?);
    let scale = expected.iter().fold(0f64, |scale, x| scale.max(x.abs()));
    for (index, (expected, actual)) in expected.iter().zip(&actual).enumerate() {
        let is_close = (expected - actual).abs() <= tolerance(precision) * scale;
        if !is_close {
            return Err(format!(
                "element {index} is {actual}, not {expected}; the largest is {scale}"
            ));
        }
    }
    Ok(())
}
