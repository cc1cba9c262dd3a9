//! Plans that call NVIDIA's libraries, made where there are none.

use std::sync::Arc;

use super::zoo::specialised;
use crate::choosing::Choosing;
use crate::library_call::{LibrarySet, WORKSPACE_BYTES};
use crate::plan::chooser::{Chooser, FirstCandidate, NamedCandidate};
use crate::plan::place::Place;
use crate::plan::steps::Stage;
use crate::plan::target::Target;
use crate::plan::{ExecutionPlan, build};
use crate::{Chip, NoMemory, Precision, WeightStore};

const BOTH: LibrarySet = LibrarySet { cublas_lt: true, cudnn: true };

fn plan(model: &str, libraries: LibrarySet, chooser: &dyn Chooser) -> ExecutionPlan {
    let weights = WeightStore::new(Arc::new(NoMemory));
    let (chip, precision) = (Chip::H200, Precision::F16);
    let (libraries, choosing) = (libraries.into(), Choosing::Ranked);
    let target = Target { model, weights: &weights, chip, precision, chooser, libraries, choosing };
    build(&specialised(model, 2, 8), &target).unwrap()
}

fn kernels(plan: &ExecutionPlan) -> Vec<&str> {
    plan.report.steps.iter().map(|step| step.kernel.as_str()).collect()
}

#[test]
fn calls_have_their_operands_in_the_plan() {
    for (model, name) in
        [("tiny_bert", "cublaslt"), ("tiny_resnet", "cublaslt"), ("tiny_resnet", "cudnn")]
    {
        let plan = plan(model, BOTH, &NamedCandidate(name));
        let kernels = kernels(&plan);
        let named = kernels.iter().filter(|kernel| kernel.starts_with(name)).count();
        assert!(named > 0, "{model}: {kernels:?}");
        let weights = plan.weights();
        let mut calls = 0;
        let steps = plan.stages.iter().filter_map(|stage| match stage {
            Stage::Device(steps) => Some(steps),
            Stage::Host(_) => None,
        });
        for call in steps.flatten().filter_map(|step| step.library_call.as_ref()) {
            calls += 1;
            let Place::Arena { offset_bytes } = call.operands.workspace else {
                panic!("{:?}", call.operands)
            };
            assert!(offset_bytes + WORKSPACE_BYTES <= plan.report.arena_bytes);
            if let Place::Weights(held) = &call.operands.right {
                assert!(weights.iter().any(|weights| Arc::ptr_eq(weights, held)), "{model}");
            }
        }
        assert_eq!(calls, named, "{model}");
    }
}

#[test]
fn the_estimate_takes_no_library_and_absent_ones_change_nothing() {
    for model in ["tiny_bert", "tiny_resnet", "tiny_gpt2"] {
        let without = plan(model, LibrarySet::default(), &FirstCandidate);
        let with = plan(model, BOTH, &FirstCandidate);
        assert_eq!(kernels(&without), kernels(&with), "{model}");
        assert_eq!(without.report.arena_bytes, with.report.arena_bytes, "{model}");
        for name in ["cublaslt", "cudnn"] {
            let absent = plan(model, LibrarySet::default(), &NamedCandidate(name));
            assert_eq!(kernels(&without), kernels(&absent), "{model}");
        }
    }
}
