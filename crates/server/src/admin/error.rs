//! Why a request for administration gets no answer.

use ::http::StatusCode;

use crate::error::ServeError;
use crate::refusal::Refusal;

#[derive(Debug, thiserror::Error)]
pub(super) enum AdminError {
    #[error(transparent)]
    NotAllowed(ServeError),
    #[error("there is nothing at {0}; there is /metrics, /status, /trace and /health")]
    UnknownPath(String),
    #[error("{0} takes GET")]
    WrongMethod(String),
    #[error("{0}")]
    WrongQuery(String),
    #[error("another trace is being recorded")]
    Recording,
}

impl AdminError {
    pub(super) fn status(&self) -> StatusCode {
        match self {
            Self::NotAllowed(error) => Refusal::from(error).status,
            Self::UnknownPath(_) => StatusCode::NOT_FOUND,
            Self::WrongMethod(_) => StatusCode::METHOD_NOT_ALLOWED,
            Self::WrongQuery(_) => StatusCode::BAD_REQUEST,
            Self::Recording => StatusCode::CONFLICT,
        }
    }
}
