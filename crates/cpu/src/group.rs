//! Models of one structure on one partition: each core runs requests of its own from beginning to end, so that no core
//! waits for another between two steps.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};

use weft_device::{
    DeviceError, Group, GroupEntry, GroupMember, KernelChoices, LoadedModel, Urgency,
};
use weft_ir::Value;

use crate::Isa;
use crate::lane::{Arena, Lane};
use crate::model::CpuModel;
use crate::plan::{ExecutionPlan, Planning, Run, build};

/// How many times as long as its share of the work a request takes that all cores compute together: they wait for one
/// another after every step.
const TOGETHERNESS: f64 = 1.2;

/// A group.
pub(crate) struct CpuGroup {
    lane: Arc<Lane>,
    isa: Isa,
    cores: usize,
    choices: Option<Arc<dyn KernelChoices>>,
    shapes: Vec<Vec<usize>>,
    entries: usize,
    members: RwLock<Vec<Option<Arc<Member>>>>,
    /// One for each core.
    arenas: Vec<Mutex<Arena>>,
}

/// One member. Its plan is that of the model alone on all cores, whether one of them runs it or all do, so that a request
/// has the same results whoever is beside it.
struct Member {
    model: String,
    plan: ExecutionPlan,
}

/// A request of a member.
struct Request<'a> {
    /// Which of the run's requests it is.
    place: usize,
    member: Arc<Member>,
    inputs: &'a [Value],
}

type Answer = OnceLock<Result<Vec<Value>, DeviceError>>;

impl CpuGroup {
    /// A group with its first member.
    pub(crate) fn new(
        lane: Arc<Lane>,
        isa: Isa,
        cores: usize,
        choices: Option<Arc<dyn KernelChoices>>,
        model: &CpuModel,
        shapes: &[Vec<usize>],
        entries: usize,
    ) -> Result<(Self, GroupMember), DeviceError> {
        if entries == 0 {
            return Err(DeviceError::Failed("a group has at least one entry".to_string()));
        }
        let group = Self {
            lane,
            isa,
            cores,
            choices,
            shapes: shapes.to_vec(),
            entries,
            members: RwLock::default(),
            arenas: (0..cores).map(|_| Mutex::default()).collect(),
        };
        let first = group.member_of(model)?;
        let member = group.put(first);
        Ok((group, member))
    }

    fn member_of(&self, model: &CpuModel) -> Result<Member, DeviceError> {
        let graph = model.specialise(&self.shapes)?;
        let (weights, choices) = (&model.weights, self.choices.as_deref());
        let planning = Planning { weights, isa: self.isa, workers: self.cores, choices };
        let plan = build(graph, &planning);
        Ok(Member { model: model.name.clone(), plan })
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

    fn member(&self, member: GroupMember) -> Option<Arc<Member>> {
        let members = self.members.read().unwrap_or_else(PoisonError::into_inner);
        members.get(member.0 as usize).cloned().flatten()
    }

    /// Runs requests, each on the core that is free first.
    fn run_apart(&self, requests: &[Request<'_>], answers: &[Answer]) -> Result<(), DeviceError> {
        // Waking the workers for nothing would take longer than some models do.
        if requests.is_empty() {
            return Ok(());
        }
        let next = AtomicUsize::new(0);
        let pool = &self.lane.track(Urgency::InTurn)?.pool;
        let ran = pool.run(|worker| {
            let arena = &self.arenas[worker.index()];
            let mut arena = arena.lock().unwrap_or_else(PoisonError::into_inner);
            worker.apart(|alone| {
                loop {
                    let request = requests.get(next.fetch_add(1, Ordering::Relaxed));
                    let Some(Request { place, member, inputs }) = request else { return };
                    let Member { model, plan } = &**member;
                    let run = Run { model, plan, inputs, after_step: |_| {} };
                    let answer = run.on(&mut arena, |body| {
                        body(alone);
                        Ok(())
                    });
                    let _ = answers[*place].set(answer);
                }
            });
        });
        ran.map_err(|error| DeviceError::Failed(error.to_string()))
    }

    /// Runs one request on all cores.
    fn run_together(&self, member: &Member, inputs: &[Value]) -> Result<Vec<Value>, DeviceError> {
        let track = self.lane.track(Urgency::InTurn)?;
        let Member { model, plan } = member;
        let run = Run { model, plan, inputs, after_step: |_| {} };
        run.on(&mut track.arena(), |body| plan.run_on(&track.pool, body))
    }
}

impl Group for CpuGroup {
    fn entries(&self) -> usize {
        self.entries
    }

    /// An arena for each core: those that cores run on together are the partition's.
    fn memory_bytes(&self) -> usize {
        let members = self.members.read().unwrap_or_else(PoisonError::into_inner);
        let arena_bytes = members.iter().flatten().map(|member| member.plan.arena_bytes());
        self.cores * arena_bytes.max().unwrap_or(0)
    }

    fn join(&self, model: &dyn LoadedModel) -> Result<GroupMember, DeviceError> {
        let member = self.member_of(CpuModel::of(model)?)?;
        let is_like = |other: &Arc<Member>| member.plan.has_steps_of(&other.plan);
        let members = self.members.read().unwrap_or_else(PoisonError::into_inner);
        let is_alike = members.iter().flatten().next().is_none_or(is_like);
        drop(members);
        if !is_alike {
            let why = "it differs from the group's other models in more than its weights";
            return Err(DeviceError::Failed(why.to_string()).at(model.name(), None));
        }
        Ok(self.put(member))
    }

    fn leave(&self, member: GroupMember) -> Result<(), DeviceError> {
        let mut members = self.members.write().unwrap_or_else(PoisonError::into_inner);
        match members.get_mut(member.0 as usize) {
            Some(place) if place.is_some() => *place = None,
            _ => return Err(DeviceError::Failed(format!("{member:?} is none of the group's"))),
        }
        Ok(())
    }

    fn run(&self, entries: &[GroupEntry<'_>]) -> Vec<Result<Vec<Value>, DeviceError>> {
        let failed = |why: String| Err(DeviceError::Failed(why));
        if entries.len() > self.entries {
            let why = || format!("{} requests for {} entries", entries.len(), self.entries);
            return entries.iter().map(|_| failed(why())).collect();
        }
        let answers: Vec<Answer> = entries.iter().map(|_| OnceLock::new()).collect();
        let mut requests = Vec::with_capacity(entries.len());
        for (place, entry) in entries.iter().enumerate() {
            match self.member(entry.member) {
                Some(member) => requests.push(Request { place, member, inputs: entry.inputs }),
                None => {
                    let why = format!("{:?} is none of the group's", entry.member);
                    let _ = answers[place].set(failed(why));
                }
            }
        }
        let (apart, together) = requests.split_at(spread(requests.len(), self.cores));
        let ran = self.run_apart(apart, &answers);
        for Request { place, member, inputs } in together {
            let _ = answers[*place].set(self.run_together(member, inputs));
        }
        // A worker that panicked left its request without an answer.
        let problem = ran.err().map_or_else(|| "it was not run".into(), |why| why.to_string());
        let answers = answers.into_iter().map(OnceLock::into_inner);
        answers.map(|answer| answer.unwrap_or_else(|| failed(problem.clone()))).collect()
    }
}

/// How many of so many requests cores run each for itself; the others are better off with all cores.
fn spread(count: usize, cores: usize) -> usize {
    let left = count % cores;
    let together = left as f64 * TOGETHERNESS / cores as f64;
    if together < 1.0 { count - left } else { count }
}

#[cfg(test)]
mod tests {
    use super::spread;

    #[test]
    fn few_requests_have_all_cores_and_many_have_one_each() {
        let of = |cores, counts: [usize; 5]| counts.map(|count| spread(count, cores));
        assert_eq!(of(1, [1, 2, 3, 4, 5]), [1, 2, 3, 4, 5]);
        assert_eq!(of(2, [1, 2, 3, 4, 5]), [0, 2, 2, 4, 4]);
        assert_eq!(of(4, [1, 3, 4, 7, 8]), [0, 0, 4, 4, 8]);
        assert_eq!(of(16, [1, 13, 14, 16, 30]), [0, 0, 14, 16, 30]);
    }
}
