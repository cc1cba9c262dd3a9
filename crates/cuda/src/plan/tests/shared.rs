//! Launches of different models that share one. That programs compile needs NVRTC, and no GPU; where it is absent that part passes,
//! unless `WEFT_REQUIRE_NVRTC` is `1`.

use std::collections::{BTreeSet, HashSet};

use super::parameters::{compiler, parameter_sizes, size_bytes};
use super::zoo::{plan, specialised};
use crate::launch::KernelSource;
use crate::plan::ExecutionPlan;
use crate::plan::steps::{Operand, PlannedLaunch, Stage};
use crate::shared_launch::{DESCRIPTION_ALIGNMENT, Parameter, Problem, grouped, shared};
use crate::{Chip, Precision};

/// Models whose launches meet, at batches that large kernels are chosen for as well.
const PAIRS: [[(&str, usize); 2]; 4] = [
    [("resnet18", 8), ("resnet18", 32)],
    [("tiny_mobilenet_v3", 8), ("tiny_bert", 8)],
    [("tiny_densenet", 4), ("tiny_densenet", 2)],
    [("tiny_vit", 2), ("tiny_resnet", 2)],
];

/// Of programs with the same templates, so many are compiled.
const COMPILED_OF_KIND: usize = 1;

fn parameters(launch: &PlannedLaunch) -> Vec<Parameter> {
    let parameter = |operand: &Operand| Parameter {
        bytes: vec![0; size_bytes(operand)],
        alignment: match operand {
            Operand::TensorMap(..) => DESCRIPTION_ALIGNMENT,
            _ => 8,
        },
    };
    launch.operands.iter().map(parameter).collect()
}

fn problem<'a>(planned: &'a PlannedLaunch, parameters: &'a [Parameter]) -> Problem<'a> {
    let launch = &planned.launch;
    Problem {
        source: &launch.source,
        grid: launch.grid,
        threads: launch.threads,
        cluster: launch.cluster,
        shared_bytes: launch.shared_bytes,
        static_shared_bytes: 0,
        registers: 128,
        parameters,
    }
}

/// What launches of two plans share, each at its place with the other's at the same part of the way, and how many of them have no
/// blocks that stay.
fn shared_sources(one: &ExecutionPlan, other: &ExecutionPlan) -> (Vec<KernelSource>, usize) {
    let [one, other] = [one, other]
        .map(|plan| plan.stages.iter().flat_map(Stage::launches).collect::<Vec<&PlannedLaunch>>());
    let (mut sources, mut leaving) = (Vec::new(), 0);
    for (place, planned) in one.iter().enumerate() {
        let pair = [planned, other[place * other.len() / one.len()]];
        let parameters = pair.map(parameters);
        let problems = [problem(pair[0], &parameters[0]), problem(pair[1], &parameters[1])];
        let stays = pair.iter().any(|planned| planned.launch.source.stays);
        leaving += usize::from(!stays);
        if grouped(&problems, Chip::H200).len() == 1 {
            assert!(!stays);
            let launch = shared(&problems, Chip::H200).expect("they are in one group");
            assert_eq!(
                launch.blocks,
                pair.iter().map(|planned| planned.launch.grid.iter().product::<u32>()).sum::<u32>()
            );
            sources.push(launch.source);
        }
    }
    (sources, leaving)
}

fn templates(source: &KernelSource) -> BTreeSet<(&'static str, bool)> {
    let kernels = source.shared.iter().flat_map(|shared| &shared.kernels);
    kernels.map(|kernel| (kernel.source.template, kernel.source.is_exact)).collect()
}

#[test]
fn launches_of_different_models_share_programs_that_compile() {
    let mut sources: Vec<KernelSource> = Vec::new();
    for models in PAIRS {
        let [one, other] = models.map(|(name, batch)| {
            plan(&specialised(name, batch, 8), Chip::H200.sm_count / 2, Precision::F16)
        });
        let (shared, of) = shared_sources(&one, &other);
        assert!(shared.len() * 2 > of, "{models:?} share {} of {of} launches", shared.len());
        assert!(of > 0);
        sources.extend(shared);
    }
    let Some(compiler) = compiler() else { return };
    let mut kinds: Vec<BTreeSet<(&str, bool)>> = Vec::new();
    let mut seen = HashSet::new();
    sources.retain(|source| {
        let kind = templates(source);
        let is_new = kinds.iter().filter(|known| **known == kind).count() < COMPILED_OF_KIND;
        kinds.extend(is_new.then_some(kind));
        is_new && seen.insert(source.clone())
    });
    let of =
        |template: &str, is_exact| kinds.iter().any(|kind| kind.contains(&(template, is_exact)));
    assert!(of("gemm.cu", true) && of("gemm.cu", false) && of("window_conv.cu", true));
    let plain: Vec<&KernelSource> = sources.iter().filter(|source| !source.is_exact).collect();
    for architecture in ["sm_80", "sm_100"] {
        for result in compiler.compile_all(&plain, |_| architecture.to_string()) {
            result.unwrap_or_else(|error| panic!("{error}"));
        }
    }
    let wanted: Vec<&KernelSource> = sources.iter().collect();
    let codes = compiler.compile_all(&wanted, |source| Chip::H200.architecture(source.is_exact));
    for (source, code) in wanted.into_iter().zip(codes) {
        let code = code.unwrap_or_else(|error| panic!("{:?}: {error}", templates(source)));
        let bytes = source.shared.as_ref().map(|shared| shared.parameter_bytes);
        let taken = parameter_sizes(&code, source.entry_point());
        assert_eq!(taken, bytes.into_iter().collect::<Vec<_>>(), "{:?}", templates(source));
    }
}
