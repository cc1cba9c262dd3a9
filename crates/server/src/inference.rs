//! The path of one request for inference, whatever it was written in: found, admitted, checked, run, answered, counted.

use std::sync::Arc;
use std::time::Instant;

use tokio::sync::{Semaphore, oneshot};
use weft_engine::{Answer, Claim, Engine, InferError, Submission, Ticket};
use weft_protocol::{InferRequest, InferResponse};

use crate::beside::{LONG_BYTES, beside_if};
use crate::door::Door;
use crate::error::ServeError;
use crate::inputs::{BoundInputs, bind};
use crate::limits::Limits;
use crate::models::{ModelEntry, ModelTable};
use crate::outputs::WantedOutputs;
use crate::passage::Passage;
use crate::repository::Repository;
use crate::shared_memory::Regions;
use crate::spans::{PendingSpan, SpanExporter, TraceParent};
use crate::tenants::{Caller, Tenants};
use crate::tls::Tls;
use crate::tuning::KernelTuning;
use crate::wakes::Wakes;

/// What all transports serve from.
pub(crate) struct Serving {
    pub(crate) engine: Arc<Engine>,
    pub(crate) models: Arc<ModelTable>,
    pub(crate) repository: Arc<dyn Repository>,
    pub(crate) wakes: Wakes,
    pub(crate) door: Arc<Door>,
    pub(crate) regions: Regions,
    pub(crate) tenants: Arc<Tenants>,
    /// `None` where connections are as they come.
    pub(crate) tls: Option<Arc<Tls>>,
    /// Places for connections.
    pub(crate) room: Arc<Semaphore>,
    pub(crate) spans: Option<Arc<SpanExporter>>,
    pub(crate) limits: Limits,
    pub(crate) tuning: Option<Arc<KernelTuning>>,
}

impl Serving {
    /// The version of a model that is asked for, brought back first where it is asleep. One that is not there for the caller
    /// is not there.
    pub(crate) async fn model(
        &self,
        caller: &Caller,
        name: &str,
        version: &str,
    ) -> Result<Arc<ModelEntry>, ServeError> {
        caller.check_sees(name)?;
        let found = self.models.find(name, version);
        let Err(ServeError::Asleep(asleep)) = found else { return found };
        // Those who wait for it are as many as are taken on, like those who wait for the engine.
        let _admitted = self.door.admit()?;
        self.wakes.wake(&self.repository, &asleep).await?;
        self.models.find(name, version)
    }

    /// A request for inference has come, with a `traceparent` or without.
    pub(crate) fn passage(&self, parent: Option<TraceParent>) -> Passage<'_> {
        let spans = self.spans.as_deref();
        let span = spans.and_then(|exporter| PendingSpan::begin(exporter, parent));
        Passage::begin(self.models.metrics(), span)
    }

    /// Answers a request. Dropping the future gives the request up.
    pub(crate) async fn infer(
        &self,
        caller: &Caller,
        model: &ModelEntry,
        request: InferRequest,
        passage: &mut Passage<'_>,
    ) -> Result<InferResponse, ServeError> {
        let arrived = Instant::now();
        let outcome = self.run(caller, model, request, arrived, passage).await;
        if outcome.is_err() {
            model.statistics.failed(arrived.elapsed());
        }
        outcome
    }

    async fn run(
        &self,
        caller: &Caller,
        model: &ModelEntry,
        mut request: InferRequest,
        arrived: Instant,
        passage: &mut Passage<'_>,
    ) -> Result<InferResponse, ServeError> {
        let _admitted = self.door.admit()?;
        let wanted = WantedOutputs::of(model, &mut request)?;
        let regions = self.regions.of(caller);
        let inputs = bind(model, request.inputs, &regions)?;
        let is_long = inputs.shared_bytes() > LONG_BYTES;
        let BoundInputs { values, rows } = beside_if(is_long, move || inputs.read()).await?;
        let submission = Submission {
            model: model.key,
            inputs: values,
            rows: u32::try_from(rows).unwrap_or(u32::MAX),
            timeout: request.parameters.timeout,
            claim: claim(request.parameters.priority),
        };
        passage.asked(rows);
        let submitted = Instant::now();
        let mut answer = submit(&self.engine, submission, passage).await?;
        passage.answered(submitted, &answer);
        let values = std::mem::take(&mut answer.outputs);
        let outputs = wanted.select(model, values, &regions)?;
        let is_long = outputs.shared_bytes() > LONG_BYTES;
        let outputs = beside_if(is_long, move || outputs.write()).await?;
        model.statistics.succeeded(rows, arrived.elapsed(), &answer);
        Ok(InferResponse {
            model_name: model.name.clone(),
            model_version: model.version_text.clone(),
            id: request.id,
            outputs,
        })
    }
}

/// What a request's priority entitles it to: 1 is the highest, and 0 says nothing.
fn claim(priority: u64) -> Claim {
    match priority {
        0 | 1 => Claim::Promised,
        _ => Claim::BestEffort,
    }
}

/// Waits for the engine; where the future is dropped, what has not begun is not run.
async fn submit(
    engine: &Engine,
    submission: Submission,
    passage: &Passage<'_>,
) -> Result<Answer, InferError> {
    let (answer, answered) = oneshot::channel();
    let reply = Box::new(move |outcome| {
        // Whoever has given up does not wait for it.
        let _ = answer.send(outcome);
    });
    let submitted = Instant::now();
    let ticket = engine.submit(submission, reply);
    let allowed = ticket.allowed();
    let wanted = Wanted(Some(ticket));
    let outcome = answered.await.unwrap_or(Err(InferError::Stopped));
    if let Some(allowed) = allowed {
        passage.judged(outcome.is_ok() && submitted.elapsed() <= allowed);
    }
    wanted.answered();
    outcome
}

/// An answer that somebody waits for.
struct Wanted(Option<Ticket>);

impl Wanted {
    fn answered(mut self) {
        self.0 = None;
    }
}

impl Drop for Wanted {
    fn drop(&mut self) {
        if let Some(ticket) = &self.0 {
            ticket.cancel();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_priority_below_the_highest_gives_the_objective_up() {
        let claims = [0, 1, 2, u64::MAX].map(claim);
        let (promised, best_effort) = (Claim::Promised, Claim::BestEffort);
        assert_eq!(claims, [promised, promised, best_effort, best_effort]);
    }
}
