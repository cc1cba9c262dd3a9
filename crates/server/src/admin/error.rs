//! Why a request for administration gets no answer.

use ::http::StatusCode;

use crate::error::ServeError;
use crate::refusal::Refusal;
use crate::tuning::TuningError;

#[derive(Debug, thiserror::Error)]
pub(super) enum AdminError {
    #[error(transparent)]
    NotAllowed(ServeError),
    #[error("there is nothing at {0}; there is /metrics, /status, /trace, /tuning and /health")]
    UnknownPath(String),
    #[error("{path} takes {allowed}")]
    WrongMethod { path: String, allowed: &'static str },
    #[error("{0}")]
    WrongQuery(String),
    #[error("another trace is being recorded")]
    Recording,
    #[error("no request for tuning: {0}")]
    WrongBody(String),
    #[error("this server does not tune: it was started without a tuning database")]
    NoTuning,
    #[error(transparent)]
    Body(ServeError),
    #[error(transparent)]
    Tuning(TuningError),
}

impl AdminError {
    pub(super) fn status(&self) -> StatusCode {
        match self {
            Self::NotAllowed(error) => Refusal::from(error).status,
            Self::UnknownPath(_) => StatusCode::NOT_FOUND,
            Self::WrongMethod { .. } => StatusCode::METHOD_NOT_ALLOWED,
            Self::WrongQuery(_) | Self::WrongBody(_) => StatusCode::BAD_REQUEST,
            Self::Recording | Self::NoTuning => StatusCode::CONFLICT,
            Self::Body(error) => Refusal::from(error).status,
            Self::Tuning(error) => of_tuning(error),
        }
    }
}

fn of_tuning(error: &TuningError) -> StatusCode {
    match error {
        TuningError::WrongRequest(_) => StatusCode::BAD_REQUEST,
        TuningError::UnknownModel(_) => StatusCode::NOT_FOUND,
        TuningError::UnderWay
        | TuningError::NothingServed
        | TuningError::NothingToTune
        | TuningError::NoRoom { .. }
        | TuningError::Database(_) => StatusCode::CONFLICT,
        TuningError::Serve(error) => Refusal::from(error).status,
        TuningError::Device(_)
        | TuningError::Graph(_)
        | TuningError::Session(_)
        | TuningError::Thread(_)
        | TuningError::Broken(_) => StatusCode::INTERNAL_SERVER_ERROR,
    }
}
