//! Why a request has no answer, or an engine does not start.

use std::time::Duration;

use weft_device::DeviceError;
use weft_scheduler::Refusal;

/// Why a request has no answer.
#[derive(Debug, thiserror::Error)]
pub enum InferError {
    /// It was declined at the door.
    #[error("refused: {}", in_words(.0))]
    Refused(Refusal),
    /// It was accepted, and then its deadline could not be met any more.
    #[error("dropped: its deadline could not be met any more")]
    Shed,
    /// The engine does not serve its model.
    #[error("the model is not served")]
    NotServed,
    /// The device could not run it.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// The engine has stopped.
    #[error("the engine has stopped")]
    Stopped,
}

/// Why an engine does not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The operating system gives no thread.
    #[error("cannot start a thread: {0}")]
    Thread(#[from] std::io::Error),
    /// What the policy begins with could not be prepared.
    #[error(transparent)]
    Device(#[from] DeviceError),
}

fn in_words(refusal: &Refusal) -> String {
    let latency = |predicted: &weft_scheduler::Span| {
        format!("{:.1} ms", Duration::from_nanos(predicted.nanos()).as_secs_f64() * 1e3)
    };
    match refusal {
        Refusal::TooLate { predicted } => {
            format!("an answer is predicted after {}, too late", latency(predicted))
        }
        Refusal::OverShare { predicted } => format!(
            "the model asks for more than its share; an answer is predicted after {}",
            latency(predicted)
        ),
        Refusal::QueueFull => "too many requests wait".into(),
        Refusal::NotServed => "no partition serves the model".into(),
    }
}
