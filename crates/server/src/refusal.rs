//! How an error is told to a client: one mapping for HTTP and gRPC.

use std::time::Duration;

use http::StatusCode;
use tonic::Code;
use tonic::metadata::MetadataValue;
use weft_device::DeviceError;
use weft_engine::InferError;
use weft_protocol::ProtocolError;
use weft_scheduler::{Refusal as Declined, Span};

use crate::error::ServeError;
use crate::shared_memory::RegionError;

/// What a client that was declined for want of time or room is told to wait, where nothing better is known.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// An error as a client is told it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Refusal {
    pub(crate) status: StatusCode,
    pub(crate) code: Code,
    /// A word for programs.
    pub(crate) reason: &'static str,
    /// A sentence for people.
    pub(crate) message: String,
    /// The latency that was predicted, where that is why.
    pub(crate) predicted: Option<Duration>,
    /// When it is worth to try again.
    pub(crate) retry_after: Option<Duration>,
    /// Which keys are taken, where the lack of one is why.
    pub(crate) challenge: Option<&'static str>,
}

impl From<&ServeError> for Refusal {
    fn from(error: &ServeError) -> Self {
        let (status, code, reason) = classified(error);
        let is_passing = matches!(
            status,
            StatusCode::TOO_MANY_REQUESTS
                | StatusCode::GATEWAY_TIMEOUT
                | StatusCode::SERVICE_UNAVAILABLE
        );
        let predicted = predicted(error);
        Self {
            status,
            code,
            reason,
            message: error.to_string(),
            predicted,
            retry_after: match error {
                ServeError::OverRate { wait, .. } => Some(*wait),
                _ => is_passing.then(|| predicted.unwrap_or_default().max(RETRY_AFTER)),
            },
            challenge: challenge(error),
        }
    }
}

impl From<ServeError> for tonic::Status {
    fn from(error: ServeError) -> Self {
        let refusal = Refusal::from(&error);
        let mut status = tonic::Status::new(refusal.code, refusal.message);
        if let Some(wait) = refusal.retry_after
            && let Ok(value) = seconds(wait).to_string().parse()
        {
            status.metadata_mut().insert("retry-after", value);
        }
        if let Some(challenge) = refusal.challenge {
            let challenge = MetadataValue::from_static(challenge);
            status.metadata_mut().insert("www-authenticate", challenge);
        }
        status
    }
}

/// Whole seconds, rounded up, as `Retry-After` wants them.
pub(crate) fn seconds(duration: Duration) -> u64 {
    duration.as_secs() + u64::from(duration.subsec_nanos() > 0)
}

fn classified(error: &ServeError) -> (StatusCode, Code, &'static str) {
    match error {
        ServeError::UnknownPath(_) => (StatusCode::NOT_FOUND, Code::Unimplemented, "unknown_path"),
        ServeError::WrongMethod { .. } => {
            (StatusCode::METHOD_NOT_ALLOWED, Code::Unimplemented, "wrong_method")
        }
        ServeError::UnknownModel(_) => (StatusCode::NOT_FOUND, Code::NotFound, "unknown_model"),
        ServeError::UnknownVersion { .. } => {
            (StatusCode::NOT_FOUND, Code::NotFound, "unknown_version")
        }
        ServeError::Asleep(_) => (StatusCode::SERVICE_UNAVAILABLE, Code::Unavailable, "asleep"),
        ServeError::Unavailable { .. } => {
            (StatusCode::SERVICE_UNAVAILABLE, Code::Unavailable, "not_served")
        }
        ServeError::Protocol(ProtocolError::Unsupported(_)) => {
            (StatusCode::NOT_IMPLEMENTED, Code::Unimplemented, "unsupported")
        }
        ServeError::Protocol(_) => {
            (StatusCode::BAD_REQUEST, Code::InvalidArgument, "malformed_request")
        }
        ServeError::Mismatch { .. } => {
            (StatusCode::BAD_REQUEST, Code::InvalidArgument, "wrong_tensors")
        }
        ServeError::Region(RegionError::Unknown(_)) => {
            (StatusCode::NOT_FOUND, Code::NotFound, "unknown_region")
        }
        ServeError::Region(RegionError::Taken(_)) => {
            (StatusCode::CONFLICT, Code::AlreadyExists, "region_taken")
        }
        ServeError::Region(RegionError::TooMany { .. }) => {
            (StatusCode::TOO_MANY_REQUESTS, Code::ResourceExhausted, "too_many_regions")
        }
        ServeError::Region(_) => (StatusCode::BAD_REQUEST, Code::InvalidArgument, "wrong_region"),
        ServeError::Engine(error) => of_engine(error),
        ServeError::UnknownEncoding(_) => {
            (StatusCode::UNSUPPORTED_MEDIA_TYPE, Code::Unimplemented, "unknown_encoding")
        }
        ServeError::BodyTooLarge { .. } => {
            (StatusCode::PAYLOAD_TOO_LARGE, Code::ResourceExhausted, "body_too_large")
        }
        ServeError::BodyTooSlow { .. } => {
            (StatusCode::REQUEST_TIMEOUT, Code::Cancelled, "body_too_slow")
        }
        ServeError::BodyBroken => (StatusCode::BAD_REQUEST, Code::Cancelled, "body_broken"),
        ServeError::TooManyRequests { .. } => {
            (StatusCode::TOO_MANY_REQUESTS, Code::ResourceExhausted, "too_many_requests")
        }
        ServeError::KeyMissing => (StatusCode::UNAUTHORIZED, Code::Unauthenticated, "key_missing"),
        ServeError::KeyUnknown => (StatusCode::UNAUTHORIZED, Code::Unauthenticated, "key_unknown"),
        ServeError::NotAdministrator => {
            (StatusCode::FORBIDDEN, Code::PermissionDenied, "not_administrator")
        }
        ServeError::OverRate { .. } => {
            (StatusCode::TOO_MANY_REQUESTS, Code::ResourceExhausted, "over_rate")
        }
        ServeError::OverConcurrency { .. } => {
            (StatusCode::TOO_MANY_REQUESTS, Code::ResourceExhausted, "over_concurrency")
        }
        ServeError::Stopping => (StatusCode::SERVICE_UNAVAILABLE, Code::Unavailable, "stopping"),
    }
}

fn of_engine(error: &InferError) -> (StatusCode, Code, &'static str) {
    match error {
        InferError::Refused(Declined::TooLate { .. }) => {
            (StatusCode::GATEWAY_TIMEOUT, Code::DeadlineExceeded, "too_late")
        }
        InferError::Refused(Declined::OverShare { .. }) => {
            (StatusCode::TOO_MANY_REQUESTS, Code::ResourceExhausted, "over_share")
        }
        InferError::Refused(Declined::QueueFull) => {
            (StatusCode::TOO_MANY_REQUESTS, Code::ResourceExhausted, "queue_full")
        }
        InferError::Refused(Declined::NotServed) => {
            (StatusCode::SERVICE_UNAVAILABLE, Code::Unavailable, "not_served")
        }
        InferError::Shed => (StatusCode::GATEWAY_TIMEOUT, Code::DeadlineExceeded, "shed"),
        InferError::NotServed => (StatusCode::SERVICE_UNAVAILABLE, Code::Unavailable, "not_served"),
        InferError::Device(error) if matches!(error.cause(), DeviceError::Input { .. }) => {
            (StatusCode::BAD_REQUEST, Code::InvalidArgument, "wrong_tensors")
        }
        InferError::Device(_) => {
            (StatusCode::INTERNAL_SERVER_ERROR, Code::Internal, "device_failed")
        }
        InferError::Stopped => (StatusCode::SERVICE_UNAVAILABLE, Code::Unavailable, "stopping"),
    }
}

fn challenge(error: &ServeError) -> Option<&'static str> {
    match error {
        ServeError::KeyMissing => Some(r#"Bearer realm="weft""#),
        ServeError::KeyUnknown => Some(r#"Bearer realm="weft", error="invalid_token""#),
        _ => None,
    }
}

fn predicted(error: &ServeError) -> Option<Duration> {
    let in_time = |span: &Span| Duration::from_nanos(span.nanos());
    match error {
        ServeError::Engine(InferError::Refused(
            Declined::TooLate { predicted } | Declined::OverShare { predicted },
        )) => Some(in_time(predicted)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_declined_says_when_to_come_back_and_what_was_predicted() {
        let predicted = Span::from_us(2_500_000.0);
        let late = ServeError::Engine(InferError::Refused(Declined::TooLate { predicted }));
        let refusal = Refusal::from(&late);
        assert_eq!(refusal.status, StatusCode::GATEWAY_TIMEOUT);
        assert_eq!(refusal.code, Code::DeadlineExceeded);
        assert_eq!(refusal.predicted, Some(Duration::from_millis(2500)));
        assert_eq!(refusal.retry_after.map(seconds), Some(3));
        let status = tonic::Status::from(late);
        assert_eq!(status.metadata().get("retry-after").unwrap(), "3");
    }

    #[test]
    fn the_sender_is_blamed_for_what_the_sender_did() {
        let wrong = DeviceError::Input { name: "x".into(), problem: "is odd".into() };
        let wrong = ServeError::Engine(InferError::Device(wrong.at("m", None)));
        assert_eq!(Refusal::from(&wrong).status, StatusCode::BAD_REQUEST);
        assert_eq!(Refusal::from(&wrong).retry_after, None);
        let broken = ServeError::Engine(InferError::Device(DeviceError::Failed("oh".into())));
        assert_eq!(Refusal::from(&broken).status, StatusCode::INTERNAL_SERVER_ERROR);
    }
}
