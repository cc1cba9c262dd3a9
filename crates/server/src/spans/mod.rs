//! Spans of requests, sent to a collector of OpenTelemetry where one is configured.

mod exporter;
mod ids;
mod otlp;
mod request;
mod trace_parent;

pub use exporter::ExportError;
pub(crate) use exporter::SpanExporter;
pub(crate) use request::{PendingSpan, Stages};
pub(crate) use trace_parent::TraceParent;
