//! The span of one request, and the parts of it that the engine had.

use std::time::{Duration, Instant, SystemTime};

use super::exporter::SpanExporter;
use super::trace_parent::TraceParent;

/// When a request reached the engine, how long it waited there, and how long its batch ran.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stages {
    pub(crate) submitted: Instant,
    pub(crate) queued: Duration,
    pub(crate) ran: Duration,
    pub(crate) batch: u32,
}

/// The span of a request that has not ended.
pub(crate) struct PendingSpan<'a> {
    exporter: &'a SpanExporter,
    parent: Option<TraceParent>,
    began: SystemTime,
    /// Empty where there is none of the name that was asked for.
    pub(crate) model: String,
    pub(crate) stages: Option<Stages>,
}

/// The span of a request that has ended.
#[derive(Clone, Debug)]
pub(super) struct RequestSpan {
    pub(super) parent: Option<TraceParent>,
    pub(super) model: String,
    /// ok, cancelled, or the reason why there was no answer.
    pub(super) outcome: &'static str,
    pub(super) is_error: bool,
    pub(super) began: SystemTime,
    pub(super) took: Duration,
    /// From the beginning until it reached the engine, and what the engine did.
    pub(super) stages: Option<(Duration, Stages)>,
}

impl<'a> PendingSpan<'a> {
    /// Begins a span, unless the client said that its trace is not recorded.
    pub(crate) fn begin(exporter: &'a SpanExporter, parent: Option<TraceParent>) -> Option<Self> {
        let is_wanted = parent.is_none_or(|parent| parent.is_sampled);
        let (began, model) = (SystemTime::now(), String::new());
        is_wanted.then_some(Self { exporter, parent, began, model, stages: None })
    }

    /// The request has ended, so long after it arrived.
    pub(crate) fn end(
        self,
        outcome: &'static str,
        is_error: bool,
        arrived: Instant,
        took: Duration,
    ) {
        let before = |stages: &Stages| stages.submitted.saturating_duration_since(arrived);
        self.exporter.export(RequestSpan {
            parent: self.parent,
            model: self.model,
            outcome,
            is_error,
            began: self.began,
            took,
            stages: self.stages.map(|stages| (before(&stages), stages)),
        });
    }
}
