//! Requests as bytes, and what answers come to.

use std::borrow::Cow;

use bytes::Bytes;
use serde::Deserialize;
use weft_protocol::json::{self, TensorForm};
use weft_protocol::{InferRequest, ProtocolError};

use super::connection::Answer;
use crate::output_size::output_size;
use crate::reply::{OutputPlace, Outputs, Rejection, Reply};
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

/// A request for inference.
pub(crate) fn encode(
    target: &Target,
    form: TensorForm,
    model: &str,
    mut request: InferRequest,
) -> Result<Bytes, ProtocolError> {
    request.parameters.binary_outputs = form == TensorForm::Binary;
    let body = json::encode_request(&request, form)?;
    let path = format!("/v2/models/{}/infer", escaped(model));
    Ok(post(target, &path, body.header_length, &body.body))
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

/// What an answer to a request for inference comes to, whose outputs are wanted in a place.
pub(super) fn reply_of(answer: Answer<'_>, outputs: OutputPlace) -> Reply<'_> {
    let no_answer = |problem: String| Reply::failed("an answer that is no answer", problem);
    match (answer.status, outputs, answer.json_bytes) {
        (200, OutputPlace::SharedMemory, _) => match shared_bytes(answer.body) {
            Ok(size_bytes) => Reply::Answered(Outputs::Shared(size_bytes)),
            Err(problem) => no_answer(problem),
        },
        (200, OutputPlace::Answer, Some(json_bytes)) => match answer.body.get(json_bytes..) {
            Some(outputs) => Reply::Answered(Outputs::Carried(Cow::Borrowed(outputs))),
            None => Reply::failed("an answer whose JSON is longer than itself", ""),
        },
        (200, OutputPlace::Answer, None) => match outputs_in_json(answer.body) {
            Ok(outputs) => Reply::Answered(Outputs::Carried(Cow::Owned(outputs))),
            Err(problem) => no_answer(problem),
        },
        (429 | 503 | 504, ..) => Reply::Refused(rejection_of(&answer)),
        _ => Reply::Failed(rejection_of(&answer)),
    }
}

/// What servers say when there is no answer.
#[derive(Deserialize)]
struct Said {
    error: String,
    /// Of Weft: a word for programs.
    reason: Option<String>,
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
    let status = format!("{}{name}", answer.status);
    match serde_json::from_slice::<Said>(answer.body) {
        Ok(Said { error, reason: Some(reason) }) => {
            Rejection { reason: format!("{status} ({reason})"), message: error }
        }
        Ok(Said { error, reason: None }) => Rejection { reason: status, message: error },
        Err(_) => {
            let text = String::from_utf8_lossy(answer.body).trim().to_string();
            Rejection { reason: status, message: text }
        }
    }
}

/// An answer whose outputs are elsewhere.
#[derive(Deserialize)]
struct Placed<'a> {
    #[serde(borrow)]
    outputs: Vec<PlacedOutput<'a>>,
}

#[derive(Deserialize)]
struct PlacedOutput<'a> {
    #[serde(borrow)]
    datatype: Cow<'a, str>,
    shape: Vec<i64>,
}

/// How much all outputs of an answer take that are in shared memory.
fn shared_bytes(body: &[u8]) -> Result<usize, String> {
    let placed: Placed<'_> = serde_json::from_slice(body).map_err(|error| error.to_string())?;
    placed.outputs.iter().map(|output| output_size(&output.datatype, &output.shape)).sum()
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

#[cfg(test)]
mod tests {
    use super::*;

    fn reply(status: u16, json_bytes: Option<usize>, body: &[u8]) -> Reply<'_> {
        reply_of(Answer { status, body, json_bytes }, OutputPlace::Answer)
    }

    fn carried(outputs: &[u8]) -> Reply<'_> {
        Reply::Answered(Outputs::Carried(outputs.into()))
    }

    #[test]
    fn outputs_in_shared_memory_have_the_size_that_the_answer_states() {
        let reply = |body: &'static str| {
            let answer = Answer { status: 200, body: body.as_bytes(), json_bytes: None };
            reply_of(answer, OutputPlace::SharedMemory)
        };
        let two = r#"{"model_name":"m","outputs":[{"name":"y","datatype":"INT32","shape":[2]},
            {"name":"z","datatype":"FP64","shape":[1,3]}]}"#;
        assert_eq!(reply(two), Reply::Answered(Outputs::Shared(32)));
        assert!(matches!(
            reply(r#"{"outputs":[{"datatype":"BYTES","shape":[1]}]}"#),
            Reply::Failed(_)
        ));
        assert!(matches!(reply("[]"), Reply::Failed(_)));
    }

    #[test]
    fn outputs_are_what_follows_the_json() {
        assert_eq!(reply(200, Some(2), b"{}1234"), carried(b"1234"));
        assert!(matches!(reply(200, Some(9), b"{}1234"), Reply::Failed(_)));
        let json = br#"{"model_name":"m","outputs":[{"name":"y","datatype":"INT32","shape":[2],"data":[1,256]}]}"#;
        assert_eq!(reply(200, None, json), carried(b"\x01\0\0\0\0\x01\0\0"));
        assert!(matches!(reply(200, None, b"[]"), Reply::Failed(_)));
    }

    #[test]
    fn refusals_are_told_in_the_words_of_the_server() {
        for (status, body, is_refusal, reason, message) in [
            (
                429,
                r#"{"error":"too late","reason":"late"}"#,
                true,
                "429 Too Many Requests (late)",
                "too late",
            ),
            (504, r#"{"error":"gone"}"#, true, "504 Gateway Timeout", "gone"),
            (503, "busy\n", true, "503 Service Unavailable", "busy"),
            (400, r#"{"error":3}"#, false, "400 Bad Request", r#"{"error":3}"#),
            (418, "", false, "418", ""),
        ] {
            let reply = reply(status, None, body.as_bytes());
            assert_eq!(matches!(reply, Reply::Refused(_)), is_refusal, "{status}");
            let (Reply::Refused(why) | Reply::Failed(why)) = reply else { panic!("{reply:?}") };
            assert_eq!((why.reason.as_str(), why.message.as_str()), (reason, message));
        }
    }

    #[test]
    fn requests_are_what_a_server_reads() {
        let mut target = Target::parse("http://host:80/a", None).unwrap();
        target.api_key = Some("secret".into());
        let request =
            post(&target, &format!("/v2/models/{}/infer", escaped("a/b c")), Some(2), b"{}xy");
        let text = std::str::from_utf8(&request).unwrap();
        assert_eq!(
            text,
            "POST /a/v2/models/a%2Fb%20c/infer HTTP/1.1\r\nHost: host:80\r\nAuthorization: Bearer secret\r\n\
             Content-Type: application/octet-stream\r\nInference-Header-Content-Length: 2\r\nContent-Length: 4\r\n\r\n{}xy"
        );
        target.api_key = None;
        assert_eq!(&get(&target, "/v2")[..], b"GET /a/v2 HTTP/1.1\r\nHost: host:80\r\n\r\n");
    }
}
