//! Models of one structure on one partition: one launch computes the same step of several requests, each with the weights
//! of its own model.

mod executable;
mod given;

use std::cell::OnceCell;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use weft_device::{
    DeviceError, ExecutionReport, Group, GroupEntry, GroupMember, LoadedModel, StepReport,
};
use weft_ir::{OptimizedGraph, Value};

use crate::choosing::Choosing;
use crate::driver::CudaError;
use crate::gpu::Gpu;
use crate::known_plans::{KnownPlan, PlanKey};
use crate::library_call::LibrarySet;
use crate::measure::MeasuringChooser;
use crate::model::CudaModel;
use crate::options::Choice;
use crate::partition::Lane;
use crate::plan::chooser::{Chooser, FirstCandidate, NamedCandidate};
use crate::plan::target::Target;
use crate::plan::{ExecutionPlan, build};
use executable::{EntryExecutable, Request};
use given::GivenMemory;

/// How many requests one launch computes at most.
const MAX_ENTRIES: usize = 64;

/// A group on one partition of a GPU.
///
/// [`Group::run`] does all of it. [`CudaGroup::launch_again`] and [`CudaGroup::wait`] are there for those who measure.
pub struct CudaGroup {
    gpu: Arc<Gpu>,
    lane: Arc<Lane>,
    shapes: Vec<Vec<usize>>,
    /// For 1, 2, 4 and so on entries.
    executables: Vec<EntryExecutable>,
    members: RwLock<Vec<Option<Arc<Member>>>>,
}

/// One member.
struct Member {
    model: String,
    /// What the launches of each of the executables are given.
    given: Vec<GivenMemory>,
}

impl CudaGroup {
    /// A group with its first member.
    pub(crate) fn new(
        gpu: Arc<Gpu>,
        lane: Arc<Lane>,
        model: &CudaModel,
        shapes: &[Vec<usize>],
        entries: usize,
    ) -> Result<(Self, GroupMember), DeviceError> {
        if !(1..=MAX_ENTRIES).contains(&entries) {
            let problem = format!("a group has 1 to {MAX_ENTRIES} entries, not {entries}");
            return Err(DeviceError::Failed(problem));
        }
        let shapes = shapes.to_vec();
        let mut group =
            Self { gpu, lane, shapes, executables: Vec::new(), members: RwLock::default() };
        let mut given = Vec::new();
        let graph = OnceCell::new();
        for capacity in capacities(entries) {
            let known = group.plan(model, &graph, capacity)?;
            given.push(group.given(&known.plan)?);
            let plan = known.plan.clone();
            let executable =
                EntryExecutable::new(&model.name, plan, capacity, &group.gpu, &group.lane)?;
            group.executables.push(executable);
        }
        let member = group.put(Member { model: model.name.clone(), given });
        Ok((group, member))
    }

    /// The plan of a model for so many entries. Its graph is specialised where one is made for the first time.
    fn plan(
        &self,
        model: &CudaModel,
        graph: &OnceCell<OptimizedGraph>,
        capacity: usize,
    ) -> Result<Arc<KnownPlan>, DeviceError> {
        let key = PlanKey {
            shapes: self.shapes.clone(),
            sm_count: self.lane.partition.sm_count(),
            entries: Some(capacity),
            choices: 0,
        };
        model.plans.get_or_make(key, || {
            let graph = match graph.get() {
                Some(graph) => graph,
                None => {
                    let specialised = model.specialised(&self.shapes)?;
                    graph.get_or_init(|| specialised)
                }
            };
            self.new_plan(model, graph, capacity)
        })
    }

    fn new_plan(
        &self,
        model: &CudaModel,
        graph: &OptimizedGraph,
        capacity: usize,
    ) -> Result<ExecutionPlan, DeviceError> {
        let sm_count = self.lane.partition.sm_count();
        let entries = capacity as u32;
        let measuring =
            MeasuringChooser { gpu: &self.gpu, lane: &self.lane, entries: Some(capacity) };
        let named;
        let chooser: &dyn Chooser = match self.gpu.options.choice {
            Choice::Measured => &measuring,
            Choice::Estimated => &FirstCandidate,
            Choice::Named(name) => {
                named = NamedCandidate(name);
                &named
            }
        };
        let target = Target {
            model: &model.name,
            weights: &model.weights,
            chip: self.gpu.context.chip().with_sms((sm_count / entries).max(1)),
            precision: model.precision,
            chooser,
            libraries: LibrarySet::default().into(),
            choosing: Choosing::ForEntries(entries),
        };
        let plan = build(graph, &target)?;
        match plan.bar_to_entries() {
            None => Ok(plan),
            Some(why) => {
                let problem = format!("it cannot be in a group: {why}");
                Err(DeviceError::Failed(problem).at(&model.name, None))
            }
        }
    }

    fn member_of(&self, model: &CudaModel) -> Result<Member, DeviceError> {
        let mut given = Vec::new();
        let graph = OnceCell::new();
        for executable in &self.executables {
            let known = self.plan(model, &graph, executable.capacity)?;
            if known.structure() != executable.structure {
                let problem = "it differs from the others of the group in more than its weights";
                return Err(DeviceError::Failed(problem.to_string()).at(&model.name, None));
            }
            given.push(self.given(&known.plan)?);
        }
        Ok(Member { model: model.name.clone(), given })
    }

    fn given(&self, plan: &ExecutionPlan) -> Result<GivenMemory, DeviceError> {
        Ok(GivenMemory::new(&self.gpu.context, &plan.given())?)
    }

    fn put(&self, member: Member) -> GroupMember {
        let mut members = self.members.write().unwrap_or_else(PoisonError::into_inner);
        let place = members.iter().position(Option::is_none).unwrap_or(members.len());
        let member = Some(Arc::new(member));
        match members.get_mut(place) {
            Some(free) => *free = member,
            None => members.push(member),
        }
        GroupMember(place as u32)
    }

    fn member(&self, member: GroupMember) -> Result<Arc<Member>, DeviceError> {
        let members = self.members.read().unwrap_or_else(PoisonError::into_inner);
        let found = members.get(member.0 as usize).cloned().flatten();
        found.ok_or_else(|| no_member(member))
    }

    /// The least executable for so many requests.
    fn executable(&self, count: usize) -> Option<(usize, &EntryExecutable)> {
        let fits = |(_, executable): &(usize, &EntryExecutable)| executable.capacity >= count;
        self.executables.iter().enumerate().find(fits)
    }

    /// Starts the last run of so many requests once more, on the same inputs, and does not wait for its end.
    pub fn launch_again(&self, count: usize) -> Result<(), DeviceError> {
        let (_, executable) = self.executable(count).ok_or_else(|| self.too_many(count))?;
        Ok(executable.launch()?)
    }

    /// Waits for the end of all that runs of so many requests have launched.
    pub fn wait(&self, count: usize) -> Result<(), DeviceError> {
        let (_, executable) = self.executable(count).ok_or_else(|| self.too_many(count))?;
        Ok(executable.wait()?)
    }

    /// Fills the memory of runs of so many requests with what is not a number, so that a test sees what the next one leaves
    /// unwritten.
    pub fn poison(&self, count: usize) -> Result<(), DeviceError> {
        let (_, executable) = self.executable(count).ok_or_else(|| self.too_many(count))?;
        let arena = self.lane.take_turn();
        Ok(executable.poison(arena.address())?)
    }

    /// The kernels of a run of so many requests, and what it takes.
    pub fn report(&self, count: usize) -> Result<&ExecutionReport, DeviceError> {
        let (_, executable) = self.executable(count).ok_or_else(|| self.too_many(count))?;
        Ok(&executable.report)
    }

    /// The steps of the last run of so many requests, and how long each takes by itself.
    pub fn time_steps(&self, count: usize) -> Result<Vec<(StepReport, Duration)>, DeviceError> {
        let (_, executable) = self.executable(count).ok_or_else(|| self.too_many(count))?;
        let _turn = self.lane.take_turn();
        let times = executable.time_steps()?;
        Ok(executable.report.steps.iter().cloned().zip(times).collect())
    }

    fn too_many(&self, count: usize) -> DeviceError {
        let entries = self.entries();
        DeviceError::Failed(format!("{count} requests are more than the {entries} of the group"))
    }

    /// Runs requests that have passed all checks but that of their inputs.
    fn run_checked<'a>(
        &self,
        requests: &'a [(Arc<Member>, &'a [Value])],
    ) -> Vec<Result<Vec<Value>, DeviceError>> {
        let Some((place, executable)) = self.executable(requests.len()) else {
            return requests.iter().map(|_| Err(self.too_many(requests.len()))).collect();
        };
        let request = |(member, inputs): &'a (Arc<Member>, &'a [Value])| Request {
            model: &member.model,
            inputs,
            given: &member.given[place].addresses,
        };
        let requests: Vec<Request<'_>> = requests.iter().map(request).collect();
        let _turn = self.lane.take_turn();
        let staged = executable.stage_inputs(&requests);
        if staged.iter().all(Result::is_err) {
            return staged.into_iter().map(|staged| staged.map(|()| Vec::new())).collect();
        }
        let ran = executable
            .write(&requests)
            .and_then(|()| executable.launch())
            .and_then(|()| executable.read(&requests));
        match ran {
            Ok(outputs) => {
                let answers = staged.into_iter().zip(outputs);
                answers.map(|(staged, outputs)| staged.and(outputs)).collect()
            }
            Err(error) => {
                let failed = || Err(CudaError::clone(&error).into());
                staged.into_iter().map(|staged| staged.and_then(|()| failed())).collect()
            }
        }
    }
}

/// 1, 2, 4 and so on, until so many fit.
fn capacities(entries: usize) -> impl Iterator<Item = usize> {
    (0..=entries.next_power_of_two().trailing_zeros()).map(|power| 1 << power)
}

fn no_member(member: GroupMember) -> DeviceError {
    DeviceError::Failed(format!("the group has no member {}", member.0))
}

impl Group for CudaGroup {
    fn entries(&self) -> usize {
        self.executables.last().map_or(0, |executable| executable.capacity)
    }

    fn memory_bytes(&self) -> usize {
        // Executables run one at a time, in one arena.
        let arena_bytes = self.executables.iter().map(|executable| executable.arena_bytes).max();
        let others = self.executables.iter().map(EntryExecutable::own_bytes);
        arena_bytes.unwrap_or(0) + others.sum::<usize>()
    }

    fn join(&self, model: &dyn LoadedModel) -> Result<GroupMember, DeviceError> {
        let model = CudaModel::of(model, &self.gpu)?;
        let member = self.member_of(model);
        model.tidy(member.is_err());
        Ok(self.put(member?))
    }

    fn leave(&self, member: GroupMember) -> Result<(), DeviceError> {
        let mut members = self.members.write().unwrap_or_else(PoisonError::into_inner);
        let place = members.get_mut(member.0 as usize).filter(|place| place.is_some());
        place.map(|place| *place = None).ok_or_else(|| no_member(member))
    }

    fn run(&self, entries: &[GroupEntry<'_>]) -> Vec<Result<Vec<Value>, DeviceError>> {
        let members = entries.iter().map(|entry| self.member(entry.member));
        let mut found = Vec::new();
        let mut answers = Vec::new();
        for (member, entry) in members.zip(entries) {
            answers.push(member.map(|member| {
                found.push((member, entry.inputs));
                Vec::new()
            }));
        }
        let ran = self.run_checked(&found);
        let places = answers.iter_mut().filter(|answer| answer.is_ok());
        places.zip(ran).for_each(|(answer, ran)| *answer = ran);
        answers
    }
}

#[cfg(test)]
mod tests {
    use super::capacities;

    #[test]
    fn there_is_a_size_for_every_number_of_requests() {
        assert_eq!(capacities(1).collect::<Vec<_>>(), [1]);
        assert_eq!(capacities(8).collect::<Vec<_>>(), [1, 2, 4, 8]);
        assert_eq!(capacities(33).last(), Some(64));
    }
}
