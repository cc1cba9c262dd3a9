//! A station: a partition of the device and its threads, which run one batch after another and answer those whose requests
//! were in it. Batches that interrupt others have a thread of their own.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Weak};
use std::thread;
use std::time::{Duration, Instant};

use weft_device::{DeviceError, Partition, Urgency};
use weft_scheduler::{LaunchId, PartitionId, Span, Time, UnitMask};

use crate::call::{Answer, Piece};
use crate::execution::{self, Outcome, Part, Together};
use crate::model::ModelKey;
use crate::observer::{LaunchRecord, Observer};
use crate::service::{Generation, Layer, Message};
use crate::shared::Shared;

/// What takes no longer than this runs on the thread that brought it.
const BRIEF: Span = Span::from_nanos(40_000);

/// A batch to run.
pub(crate) struct Job {
    pub(crate) generation: Generation,
    pub(crate) launch: LaunchId,
    pub(crate) model: ModelKey,
    pub(crate) partition: PartitionId,
    pub(crate) layer: Layer,
    pub(crate) units: UnitMask,
    pub(crate) parts: Vec<Part>,
    pub(crate) together: Together,
    pub(crate) launched: Time,
    pub(crate) expected: Span,
    pub(crate) urgency: Urgency,
}

impl Job {
    pub(crate) fn rows(&self) -> u32 {
        self.parts.iter().map(|part| part.piece.rows.len() as u32).sum()
    }

    /// The models whose requests are in it, and how many rows of each.
    pub(crate) fn tenants(&self) -> Vec<(ModelKey, u32)> {
        let mut tenants: Vec<(ModelKey, u32)> = Vec::new();
        for Part { piece: Piece { call, rows }, .. } in &self.parts {
            let count = rows.len() as u32;
            match tenants.iter_mut().find(|(model, _)| *model == call.model) {
                Some((_, rows)) => *rows += count,
                None => tenants.push((call.model, count)),
            }
        }
        tenants
    }
}

/// A partition and the way to its threads, which end when the station is dropped and all that was sent has run.
pub(crate) struct Station {
    pub(crate) partition: Arc<dyn Partition>,
    in_turn: Sender<Job>,
    at_once: Sender<Job>,
    interruptions: Arc<Interruptions>,
}

/// How long batches have been interrupted on a partition, altogether.
#[derive(Default)]
pub(crate) struct Interruptions(AtomicU64);

impl Interruptions {
    fn total(&self) -> Duration {
        Duration::from_nanos(self.0.load(Ordering::Relaxed))
    }

    fn add(&self, duration: Duration) {
        self.0.fetch_add(duration.as_nanos() as u64, Ordering::Relaxed);
    }
}

impl Station {
    pub(crate) fn start(
        name: String,
        partition: Arc<dyn Partition>,
        shared: Weak<Shared>,
    ) -> std::io::Result<Self> {
        let interruptions = Arc::<Interruptions>::default();
        let start = |name: String| -> std::io::Result<Sender<Job>> {
            let (jobs, received) = channel();
            let (shared, interruptions) = (shared.clone(), interruptions.clone());
            let work = move || work(&received, &shared, &interruptions);
            thread::Builder::new().name(name).spawn(work)?;
            Ok(jobs)
        };
        let at_once = start(format!("{name}-at-once"))?;
        let in_turn = start(name)?;
        Ok(Self { partition, in_turn, at_once, interruptions })
    }

    /// Runs a job after those before it, or while they pause.
    pub(crate) fn run(&self, job: Job) {
        let jobs = match job.urgency {
            Urgency::InTurn => &self.in_turn,
            Urgency::AtOnce => &self.at_once,
        };
        // The thread ends only when its sender is dropped.
        let _ = jobs.send(job);
    }

    /// Runs a job on the calling thread.
    pub(crate) fn run_here(&self, job: Job) -> Ran {
        job.run(&self.interruptions)
    }
}

fn work(jobs: &Receiver<Job>, shared: &Weak<Shared>, interruptions: &Interruptions) {
    while let Ok(job) = jobs.recv() {
        let (generation, launch) = (job.generation, job.launch);
        let ran = job.run(interruptions);
        // The partition is free before answers are written.
        if let Some(shared) = shared.upgrade() {
            shared.tell(generation, Message::Finished(launch, ran.is_as_launched));
            ran.tell(&*shared.observer);
        }
        ran.answer();
    }
}

impl Job {
    /// Whether it takes so little time that handing it to another thread would take longer.
    pub(crate) fn is_brief(&self) -> bool {
        self.expected <= BRIEF
    }

    fn run(self, interruptions: &Interruptions) -> Ran {
        let (started, before) = (Instant::now(), interruptions.total());
        // Others wait for this thread, whatever happens to one batch.
        let run = || execution::run(&self.parts, &self.together, self.urgency);
        let outputs = catch_unwind(AssertUnwindSafe(run));
        let failed = |_| (self.parts.iter().map(|_| panicked()).collect(), false);
        let (outputs, is_mixed) = outputs.unwrap_or_else(failed);
        let elapsed = started.elapsed();
        let paused = match self.urgency {
            Urgency::InTurn => elapsed.min(interruptions.total() - before),
            Urgency::AtOnce => {
                interruptions.add(elapsed);
                Duration::ZERO
            }
        };
        let record = LaunchRecord {
            model: self.model,
            partition: self.partition.0,
            is_background: self.layer == Layer::Background,
            units: self.units,
            rows: self.rows(),
            tenants: self.tenants().len() as u32,
            is_fused: matches!(self.together, Together::Fused),
            is_mixed,
            started,
            took: elapsed - paused,
            paused,
            expected: duration(self.expected),
        };
        let is_as_launched = is_mixed || !matches!(self.together, Together::Mixed(_));
        Ran { job: self, outputs, record, is_as_launched }
    }
}

/// A batch that has run, and whose requests have not been answered.
pub(crate) struct Ran {
    job: Job,
    outputs: Vec<Outcome>,
    pub(crate) record: LaunchRecord,
    /// False for batches of a mix that ran one after another all the same.
    pub(crate) is_as_launched: bool,
}

impl Ran {
    /// Tells of it, and of each model that was in it.
    pub(crate) fn tell(&self, observer: &dyn Observer) {
        observer.launch_ended(&self.record);
        for (model, rows) in self.job.tenants() {
            observer.took_part(model, rows, &self.record);
        }
    }

    /// Answers everyone whose requests were in it.
    pub(crate) fn answer(self) {
        let Self { job, outputs, record, .. } = self;
        let (batch, ran) = (record.rows, record.took);
        for (part, outcome) in job.parts.into_iter().zip(outputs) {
            let Part { piece: Piece { call, rows }, model } = part;
            match outcome {
                Ok(outputs) => {
                    let queued = duration(job.launched.since(call.arrived));
                    call.add(rows, Answer { outputs, queued, ran, batch }, &model.buckets);
                }
                Err(error) => call.answer(Err(error)),
            }
        }
    }
}

fn panicked() -> Outcome {
    Err(DeviceError::Failed("a panic while it ran".into()).into())
}

fn duration(span: Span) -> Duration {
    Duration::from_nanos(span.nanos())
}
