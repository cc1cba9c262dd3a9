//! Requests that are ready to be sent, and what their answers must be like.

use std::borrow::Cow;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;

use crate::answer_check::AnswerCheck;
use crate::messages::Messages;
use crate::reply::{OutputPlace, Outputs, Rejection, Reply};
use crate::shared_memory::OutputSlots;

/// How many different requests each model has, sent in turns: a server that remembers the last answers gains nothing, and
/// their bytes stay few.
pub(crate) const REQUESTS: usize = 8;

/// The requests of one model.
pub(crate) struct PreparedModel {
    pub(crate) name: String,
    requests: Vec<PreparedRequest>,
    next: AtomicUsize,
    /// The size of all outputs together, known from the first answer on.
    output_bytes: OnceLock<usize>,
    /// How answers to equal requests are compared.
    check: AnswerCheck,
    /// Where outputs are that do not come with answers.
    slots: Option<OutputSlots>,
}

/// One request.
struct PreparedRequest {
    messages: Messages,
    /// The outputs of its first answer, where answers are compared.
    outputs: OnceLock<Vec<u8>>,
}

/// What became of a request.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Answered,
    Refused(Rejection),
    Failed(Rejection),
}

impl PreparedModel {
    /// A model with these requests, of which there must be one.
    pub(crate) fn new(
        name: String,
        requests: Vec<Messages>,
        check: AnswerCheck,
        slots: Option<OutputSlots>,
    ) -> Self {
        assert!(!requests.is_empty(), "a model has requests");
        let request = |messages| PreparedRequest { messages, outputs: OnceLock::new() };
        let requests = requests.into_iter().map(request).collect();
        let (next, output_bytes) = (AtomicUsize::new(0), OnceLock::new());
        Self { name, requests, next, output_bytes, check, slots }
    }

    /// Where outputs are wanted.
    pub(crate) fn output_place(&self) -> OutputPlace {
        match self.slots {
            Some(_) => OutputPlace::SharedMemory,
            None => OutputPlace::Answer,
        }
    }

    /// The next request in turn: its place, and what is sent over a connection with this slot.
    pub(crate) fn next(&self, slot: usize) -> (usize, Bytes) {
        let place = self.next.fetch_add(1, Ordering::Relaxed) % self.requests.len();
        (place, self.requests[place].messages.of_slot(slot))
    }

    /// What a reply to the request at a place comes to: outputs that are not those of earlier answers are a failure.
    /// Where they are in shared memory, they are in this slot.
    pub(crate) fn judge(&self, place: usize, slot: usize, reply: Reply<'_>) -> Fate {
        let outputs = match reply {
            Reply::Answered(outputs) => outputs,
            Reply::Refused(rejection) => return Fate::Refused(rejection),
            Reply::Failed(rejection) => return Fate::Failed(rejection),
        };
        let size_bytes = match &outputs {
            Outputs::Carried(bytes) => bytes.len(),
            Outputs::Shared(size_bytes) => *size_bytes,
        };
        let wanted = *self.output_bytes.get_or_init(|| size_bytes);
        if size_bytes != wanted {
            let message = format!("{size_bytes} bytes of outputs instead of {wanted}");
            return failed("an answer of another size", message);
        }
        if self.check == AnswerCheck::Size {
            return Fate::Answered;
        }
        let bytes = match (outputs, &self.slots) {
            (Outputs::Carried(bytes), _) => bytes,
            (Outputs::Shared(_), Some(slots)) => match slots.read(slot, size_bytes) {
                Ok(bytes) => Cow::Owned(bytes),
                Err(error) => return failed("outputs that cannot be read", error.to_string()),
            },
            (Outputs::Shared(_), None) => {
                return failed("outputs that cannot be read", String::new());
            }
        };
        let first = self.requests[place].outputs.get_or_init(|| bytes.to_vec());
        match self.check.difference(first, &bytes) {
            Some(difference) => failed("equal inputs with different outputs", difference),
            None => Fate::Answered,
        }
    }
}

fn failed(reason: &str, message: String) -> Fate {
    Fate::Failed(Rejection { reason: reason.into(), message })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(outputs: &[u8]) -> Reply<'_> {
        Reply::Answered(Outputs::Carried(outputs.into()))
    }

    fn model(check: AnswerCheck) -> PreparedModel {
        let messages = ["a", "b"].map(|text| Messages::Whole(Bytes::from(text)));
        PreparedModel::new("m".into(), messages.into(), check, None)
    }

    #[test]
    fn requests_take_turns() {
        let model = model(AnswerCheck::Size);
        let places: Vec<usize> = (0..5).map(|_| model.next(0).0).collect();
        assert_eq!(places, [0, 1, 0, 1, 0]);
    }

    #[test]
    fn answers_must_be_like_those_before() {
        for check in [AnswerCheck::Size, AnswerCheck::Bits] {
            let model = model(check);
            assert_eq!(model.judge(0, 0, answered(b"1234")), Fate::Answered);
            assert_eq!(model.judge(1, 0, answered(b"5678")), Fate::Answered);
            assert_eq!(model.judge(0, 0, answered(b"1234")), Fate::Answered);
            let differs = model.judge(0, 0, answered(b"1235"));
            assert_eq!(
                matches!(differs, Fate::Failed(_)),
                check == AnswerCheck::Bits,
                "{differs:?}"
            );
            assert!(matches!(model.judge(1, 0, answered(b"567")), Fate::Failed(_)));
        }
    }
}
