//! The endpoint of inference.

use std::time::Instant;

use ::http::header::CONTENT_ENCODING;
use ::http::{HeaderMap, HeaderName, HeaderValue, Response};
use bytes::Bytes;
use hyper::body::Incoming;
use weft_protocol::json::{EncodedBody, decode_request, encode_response};
use weft_protocol::{InferRequest, InferResponse, ProtocolError};

use super::body;
use super::compression::{self, Encoding};
use super::reply::{JSON, written};
use super::routes::Matched;
use crate::answer::AnswerBody;
use crate::beside::{LONG_BYTES, beside_if};
use crate::error::ServeError;
use crate::inference::Serving;
use crate::passage::Passage;
use crate::spans::TraceParent;
use crate::tenants::Caller;

/// Where the JSON of a body ends and the bytes of tensors begin.
const HEADER_LENGTH: HeaderName = HeaderName::from_static("inference-header-content-length");

const OCTETS: HeaderValue = HeaderValue::from_static("application/octet-stream");

/// Reads a request, has it answered and writes the answer.
pub(super) async fn answer(
    serving: &Serving,
    caller: &Caller,
    matched: &Matched<'_>,
    headers: &HeaderMap,
    body: Incoming,
) -> Result<Response<AnswerBody>, ServeError> {
    let parent = headers.get(TraceParent::HEADER);
    let parent = parent.and_then(|parent| TraceParent::parse(parent.as_bytes()));
    let mut passage = serving.passage(parent);
    let outcome = pass(serving, caller, matched, headers, body, &mut passage).await;
    passage.end(outcome.as_ref().err());
    outcome
}

async fn pass(
    serving: &Serving,
    caller: &Caller,
    matched: &Matched<'_>,
    headers: &HeaderMap,
    body: Incoming,
    passage: &mut Passage<'_>,
) -> Result<Response<AnswerBody>, ServeError> {
    if caller.sees(&matched.name) {
        passage.names(&matched.name);
    }
    // Counted before the body is read, so that what is over a limit costs no more than its head.
    let _permit = caller.admit(Instant::now())?;
    let model = serving.model(caller, &matched.name, &matched.version).await?;
    passage.found(&model);
    let form = Form {
        header_length: header_length(headers)?,
        encoding: compression::of_request(headers)?,
        limit_bytes: serving.limits.body_bytes,
    };
    let body = body::read(body, &serving.limits).await?;
    let is_long = body.len() > LONG_BYTES || form.encoding.is_some();
    let request = beside_if(is_long, move || form.decode(body)).await?;
    let response = serving.infer(caller, &model, request, passage).await?;
    let length = response.outputs.iter().map(|output| output.tensor.size_bytes()).sum();
    let encoding = compression::of_answer(headers, length);
    let is_long = length > LONG_BYTES || encoding.is_some();
    let (body, encoding) = beside_if(is_long, move || encode(&response, encoding)).await?;
    Ok(respond(body, encoding))
}

/// How the body of a request is written.
struct Form {
    header_length: Option<usize>,
    encoding: Option<Encoding>,
    limit_bytes: usize,
}

impl Form {
    fn decode(&self, body: Bytes) -> Result<InferRequest, ServeError> {
        let body = match self.encoding {
            Some(encoding) => encoding.decompress(&body, self.limit_bytes)?,
            None => body,
        };
        Ok(decode_request(&body, self.header_length)?)
    }
}

/// An answer as it is sent, and how it was compressed after all.
fn encode(
    response: &InferResponse,
    encoding: Option<Encoding>,
) -> Result<(EncodedBody, Option<Encoding>), ServeError> {
    let mut encoded = encode_response(response)?;
    let compressed = encoding.and_then(|encoding| encoding.compress(&encoded.body).ok());
    let encoding = encoding.filter(|_| compressed.is_some());
    encoded.body = compressed.unwrap_or(encoded.body);
    Ok((encoded, encoding))
}

fn respond(encoded: EncodedBody, encoding: Option<Encoding>) -> Response<AnswerBody> {
    let content_type = if encoded.header_length.is_some() { OCTETS } else { JSON };
    let mut response = written(content_type, encoded.body);
    let headers = response.headers_mut();
    if let Some(length) = encoded.header_length {
        headers.insert(HEADER_LENGTH, HeaderValue::from(length));
    }
    if let Some(encoding) = encoding {
        headers.insert(CONTENT_ENCODING, encoding.name());
    }
    response
}

fn header_length(headers: &HeaderMap) -> Result<Option<usize>, ServeError> {
    let Some(value) = headers.get(HEADER_LENGTH) else { return Ok(None) };
    let length = value.to_str().ok().and_then(|text| text.trim().parse().ok());
    let malformed = || ProtocolError::Malformed(format!("{HEADER_LENGTH} is no length"));
    length.map(Some).ok_or_else(|| malformed().into())
}
