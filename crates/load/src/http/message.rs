//! Requests as bytes, and what answers come to.

use std::borrow::Cow;

use bytes::Bytes;
use weft_protocol::json;
use weft_protocol::metadata::ErrorBody;

use super::connection::Answer;
use crate::reply::{Rejection, Reply};
use crate::target::Target;

/// A request without a body.
pub(super) fn get(target: &Target, path: &str) -> Bytes {
    head(target, "GET", path, "").into()
}

/// A request with a body, of which so much is JSON where not all of it is.
pub(super) fn post(target: &Target, path: &str, json_bytes: Option<usize>, body: &[u8]) -> Bytes {
    let content = match json_bytes {
        Some(json_bytes) => format!(
            "Content-Type: application/octet-stream\r\nInference-Header-Content-Length: {json_bytes}\r\n"
        ),
        None => "Content-Type: application/json\r\n".to_string(),
    };
    let length = format!("{content}Content-Length: {}\r\n", body.len());
    let head = head(target, "POST", path, &length);
    [head.as_bytes(), body].concat().into()
}

fn head(target: &Target, method: &str, path: &str, content: &str) -> String {
    let Target { address, prefix, api_key, .. } = target;
    let key = match api_key {
        Some(key) => format!("Authorization: Bearer {key}\r\n"),
        None => String::new(),
    };
    format!("{method} {prefix}{path} HTTP/1.1\r\nHost: {address}\r\n{key}{content}\r\n")
}

/// A name as a part of a path.
pub(super) fn escaped(name: &str) -> String {
    let escape = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
            char::from(byte).to_string()
        }
        _ => format!("%{byte:02X}"),
    };
    name.bytes().map(escape).collect()
}

/// What an answer to a request for inference comes to.
pub(super) fn reply_of(answer: Answer<'_>) -> Reply<'_> {
    match (answer.status, answer.json_bytes) {
        (200, Some(json_bytes)) => match answer.body.get(json_bytes..) {
            Some(outputs) => Reply::Answered(Cow::Borrowed(outputs)),
            None => Reply::failed("an answer whose JSON is longer than itself", ""),
        },
        (200, None) => match outputs_in_json(answer.body) {
            Ok(outputs) => Reply::Answered(Cow::Owned(outputs)),
            Err(problem) => Reply::failed("an answer that is no answer", problem),
        },
        (429 | 503 | 504, _) => Reply::Refused(rejection_of(&answer)),
        _ => Reply::Failed(rejection_of(&answer)),
    }
}

/// The status, and what the server says with it.
pub(super) fn rejection_of(answer: &Answer<'_>) -> Rejection {
    let name = match answer.status {
        400 => " Bad Request",
        401 => " Unauthorized",
        403 => " Forbidden",
        404 => " Not Found",
        413 => " Content Too Large",
        429 => " Too Many Requests",
        500 => " Internal Server Error",
        503 => " Service Unavailable",
        504 => " Gateway Timeout",
        _ => "",
    };
    let message = match serde_json::from_slice::<ErrorBody>(answer.body) {
        Ok(said) => said.error,
        Err(_) => String::from_utf8_lossy(answer.body).trim().to_string(),
    };
    Rejection { reason: format!("{}{name}", answer.status), message }
}

/// The elements of all outputs of an answer without bytes.
fn outputs_in_json(body: &[u8]) -> Result<Vec<u8>, String> {
    let answer = json::decode_response(&Bytes::copy_from_slice(body), None);
    let mut outputs = Vec::new();
    for output in answer.map_err(|error| error.to_string())?.outputs {
        let bytes = weft_protocol::raw_bytes(&output.tensor).map_err(|error| error.to_string())?;
        outputs.extend_from_slice(&bytes);
    }
    Ok(outputs)
}
