//! Answers in HTTP.

use ::http::header::{ALLOW, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use ::http::{HeaderValue, Response, StatusCode};
use bytes::Bytes;
use serde::Serialize;
use serde_json::json as made;

use crate::answer::AnswerBody;
use crate::error::ServeError;
use crate::refusal::{Refusal, seconds};

pub(super) const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// A status without a body.
pub(super) fn empty(status: StatusCode) -> Response<AnswerBody> {
    let mut answer = Response::new(AnswerBody::Whole(None));
    *answer.status_mut() = status;
    answer
}

/// A JSON document.
pub(super) fn json(document: &impl Serialize) -> Response<AnswerBody> {
    // Documents are made of texts, numbers and lists, which can always be written.
    written(JSON, serde_json::to_vec(document).unwrap_or_default().into())
}

/// A body of some type.
pub(super) fn written(content_type: HeaderValue, body: Bytes) -> Response<AnswerBody> {
    let mut answer = Response::new(AnswerBody::whole(body));
    answer.headers_mut().insert(CONTENT_TYPE, content_type);
    answer
}

/// An error, with what the client needs to know of it.
pub(super) fn refused(error: &ServeError) -> Response<AnswerBody> {
    let refusal = Refusal::from(error);
    let mut document = made!({ "error": refusal.message, "reason": refusal.reason });
    if let Some(predicted) = refusal.predicted {
        document["predicted_latency_ms"] = made!(predicted.as_secs_f64() * 1e3);
    }
    let mut answer = json(&document);
    *answer.status_mut() = refusal.status;
    if let Some(wait) = refusal.retry_after {
        answer.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds(wait)));
    }
    if let Some(challenge) = refusal.challenge {
        answer.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static(challenge));
    }
    if let ServeError::WrongMethod { allowed, .. } = error {
        answer.headers_mut().insert(ALLOW, HeaderValue::from_static(allowed));
    }
    answer
}
