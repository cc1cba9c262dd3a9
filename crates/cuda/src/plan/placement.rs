//! Where the values of a plan lie on the device: those that are never alive together share memory.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use weft_device::DeviceError;
use weft_ir::buffers::{Lifetime, plan_buffers};
use weft_ir::{OptimizedGraph, ValueId};

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
    /// Where scratch memory starts, after all values: where these lie does not depend on the kernels that are chosen, so
    /// that plans of a model for different partitions can go on from each other's values.
    workspace: usize,
    pub(super) arena_bytes: usize,
}

impl Placement {
    /// The place of a value that the device reads or writes, and that is no view.
    pub(super) fn of(&self, id: ValueId) -> Place {
        self.values.get(&id).cloned().expect("every value that the device touches has a place")
    }

    /// Where the scratch memory of every action starts in the arena. Steps run one after another.
    pub(super) fn workspace(&self) -> usize {
        self.workspace
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
    let workspaces = schedule.actions.iter().map(|&action| workspace_bytes(action, tasks));
    let workspace_bytes = workspaces.max().unwrap_or(0).next_multiple_of(ALIGNMENT_BYTES);
    let workspace = buffers.arena_bytes;
    Ok(Placement { values, workspace, arena_bytes: workspace + workspace_bytes })
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
