//! Plans of groups with blocks that stay: where they are candidates, that no estimate takes them, and what their launches are given.

use std::cell::RefCell;
use std::collections::HashMap;

use weft_device::DeviceError;

use super::parameters::{compiler, parameter_sizes, size_bytes};
use super::zoo::{plan_by, specialised};
use crate::choosing::Choosing;
use crate::launch::{Candidate, KernelSource};
use crate::measure::contenders;
use crate::plan::chooser::{Chooser, FirstCandidate, NamedCandidate, Problem};
use crate::plan::entries::{EntryBases, EntryBinder};
use crate::plan::place::Bases;
use crate::plan::steps::Stage;
use crate::{Chip, Precision};

/// Takes what is expected to be fastest, and notes what a measurement would have chosen from.
#[derive(Default)]
struct Listing(RefCell<Vec<Listed>>);

/// The candidates of one operator.
struct Listed {
    operator: String,
    /// The one that an estimate takes has blocks that stay.
    first_stays: bool,
    /// Those that are run: their names and blocks where they stay, and how many others there are.
    staying: Vec<(String, u32)>,
    others: usize,
}

fn stays(candidate: &Candidate) -> bool {
    candidate.launches.iter().any(|launch| launch.source.stays)
}

impl Chooser for Listing {
    fn choose(&self, problems: &[Problem<'_>]) -> Vec<Result<usize, DeviceError>> {
        let listed = |problem: &Problem<'_>| {
            let run = contenders(problem).map(|(_, candidate)| candidate);
            let (staying, others): (Vec<&Candidate>, Vec<_>) =
                run.partition(|candidate| stays(candidate));
            let described = |candidate: &&Candidate| {
                let launch = candidate.launches.iter().find(|launch| launch.source.stays);
                (candidate.name.clone(), launch.map_or(0, |launch| launch.grid[0]))
            };
            Listed {
                operator: problem.operator.unwrap_or_default().to_string(),
                first_stays: stays(&problem.candidates[0]),
                staying: staying.iter().map(described).collect(),
                others: others.len(),
            }
        };
        self.0.borrow_mut().extend(problems.iter().map(listed));
        FirstCandidate.choose(problems)
    }
}

/// What there is to choose from for so many entries of a model on all SMs.
fn listed(model: &str, entries: u32) -> Vec<Listed> {
    let listing = Listing::default();
    let choosing = Choosing::ForEntries(entries);
    let sms = Chip::H200.sm_count / entries;
    plan_by(&listing, &specialised(model, 1, 1), sms, Precision::F16, choosing);
    listing.0.into_inner()
}

#[test]
fn blocks_that_stay_are_measured_where_groups_have_many_tiles_and_never_taken_unmeasured() {
    for (model, least) in [("resnet18", 16), ("mobilenet_v2", 20)] {
        for entries in [2, 8, 32] {
            let listed = listed(model, entries);
            let taken = listed.iter().find(|listed| listed.first_stays);
            assert!(taken.is_none(), "{model}: {}", taken.unwrap().operator);
            // What there is besides is measured as before.
            assert!(listed.iter().all(|listed| listed.others > 0));
            let with = listed.iter().filter(|listed| !listed.staying.is_empty()).count();
            assert!(entries < 32 || with >= least, "{model}: {with} of {}", listed.len());
        }
    }
}

#[test]
fn launches_of_blocks_that_stay_give_kernels_what_they_take() {
    const ENTRIES: u32 = 32;
    let Some(compiler) = compiler() else { return };
    let choosing = Choosing::ForEntries(ENTRIES);
    let chooser = NamedCandidate("streamed");
    let plan = plan_by(&chooser, &specialised("resnet18", 1, 1), 4, Precision::F16, choosing);
    let bases = EntryBases {
        first: Bases { inputs: vec![0; 8], outputs: vec![0; 8], ..Bases::default() },
        arena_step: 0,
        input_step: 0,
        output_step: 0,
        counter_step: 0,
        table: 0,
        descriptions: 0,
        capacity: ENTRIES as usize,
    };
    let mut binder = EntryBinder::new(&bases, &|_, _| Ok([0; 128]));
    let mut given: HashMap<KernelSource, Vec<usize>> = HashMap::new();
    for planned in plan.stages.iter().flat_map(Stage::launches) {
        let bound = binder.bind(planned).unwrap();
        if bound.launch.source.stays {
            assert_eq!(bound.launch.grid, planned.launch.grid);
            assert!(bound.launch.grid[0].is_multiple_of(ENTRIES));
            given.insert(bound.launch.source, bound.operands.iter().map(size_bytes).collect());
        }
    }
    assert!(given.len() >= 4, "with and without residual, of pixels and of windows");
    let sources: Vec<&KernelSource> = given.keys().collect();
    let codes = compiler.compile_all(&sources, |source| Chip::H200.architecture(source.is_exact));
    for (source, code) in sources.into_iter().zip(codes) {
        let taken = parameter_sizes(&code.unwrap(), source.entry_point());
        assert_eq!(given[source], taken, "{:?}", source.defines);
    }
}
