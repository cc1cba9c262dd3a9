//! Requests as an engine holds them: what was given, who waits for it, and which rows of it run when.

use std::collections::BTreeMap;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use weft_device::Buckets;
use weft_ir::Value;
use weft_scheduler::Time;

use crate::error::InferError;
use crate::model::ModelKey;

/// A request to an engine.
pub struct Submission {
    /// The model that it asks for.
    pub model: ModelKey,
    /// One value per required input.
    pub inputs: Vec<Value>,
    /// Entries of the batch that the inputs hold; 1 where the model has no batch.
    pub rows: u32,
    /// From its arrival to when its answer is worth nothing; the model's objective where that is less.
    pub timeout: Option<Duration>,
    /// Whether it has a claim to its model's objective, or runs when nobody waits who has one.
    pub claim: Claim,
}

/// What a request may expect of its model's objective.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Claim {
    /// It is answered within the objective, or refused.
    #[default]
    Promised,
    /// It waits as long as it takes, or until its own timeout.
    BestEffort,
}

/// What comes of a request that was served.
#[derive(Clone, Debug)]
pub struct Answer {
    /// One value per output.
    pub outputs: Vec<Value>,
    /// From its arrival until its batch began.
    pub queued: Duration,
    /// How long its batch took.
    pub ran: Duration,
    /// Entries of the batch that it ran in.
    pub batch: u32,
}

/// Called once with what came of a request, from a thread that should not be kept.
pub type Reply = Box<dyn FnOnce(Result<Answer, InferError>) + Send>;

/// A request that was taken in.
pub(crate) struct Call {
    pub(crate) model: ModelKey,
    pub(crate) inputs: Vec<Value>,
    pub(crate) arrived: Time,
    pub(crate) deadline: Time,
    pub(crate) rows: u32,
    reply: Mutex<Option<Reply>>,
    done: Mutex<BTreeMap<u32, Part>>,
}

/// Rows of a request that have run.
struct Part {
    rows: Range<u32>,
    answer: Answer,
}

impl Call {
    pub(crate) fn new(
        submission: Submission,
        arrived: Time,
        deadline: Time,
        reply: Reply,
    ) -> Arc<Self> {
        let Submission { model, inputs, rows, .. } = submission;
        let (reply, done) = (Mutex::new(Some(reply)), Mutex::default());
        Arc::new(Self { model, inputs, arrived, deadline, rows, reply, done })
    }

    /// Nobody waits for it: it was answered, or cancelled.
    pub(crate) fn is_over(&self) -> bool {
        lock(&self.reply).is_none()
    }

    /// Nobody is to be answered.
    pub(crate) fn cancel(&self) {
        drop(lock(&self.reply).take());
    }

    /// Answers it, unless it is over.
    pub(crate) fn answer(&self, outcome: Result<Answer, InferError>) {
        let reply = lock(&self.reply).take();
        if let Some(reply) = reply {
            // The thread has others to answer, whatever happens to one.
            let _ = catch_unwind(AssertUnwindSafe(|| reply(outcome)));
        }
    }

    /// Some of its rows have run; it is answered with the last of them.
    pub(crate) fn add(&self, rows: Range<u32>, answer: Answer, executables: &Buckets) {
        if rows == (0..self.rows) {
            return self.answer(Ok(answer));
        }
        let parts = {
            let mut done = lock(&self.done);
            done.insert(rows.start, Part { rows, answer });
            let count: usize = done.values().map(|part| part.rows.len()).sum();
            if count < self.rows as usize {
                return;
            }
            std::mem::take(&mut *done)
        };
        let parts: Vec<Answer> = parts.into_values().map(|part| part.answer).collect();
        let queued = parts.iter().map(|part| part.queued).max().unwrap_or_default();
        let ran = parts.iter().map(|part| part.ran).max().unwrap_or_default();
        let batch = parts.iter().map(|part| part.batch).max().unwrap_or_default();
        let outputs = executables.join(parts.into_iter().map(|part| part.outputs).collect());
        let answer = outputs.map(|outputs| Answer { outputs, queued, ran, batch });
        self.answer(answer.map_err(Into::into));
    }
}

/// One entry of a request's batch, as the scheduler counts.
#[derive(Clone)]
pub(crate) struct Row {
    pub(crate) call: Arc<Call>,
    pub(crate) index: u32,
}

/// Consecutive rows of one request.
pub(crate) struct Piece {
    pub(crate) call: Arc<Call>,
    pub(crate) rows: Range<u32>,
}

/// Rows that run together, as few pieces; those of requests that are over are left out.
pub(crate) fn pieces(rows: impl IntoIterator<Item = Row>) -> Vec<Piece> {
    let mut pieces: Vec<Piece> = Vec::new();
    for row in rows.into_iter().filter(|row| !row.call.is_over()) {
        match pieces.last_mut() {
            Some(last) if Arc::ptr_eq(&last.call, &row.call) && last.rows.end == row.index => {
                last.rows.end += 1;
            }
            _ => pieces.push(Piece { call: row.call, rows: row.index..row.index + 1 }),
        }
    }
    pieces
}

/// A lock that a panic elsewhere does not take away: what it guards is whole between any two statements.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
