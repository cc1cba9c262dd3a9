//! The body of a call, which has a limited time to arrive.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use tokio::time::{Sleep, sleep};
use tonic::Status;

/// A body that fails where it has not arrived in time.
pub(crate) struct ArrivingBody {
    body: Incoming,
    /// `None` where the client may take as long as it likes.
    allowed: Option<Duration>,
    /// Set once something had to be waited for.
    alarm: Option<Pin<Box<Sleep>>>,
}

impl ArrivingBody {
    pub(crate) fn new(body: Incoming, allowed: Option<Duration>) -> Self {
        Self { body, allowed, alarm: None }
    }
}

impl Body for ArrivingBody {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let Self { body, allowed, alarm } = self.get_mut();
        match (Pin::new(body).poll_frame(context), allowed) {
            (Poll::Ready(frame), _) => Poll::Ready(
                frame.map(|frame| frame.map_err(|error| Status::from_error(error.into()))),
            ),
            (Poll::Pending, None) => Poll::Pending,
            (Poll::Pending, Some(allowed)) => {
                let alarm = alarm.get_or_insert_with(|| Box::pin(sleep(*allowed)));
                alarm.as_mut().poll(context).map(|()| {
                    let seconds = allowed.as_secs();
                    Some(Err(crate::ServeError::BodyTooSlow { seconds }.into()))
                })
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
