//! The passage of one request for inference through the server: counted once, whatever comes of it.

use std::sync::Arc;
use std::time::Instant;

use http::StatusCode;
use weft_engine::Answer;

use crate::error::ServeError;
use crate::metrics::{Metrics, ModelMetrics, Outcome, UNKNOWN};
use crate::models::ModelEntry;
use crate::refusal::Refusal;
use crate::spans::{PendingSpan, Stages};

/// A request that is being answered. Where it is dropped before it has ended, its client has hung up.
pub(crate) struct Passage<'a> {
    metrics: &'a Metrics,
    arrived: Instant,
    model: Option<Arc<ModelMetrics>>,
    span: Option<PendingSpan<'a>>,
    has_ended: bool,
}

impl<'a> Passage<'a> {
    /// A request has come; its span is told to whoever records spans.
    pub(crate) fn begin(metrics: &'a Metrics, span: Option<PendingSpan<'a>>) -> Self {
        Self { metrics, arrived: Instant::now(), model: None, span, has_ended: false }
    }

    /// A model is asked for that is there for the caller, if it is there at all.
    pub(crate) fn names(&mut self, model: &str) {
        self.model = self.metrics.find(model);
        if self.model.is_some()
            && let Some(span) = &mut self.span
        {
            span.model = model.into();
        }
    }

    /// The model that is asked for was found.
    pub(crate) fn found(&mut self, model: &ModelEntry) {
        if self.model.is_none() {
            self.names(&model.name);
        }
    }

    /// The engine is asked for so many entries of a batch.
    pub(crate) fn asked(&self, rows: usize) {
        if let Some(model) = &self.model {
            model.asked(rows);
        }
    }

    /// The engine has answered what it was asked at an instant.
    pub(crate) fn answered(&mut self, submitted: Instant, answer: &Answer) {
        if let Some(model) = &self.model {
            model.queued(answer.queued);
        }
        if let Some(span) = &mut self.span {
            let &Answer { queued, ran, batch, .. } = answer;
            span.stages = Some(Stages { submitted, queued, ran, batch });
        }
    }

    /// The engine is done with a request that had a deadline.
    pub(crate) fn judged(&self, is_in_time: bool) {
        if let Some(model) = &self.model {
            model.judged(is_in_time);
        }
    }

    /// It ends with an answer, or with an error that the client is told.
    pub(crate) fn end(mut self, error: Option<&ServeError>) {
        match error.map(Refusal::from) {
            None => self.count(Outcome::Ok, None),
            Some(refusal) if refusal.status == StatusCode::INTERNAL_SERVER_ERROR => {
                self.count(Outcome::Failed, Some(refusal.reason));
            }
            Some(refusal) => {
                self.counted().refused(refusal.reason);
                self.count(Outcome::Refused, Some(refusal.reason));
            }
        }
    }

    fn count(&mut self, outcome: Outcome, reason: Option<&'static str>) {
        self.has_ended = true;
        let took = self.arrived.elapsed();
        self.counted().ended(outcome, took);
        if let Some(span) = self.span.take() {
            span.end(reason.unwrap_or(outcome.name()), outcome != Outcome::Ok, self.arrived, took);
        }
    }

    fn counted(&mut self) -> &ModelMetrics {
        self.model.get_or_insert_with(|| self.metrics.of(UNKNOWN))
    }
}

impl Drop for Passage<'_> {
    fn drop(&mut self) {
        if !self.has_ended {
            self.count(Outcome::Cancelled, None);
        }
    }
}
