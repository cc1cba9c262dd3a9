//! The body of a request, read whole: not past its limit, and not forever.

use std::future::poll_fn;
use std::pin::Pin;

use bytes::{Bytes, BytesMut};
use http_body::Body;
use hyper::body::Incoming;

use crate::error::ServeError;
use crate::limits::Limits;

/// What is set aside for a body of a stated length before any of it has come.
const MAX_RESERVED_BYTES: usize = 1 << 20;

/// Reads a body.
pub(crate) async fn read(mut body: Incoming, limits: &Limits) -> Result<Bytes, ServeError> {
    let too_large = || ServeError::BodyTooLarge { limit_bytes: limits.body_bytes };
    let stated = body.size_hint().lower();
    if stated > limits.body_bytes as u64 {
        return Err(too_large());
    }
    let whole = async {
        // A small body is one piece, which is handed on as it is.
        let Some(first) = next(&mut body).await? else { return Ok(Bytes::new()) };
        if body.is_end_stream() {
            return if first.len() > limits.body_bytes { Err(too_large()) } else { Ok(first) };
        }
        let mut all = BytesMut::with_capacity((stated as usize).min(MAX_RESERVED_BYTES));
        all.extend_from_slice(&first);
        while let Some(piece) = next(&mut body).await? {
            if all.len() + piece.len() > limits.body_bytes {
                return Err(too_large());
            }
            all.extend_from_slice(&piece);
        }
        Ok(all.freeze())
    };
    let seconds = limits.body_arrival.as_secs();
    tokio::time::timeout(limits.body_arrival, whole)
        .await
        .unwrap_or(Err(ServeError::BodyTooSlow { seconds }))
}

/// The next piece; trailers are passed over.
async fn next(body: &mut Incoming) -> Result<Option<Bytes>, ServeError> {
    loop {
        match poll_fn(|context| Pin::new(&mut *body).poll_frame(context)).await {
            None => return Ok(None),
            Some(Err(_)) => return Err(ServeError::BodyBroken),
            Some(Ok(frame)) => {
                if let Ok(data) = frame.into_data() {
                    return Ok(Some(data));
                }
            }
        }
    }
}
