//! One unary call.

use bytes::{BufMut, Bytes, BytesMut};
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http2::SendRequest;
use hyper::{Request, Response, body::Incoming};
use prost::Message;

use super::status::Status;
use crate::reply::Reply;
use crate::target::Target;

/// The longest answer that is read.
const MAX_ANSWER_BYTES: usize = 256 << 20;
/// Before every message stand a byte, which is 0 where it is not compressed, and its length.
const PREFIX_BYTES: usize = 5;
const SERVICE: &str = "/inference.GRPCInferenceService/";

/// Why there is no answer to a call.
#[derive(Debug, thiserror::Error)]
pub(super) enum CallError {
    #[error("a broken connection: {0}")]
    Connection(String),
    #[error("{}", .0.clone().into_rejection())]
    Status(Status),
    #[error("an answer that is not gRPC: {0}")]
    Malformed(String),
}

impl CallError {
    pub(super) fn into_reply(self) -> Reply<'static> {
        match self {
            Self::Connection(problem) => Reply::failed("a broken connection", problem),
            Self::Status(status) => status.into_reply(),
            Self::Malformed(problem) => Reply::failed("an answer that is not gRPC", problem),
        }
    }
}

/// A message as it is sent.
pub(super) fn framed(message: &impl Message) -> Bytes {
    let length = message.encoded_len();
    let mut framed = BytesMut::with_capacity(PREFIX_BYTES + length);
    framed.put_u8(0);
    framed.put_u32(u32::try_from(length).unwrap_or(u32::MAX));
    message.encode(&mut framed).expect("there is room for the message");
    framed.freeze()
}

/// What all calls of a method begin with.
pub(super) fn head(target: &Target, method: &str) -> Result<Request<()>, CallError> {
    let mut head = Request::post(format!("http://{}{SERVICE}{method}", target.address))
        .header("content-type", "application/grpc")
        .header("te", "trailers");
    if let Some(key) = &target.api_key {
        head = head.header("authorization", format!("Bearer {key}"));
    }
    head.body(()).map_err(|error| CallError::Malformed(error.to_string()))
}

/// Calls a method with a message that is framed, and gives the message of the answer.
pub(super) async fn unary(
    sender: &mut SendRequest<Full<Bytes>>,
    head: Request<()>,
    framed: Bytes,
) -> Result<Bytes, CallError> {
    let request = head.map(|()| Full::new(framed));
    let broken = |error: hyper::Error| CallError::Connection(error.to_string());
    sender.ready().await.map_err(broken)?;
    message_of(sender.send_request(request).await.map_err(broken)?).await
}

/// The message of an answer that has one.
async fn message_of(answer: Response<Incoming>) -> Result<Bytes, CallError> {
    if let Some(status) = Status::of(answer.headers()) {
        return Err(CallError::Status(status));
    }
    if answer.status() != 200 {
        return Err(CallError::Malformed(format!("status {} of HTTP", answer.status())));
    }
    let body = Limited::new(answer.into_body(), MAX_ANSWER_BYTES).collect().await;
    let body = body.map_err(|error| CallError::Connection(error.to_string()))?;
    if let Some(status) = body.trailers().and_then(Status::of) {
        return Err(CallError::Status(status));
    }
    let mut body = body.to_bytes();
    let is_one_message = match body.first_chunk::<PREFIX_BYTES>() {
        Some(&[0, length @ ..]) => {
            usize::try_from(u32::from_be_bytes(length)) == Ok(body.len() - PREFIX_BYTES)
        }
        _ => false,
    };
    match is_one_message {
        true => Ok(body.split_off(PREFIX_BYTES)),
        false => Err(CallError::Malformed("it is not one message without compression".into())),
    }
}
