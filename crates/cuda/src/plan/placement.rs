//! Where the values of a plan lie on the device: those that are never alive together share memory.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::ops::Range;

use weft_device::DeviceError;
use weft_ir::buffers::{Lifetime, plan_buffers};
use weft_ir::{OptimizedGraph, ValueId};

use super::PlacedValue;
use super::place::Place;
use super::schedule::{Action, Schedule};
use super::steps::DeviceValue;
use super::target::Target;
use super::task::{Side, Task, Tasks, Work};

/// Where every value starts: what the widest loads and bulk copies ask for.
pub(crate) const ALIGNMENT_BYTES: usize = 256;

/// The places of all values and of the steps' scratch memory.
pub(super) struct Placement {
    values: HashMap<ValueId, Place>,
    /// For each action, where its scratch memory starts: between the values that are alive meanwhile, or after them. Where
    /// values lie does not depend on it, nor on the kernels that are chosen, so that plans of a model for different
    /// partitions can go on from each other's values.
    workspaces: Vec<usize>,
    pub(super) arena_bytes: usize,
    /// The values of the arena.
    pub(super) in_arena: Vec<PlacedValue>,
}

impl Placement {
    /// The place of a value that the device reads or writes, and that is no view.
    pub(super) fn of(&self, id: ValueId) -> Place {
        self.values.get(&id).cloned().expect("every value that the device touches has a place")
    }

    /// Where the scratch memory of an action starts in the arena.
    pub(super) fn workspace(&self, action: usize) -> usize {
        self.workspaces[action]
    }
}

/// Places everything.
pub(super) fn place(
    graph: &OptimizedGraph,
    tasks: &Tasks,
    schedule: &Schedule,
    target: &Target<'_>,
) -> Result<Placement, DeviceError> {
    let mut values: HashMap<ValueId, Place> = HashMap::new();
    let inputs = schedule.inputs_in_place.iter();
    values.extend(inputs.map(|(&id, &index)| (id, Place::Input(index))));
    let outputs = schedule.outputs.in_place.iter();
    values.extend(outputs.map(|(&id, &buffer)| (id, Place::Output(buffer))));
    for task in &tasks.tasks {
        place_constants(graph, tasks, task, target, &mut values)?;
    }

    let mut arena: Vec<ValueId> = Vec::new();
    let mut lifetimes: Vec<Lifetime> = Vec::new();
    let mut lifetime_of: HashMap<ValueId, usize> = HashMap::new();
    for (step, &action) in schedule.actions.iter().enumerate() {
        let touched = Touched::by(action, tasks);
        for id in touched.written.into_iter().filter(|id| !values.contains_key(id)) {
            let size_bytes = target.device_value(graph, id).map_or(0, |value| value.size_bytes());
            lifetime_of.insert(id, lifetimes.len());
            arena.push(id);
            lifetimes.push(lifetime(size_bytes, step));
        }
        for id in touched.read {
            if let Some(&index) = lifetime_of.get(&tasks.views.root(id)) {
                lifetimes[index].last_step = step;
            }
        }
    }
    let buffers = plan_buffers(&lifetimes);
    for (id, &offset_bytes) in arena.iter().zip(&buffers.offsets_bytes) {
        values.insert(*id, Place::Arena { offset_bytes });
    }
    let mut arena_bytes = buffers.arena_bytes;
    let mut workspaces = Vec::with_capacity(schedule.actions.len());
    for (step, &action) in schedule.actions.iter().enumerate() {
        let size_bytes = workspace_bytes(action, tasks).next_multiple_of(ALIGNMENT_BYTES);
        let all = lifetimes.iter().zip(&buffers.offsets_bytes);
        let alive = all.filter(|(life, _)| (life.first_step..=life.last_step).contains(&step));
        let taken = alive.map(|(life, &offset)| offset..offset + life.size_bytes).collect();
        let start = first_gap(taken, size_bytes);
        arena_bytes = arena_bytes.max(start + size_bytes);
        workspaces.push(start);
    }
    let all = arena.iter().zip(&lifetimes).zip(&buffers.offsets_bytes);
    let in_arena = all.filter_map(|((&id, life), &offset_bytes)| {
        let value = target.device_value(graph, id)?;
        let (first_step, last_step) = (life.first_step, life.last_step);
        Some(PlacedValue { id, value, offset_bytes, first_step, last_step })
    });
    let in_arena = in_arena.collect();
    Ok(Placement { values, workspaces, arena_bytes, in_arena })
}

/// The first place for so many bytes beside ranges that are taken.
fn first_gap(mut taken: Vec<Range<usize>>, size_bytes: usize) -> usize {
    taken.sort_by_key(|range| range.start);
    taken
        .iter()
        .fold((0, false), |(start, is_found), range| {
            match is_found || range.start >= start + size_bytes {
                true => (start, true),
                false => (start.max(range.end), false),
            }
        })
        .0
}

/// Sizes that are multiples of the alignment make every offset one.
fn lifetime(size_bytes: usize, step: usize) -> Lifetime {
    let size_bytes = size_bytes.next_multiple_of(ALIGNMENT_BYTES);
    Lifetime { size_bytes, first_step: step, last_step: step }
}

fn workspace_bytes(action: Action, tasks: &Tasks) -> usize {
    match action {
        Action::Run(task) => match &tasks.tasks[task].work {
            Work::Device { candidate, .. } => candidate.workspace_bytes,
            Work::Host(_) => 0,
        },
        _ => 0,
    }
}

/// The values that an action touches on the device.
#[derive(Default)]
struct Touched {
    read: Vec<ValueId>,
    written: Vec<ValueId>,
}

impl Touched {
    fn by(action: Action, tasks: &Tasks) -> Self {
        match action {
            Action::Run(task) => {
                let task = &tasks.tasks[task];
                match task.side() {
                    Side::Host => Self::default(),
                    Side::Device => Self {
                        read: task.reads(),
                        written: task.outputs.iter().flatten().copied().collect(),
                    },
                }
            }
            Action::ConvertInput { value, .. } | Action::Upload(value) => {
                Self { written: vec![value], ..Self::default() }
            }
            Action::ConvertOutput { value, .. } | Action::Download(value) => {
                Self { read: vec![value], ..Self::default() }
            }
        }
    }
}

/// Brings the constants that a task's kernels read as they are onto the device.
fn place_constants(
    graph: &OptimizedGraph,
    tasks: &Tasks,
    task: &Task,
    target: &Target<'_>,
    values: &mut HashMap<ValueId, Place>,
) -> Result<(), DeviceError> {
    if task.side() == Side::Host {
        return Ok(());
    }
    for id in task.reads().into_iter().map(|id| tasks.views.root(id)) {
        let Some(tensor) = graph.graph().constant(id) else { continue };
        let Some(DeviceValue { storage, .. }) = target.device_value(graph, id) else { continue };
        if let Entry::Vacant(place) = values.entry(id) {
            let weights = target.weights.get_or_copy(tensor, storage);
            let weights = weights.map_err(|error| target.in_node(&task.node, error))?;
            place.insert(Place::Weights(weights));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::first_gap;

    #[test]
    fn scratch_memory_lies_in_the_first_gap_that_is_wide_enough() {
        let taken = || vec![100..200, 0..50, 120..300, 400..500];
        assert_eq!(first_gap(taken(), 50), 50);
        assert_eq!(first_gap(taken(), 51), 300);
        assert_eq!(first_gap(taken(), 101), 500);
        assert_eq!(first_gap(Vec::new(), 7), 0);
        assert_eq!(first_gap(taken(), 0), 0);
    }
}
