//! Plans of whole models with the real selectors, for several shares of a chip at every precision.

use std::sync::Arc;

use weft_ir::OptimizedGraph;
use weft_zoo::{ZooOptions, sample_inputs};

use crate::choosing::Choosing;
use crate::launch::Argument;
use crate::library_call::LibrarySet;
use crate::plan::chooser::{Chooser, FirstCandidate};
use crate::plan::place::Place;
use crate::plan::placement::ALIGNMENT_BYTES;
use crate::plan::steps::{Operand, PlannedLaunch, Stage};
use crate::plan::target::Target;
use crate::plan::{ExecutionPlan, build};
use crate::{Chip, NoMemory, Precision, WeightStore};

/// Numbers of SMs that models are planned for.
const SHARES: [u32; 3] = [8, 32, 132];

pub(super) fn specialised(name: &str, batch: usize, sequence: usize) -> OptimizedGraph {
    let options = ZooOptions::default();
    let graph = weft_zoo::build(name, &options).unwrap();
    let entry = weft_zoo::entry(name).unwrap();
    let inputs = sample_inputs(entry, &options, batch, sequence).unwrap();
    let shapes: Vec<Vec<usize>> = inputs.iter().map(|input| input.shape().to_vec()).collect();
    graph.specialise(&shapes).unwrap()
}

pub(super) fn plan(graph: &OptimizedGraph, sms: u32, precision: Precision) -> ExecutionPlan {
    plan_choosing(graph, sms, precision, Choosing::Ranked)
}

pub(super) fn plan_choosing(
    graph: &OptimizedGraph,
    sms: u32,
    precision: Precision,
    choosing: Choosing<'_>,
) -> ExecutionPlan {
    plan_by(&FirstCandidate, graph, sms, precision, choosing)
}

/// The plan with the candidates that a chooser takes.
pub(super) fn plan_by(
    chooser: &dyn Chooser,
    graph: &OptimizedGraph,
    sms: u32,
    precision: Precision,
    choosing: Choosing<'_>,
) -> ExecutionPlan {
    let weights = WeightStore::new(Arc::new(NoMemory));
    let target = Target {
        model: "test",
        weights: &weights,
        chip: Chip::H200.with_sms(sms),
        precision,
        chooser,
        libraries: LibrarySet::default().into(),
        choosing,
    };
    build(graph, &target).unwrap()
}

#[test]
fn memory_moves_weights_and_what_the_cache_cannot_keep() {
    let plan_of = |batch| plan(&specialised("tiny_resnet", batch, 1), 132, Precision::F16);
    let small = plan_of(1);
    assert_eq!(small.dram_bytes, small.report.weight_bytes);
    let large = plan_of(1 << 14);
    assert!(large.report.arena_bytes > Chip::H200.l2_bytes as usize);
    // Every value is written and read, in an arena that is used again and again.
    assert!(large.dram_bytes > large.report.weight_bytes + 2 * large.report.arena_bytes);
}

#[test]
fn of_tables_only_the_rows_that_are_read_move() {
    let plan = plan(&specialised("tiny_bert", 1, 4), 132, Precision::F16);
    assert!(plan.dram_bytes < plan.report.weight_bytes, "{} bytes", plan.dram_bytes);
}

/// What must hold of every plan.
fn check(plan: &ExecutionPlan, chip: Chip, what: &str) {
    let mut counters = 0;
    let mut written = vec![false; plan.output_buffers.len()];
    for launch in plan.stages.iter().flat_map(Stage::launches) {
        check_shape(launch, chip, what);
        assert_eq!(launch.operands.len(), launch.launch.arguments.len(), "{what}");
        for place in launch.operands.iter().flat_map(Operand::places) {
            match place {
                Place::Arena { offset_bytes } => {
                    assert!(*offset_bytes <= plan.report.arena_bytes, "{what}");
                }
                Place::Input(index) => assert!(plan.inputs[*index].uploaded.is_some(), "{what}"),
                Place::Output(index) => written[*index] = true,
                Place::Weights(weights) => assert!(weights.size_bytes > 0, "{what}"),
                Place::Counters { first } => {
                    assert_eq!(*first, counters, "{what}: counters are shared or lost");
                    counters += counter_count(launch);
                }
                Place::Null => {}
            }
        }
    }
    assert_eq!(counters, plan.counter_count, "{what}");
    assert!(written.iter().all(|&written| written), "{what}: an output is never written");
    let device_pair = |pair: &[Stage]| matches!(pair, [Stage::Device(_), Stage::Device(_)]);
    assert!(!plan.stages.windows(2).any(device_pair), "{what}: a graph is cut for no reason");
    let step_count: usize = plan
        .stages
        .iter()
        .map(|stage| match stage {
            Stage::Device(steps) => steps.len(),
            Stage::Host(_) => 1,
        })
        .sum();
    assert_eq!(step_count, plan.report.steps.len(), "{what}");
    assert_eq!(plan.report.arena_bytes % ALIGNMENT_BYTES, 0, "{what}");
}

/// How many counters a launch asks for.
fn counter_count(PlannedLaunch { launch, .. }: &PlannedLaunch) -> usize {
    let counts = launch.arguments.iter().map(|argument| match argument {
        Argument::Counters { count } => *count,
        _ => 0,
    });
    counts.sum()
}

fn check_shape(PlannedLaunch { launch, .. }: &PlannedLaunch, chip: Chip, what: &str) {
    let what = format!("{what}: {} of {}", launch.source.entry, launch.source.template);
    assert!(launch.grid.iter().all(|&blocks| blocks > 0), "{what}: {:?}", launch.grid);
    assert!(launch.grid[1..].iter().all(|&blocks| blocks <= 65_535), "{what}: {:?}", launch.grid);
    assert!((1..=1024).contains(&launch.threads), "{what}: {} threads", launch.threads);
    assert!(launch.shared_bytes <= chip.shared_bytes_per_block, "{what}: {}", launch.shared_bytes);
    let clusters = launch.grid.iter().zip(launch.cluster);
    assert!(clusters.clone().all(|(blocks, cluster)| blocks % cluster == 0), "{what}");
    assert!(launch.cluster.iter().product::<u32>() <= 8, "{what}: {:?}", launch.cluster);
}

#[test]
fn every_tiny_model_has_a_plan_for_every_share_and_precision() {
    for entry in weft_zoo::entries().filter(|entry| entry.name.starts_with("tiny_")) {
        let graph = specialised(entry.name, 3, 8);
        for precision in Precision::ALL {
            for sms in SHARES {
                let what = format!("{}, {precision}, {sms} SMs", entry.name);
                check(&plan(&graph, sms, precision), Chip::H200, &what);
            }
        }
    }
}

/// Operators of the zoo that the host computes.
const LEFT_TO_THE_HOST: [&str; 2] = ["GRU", "LSTM"];

#[test]
fn the_host_computes_only_what_is_known_to_be_left_to_it() {
    for entry in weft_zoo::entries().filter(|entry| entry.name.starts_with("tiny_")) {
        let graph = specialised(entry.name, 1, 8);
        for precision in Precision::ALL {
            let plan = plan(&graph, 132, precision);
            let host = plan.report.steps.iter().filter(|step| step.kernel == "reference");
            let operators: Vec<&str> = host.map(|step| step.operator.as_str()).collect();
            let are_known = operators.iter().all(|name| LEFT_TO_THE_HOST.contains(name));
            assert!(are_known, "{}, {precision}: {operators:?}", entry.name);
        }
    }
}

#[test]
fn images_are_converted_while_they_are_transposed() {
    let plan = plan(&specialised("tiny_resnet", 2, 1), 132, Precision::F16);
    let kernels: Vec<&str> = plan.report.steps.iter().map(|step| step.kernel.as_str()).collect();
    assert_eq!(kernels.first(), Some(&"transpose and convert"));
    assert_eq!(kernels.iter().filter(|&&kernel| kernel == "convert").count(), 1, "the output");
    assert!(plan.inputs[0].uploaded.is_some());
}

/// The models whose speed is promised.
const HEADLINES: [&str; 4] = ["mobilenet_v3_large", "resnet50", "bert_base", "vgg16"];

#[test]
fn headline_models_are_one_graph_whose_activations_share_memory() {
    for name in HEADLINES {
        let graph = specialised(name, 1, 128);
        let plan = plan(&graph, 132, Precision::F16);
        check(&plan, Chip::H200, name);
        assert!(matches!(plan.stages[..], [Stage::Device(_)]), "{name}");
        let activations: usize = graph
            .graph()
            .nodes()
            .iter()
            .flat_map(|node| node.outputs.iter().flatten())
            .filter_map(|&id| graph.fact(id).element_count())
            .map(|count| count * 2)
            .sum();
        let arena = plan.report.arena_bytes;
        assert!(arena > 0 && arena < activations / 2, "{name}: {arena} of {activations} bytes");
        let parameters = weft_zoo::entry(name).unwrap().parameters as usize;
        let weights = plan.report.weight_bytes;
        assert!(
            (3 * parameters / 2..3 * parameters).contains(&weights),
            "{name}: {weights} bytes for {parameters} parameters"
        );
    }
}

#[test]
#[ignore = "prints times, which only mean something with optimisation"]
#[allow(clippy::print_stdout)]
fn time_of_a_plan() {
    for name in ["resnet18", "minilm_l6"] {
        let begin = std::time::Instant::now();
        let graph = specialised(name, 1, 128);
        println!("{name}: made and specialised in {:.0?}", begin.elapsed());
        let weights = WeightStore::new(Arc::new(NoMemory));
        for entries in [1u32, 8, 32, 32] {
            let target = Target {
                model: "test",
                weights: &weights,
                chip: Chip::H200.with_sms(132 / entries),
                precision: Precision::F16,
                chooser: &FirstCandidate,
                libraries: LibrarySet::default().into(),
                choosing: Choosing::ForEntries(entries),
            };
            let begin = std::time::Instant::now();
            let plan = build(&graph, &target).unwrap();
            println!(
                "{name} of {entries} entries: {:.1?}, {} steps",
                begin.elapsed(),
                plan.report.steps.len()
            );
        }
    }
}
