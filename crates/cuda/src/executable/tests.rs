//! A kernel that does not compile: only here can a plan be made with one.

use std::sync::Arc;

use weft_device::DeviceError;
use weft_ir::{Attributes, DataType, Graph, GraphBuilder, Tensor, Value};

use super::*;
use crate::choosing::Choosing;
use crate::gpu::GpuMemory;
use crate::launch::{Argument, Candidate, KernelSource, Launch};
use crate::library_call::LibrarySet;
use crate::options::CudaOptions;
use crate::plan::build_with;
use crate::plan::chooser::FirstCandidate;
use crate::plan::select::select;
use crate::plan::site::{Selected, Selection, Site};
use crate::plan::target::Target;
use crate::{Precision, WeightStore};

/// A kernel that calls what does not exist.
const BROKEN: &str =
    "extern \"C\" __global__ void broken(void *x, void *y) { undefined_function(x, y); }";

/// `y = -exp(x)`
fn graph() -> Graph {
    let mut builder = GraphBuilder::new("exponential", 21);
    let x = builder.input("x", DataType::F32, &[64]);
    let exponential = builder.node("Exp", &[x], Attributes::new());
    let y = builder.node("Neg", &[exponential], Attributes::new());
    builder.output("y", y);
    builder.finish().unwrap()
}

fn select_broken(site: &Site<'_>) -> Selection {
    if site.node.operator.name() != "Exp" {
        return select(site);
    }
    let launch = Launch {
        source: KernelSource::new("broken.cu", BROKEN, "broken", Vec::new()),
        grid: [1; 3],
        threads: 32,
        shared_bytes: 0,
        cluster: [1; 3],
        arguments: vec![Argument::Input(0), Argument::Output(0)],
    };
    let candidate = Candidate::new("broken", vec![launch], 0);
    Ok(Some(Selected::only(candidate, vec![0])))
}

fn prepare(
    model: &str,
    gpu: &Gpu,
    lane: &Arc<Lane>,
    selector: &dyn Fn(&Site<'_>) -> Selection,
) -> Result<CudaExecutable, DeviceError> {
    let weights = WeightStore::new(Arc::new(GpuMemory(gpu.context.clone())));
    let target = Target {
        model,
        weights: &weights,
        chip: gpu.context.chip(),
        precision: Precision::F32,
        chooser: &FirstCandidate,
        libraries: LibrarySet::default().into(),
        choosing: Choosing::Ranked,
    };
    let graph = graph().specialise_plainly(&[vec![64]]).unwrap();
    let plan = build_with(&graph, &target, &[vec![0], vec![1]], selector)?;
    CudaExecutable::new(model, plan, gpu, lane.clone())
}

#[test]
fn a_kernel_that_does_not_compile_names_model_and_node_and_leaves_other_models_running() {
    let gpu = match Gpu::open(0, CudaOptions::default()) {
        Ok(gpu) => gpu,
        Err(why) => {
            let is_required = std::env::var("WEFT_REQUIRE_GPU").is_ok_and(|value| value == "1");
            assert!(!is_required, "a GPU is required: {why}");
            return;
        }
    };
    let lane = gpu.lane(&gpu.pool.table().layout().all()).unwrap();
    let working = prepare("working", &gpu, &lane, &select).unwrap();
    let input: Value = Tensor::filled(vec![64], 1f32).unwrap().into();
    let check = || {
        let outputs = working.run(std::slice::from_ref(&input)).unwrap();
        let elements = outputs[0].tensor().unwrap().to_f64s().unwrap();
        assert!(elements.iter().all(|x| (x + 1f64.exp()).abs() < 1e-3), "{elements:?}");
    };
    check();
    let error = prepare("faulty", &gpu, &lane, &select_broken).err().unwrap();
    assert!(matches!(error.cause(), DeviceError::Compile { .. }), "{error}");
    let text = error.to_string();
    let node = graph().nodes()[0].name.clone();
    for part in ["'faulty'", &format!("'{node}'"), "broken.cu", "undefined_function"] {
        assert!(text.contains(part), "{part} is not in: {text}");
    }
    check();
}
