//! A station: a partition of the device and its thread, which runs one batch after another and answers those whose requests
//! were in it.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Weak};
use std::thread;
use std::time::{Duration, Instant};

use weft_device::{Buckets, Partition, Urgency};
use weft_ir::Value;
use weft_scheduler::{LaunchId, PartitionId, Span, Time, UnitMask};

use crate::call::{Answer, Piece};
use crate::error::InferError;
use crate::model::ModelKey;
use crate::observer::LaunchRecord;
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
    pub(crate) executables: Arc<Buckets>,
    pub(crate) pieces: Vec<Piece>,
    pub(crate) launched: Time,
    pub(crate) expected: Span,
}

impl Job {
    pub(crate) fn rows(&self) -> u32 {
        self.pieces.iter().map(|piece| piece.rows.len() as u32).sum()
    }
}

/// A partition and the way to its thread, which ends when the station is dropped and all that was sent has run.
pub(crate) struct Station {
    pub(crate) partition: Arc<dyn Partition>,
    jobs: Sender<Job>,
}

impl Station {
    pub(crate) fn start(
        name: String,
        partition: Arc<dyn Partition>,
        shared: Weak<Shared>,
    ) -> std::io::Result<Self> {
        let (jobs, received) = channel();
        thread::Builder::new().name(name).spawn(move || work(&received, &shared))?;
        Ok(Self { partition, jobs })
    }

    /// Runs a job after those before it.
    pub(crate) fn run(&self, job: Job) {
        // The thread ends only when its sender is dropped.
        let _ = self.jobs.send(job);
    }
}

fn work(jobs: &Receiver<Job>, shared: &Weak<Shared>) {
    while let Ok(job) = jobs.recv() {
        let (generation, launch) = (job.generation, job.launch);
        let ran = job.run();
        // The partition is free before answers are written.
        if let Some(shared) = shared.upgrade() {
            shared.tell(generation, Message::Finished(launch));
            shared.observer.launch_ended(&ran.record);
        }
        ran.answer();
    }
}

impl Job {
    /// Whether it takes so little time that handing it to another thread would take longer.
    pub(crate) fn is_brief(&self) -> bool {
        self.expected <= BRIEF
    }

    /// Runs it on the calling thread.
    pub(crate) fn run(self) -> Ran {
        let started = Instant::now();
        let inputs = self.pieces.iter().map(|piece| inputs(&self.executables, piece));
        let inputs: Vec<Result<Vec<Value>, _>> = inputs.collect();
        let outputs = run(&self.executables, inputs);
        let record = LaunchRecord {
            model: self.model,
            partition: self.partition.0,
            is_background: self.layer == Layer::Background,
            units: self.units,
            rows: self.rows(),
            started,
            took: started.elapsed(),
            expected: duration(self.expected),
        };
        Ran { job: self, outputs, record }
    }
}

/// A batch that has run, and whose requests have not been answered.
pub(crate) struct Ran {
    job: Job,
    outputs: Vec<Result<Vec<Value>, InferError>>,
    pub(crate) record: LaunchRecord,
}

impl Ran {
    /// Answers everyone whose requests were in it.
    pub(crate) fn answer(self) {
        let Self { job, outputs, record } = self;
        let (batch, ran) = (record.rows, record.took);
        for (piece, outcome) in job.pieces.into_iter().zip(outputs) {
            let Piece { call, rows } = piece;
            match outcome {
                Ok(outputs) => {
                    let queued = duration(job.launched.since(call.arrived));
                    call.add(rows, Answer { outputs, queued, ran, batch }, &job.executables);
                }
                Err(error) => call.answer(Err(error)),
            }
        }
    }
}

fn inputs(executables: &Buckets, piece: &Piece) -> Result<Vec<Value>, InferError> {
    let Piece { call, rows } = piece;
    if *rows == (0..call.rows) {
        return Ok(call.inputs.clone());
    }
    let entries = rows.start as usize..rows.end as usize;
    executables.cut(&call.inputs, entries).map_err(Into::into)
}

/// Runs what could be cut as one batch.
fn run(
    executables: &Buckets,
    inputs: Vec<Result<Vec<Value>, InferError>>,
) -> Vec<Result<Vec<Value>, InferError>> {
    let mut failed = Vec::new();
    let mut callers = Vec::with_capacity(inputs.len());
    for (place, inputs) in inputs.into_iter().enumerate() {
        match inputs {
            Ok(inputs) => callers.push(inputs),
            Err(error) => failed.push((place, error)),
        }
    }
    let outputs = executables.run_together(&callers, Urgency::InTurn).into_iter();
    let mut outcomes: Vec<_> = outputs.map(|outputs| outputs.map_err(Into::into)).collect();
    for (place, error) in failed {
        outcomes.insert(place, Err(error));
    }
    outcomes
}

fn duration(span: Span) -> Duration {
    Duration::from_nanos(span.nanos())
}
