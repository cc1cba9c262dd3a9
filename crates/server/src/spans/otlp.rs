//! Spans as the JSON of the OpenTelemetry protocol.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use super::ids::Ids;
use super::request::RequestSpan;

/// What the protocol calls spans of servers, and those inside a program.
const KIND_INTERNAL: u8 = 1;
const KIND_SERVER: u8 = 2;

/// What the protocol calls success and failure.
const STATUS_OK: u8 = 1;
const STATUS_ERROR: u8 = 2;

/// A document with all these spans.
pub(super) fn document(requests: &[RequestSpan], ids: &Ids) -> String {
    let spans: Vec<Value> = requests.iter().flat_map(|request| spans(request, ids)).collect();
    let version = env!("CARGO_PKG_VERSION");
    let resource = [text("service.name", "weft"), text("service.version", version)];
    json!({
        "resourceSpans": [{
            "resource": { "attributes": resource },
            "scopeSpans": [{ "scope": { "name": "weft", "version": version }, "spans": spans }],
        }],
    })
    .to_string()
}

/// A request's own span, and those of the engine's parts of it.
fn spans(request: &RequestSpan, ids: &Ids) -> Vec<Value> {
    let trace = request.parent.map_or_else(|| ids.trace(), |parent| parent.trace);
    let trace = format!("{trace:032x}");
    let own = format!("{:016x}", ids.span());
    let status = if request.is_error { STATUS_ERROR } else { STATUS_OK };
    let mut whole = json!({
        "traceId": trace, "spanId": own, "kind": KIND_SERVER,
        "name": format!("infer {}", request.model),
        "startTimeUnixNano": nanos(request.began),
        "endTimeUnixNano": nanos(request.began + request.took),
        "attributes": [text("weft.model", &request.model), text("weft.outcome", request.outcome)],
        "status": { "code": status },
    });
    if let Some(parent) = request.parent {
        whole["parentSpanId"] = json!(format!("{:016x}", parent.span));
    }
    let Some((before, stages)) = request.stages else { return vec![whole] };
    let rows =
        json!({ "key": "weft.batch_rows", "value": { "intValue": stages.batch.to_string() } });
    let part = |name: &str, from: Duration, took: Duration, attributes: Vec<Value>| {
        json!({
            "traceId": trace, "spanId": format!("{:016x}", ids.span()), "parentSpanId": own,
            "kind": KIND_INTERNAL, "name": name,
            "startTimeUnixNano": nanos(request.began + from),
            "endTimeUnixNano": nanos(request.began + from + took),
            "attributes": attributes,
        })
    };
    let queue = part("queue", before, stages.queued, Vec::new());
    let execution = part("execution", before + stages.queued, stages.ran, vec![rows]);
    vec![whole, queue, execution]
}

fn text(key: &str, value: &str) -> Value {
    json!({ "key": key, "value": { "stringValue": value } })
}

/// Nanoseconds since 1970: whole numbers of 64 bits are texts in the JSON of protocol buffers.
fn nanos(at: SystemTime) -> String {
    at.duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos().to_string()
}
