//! Requests that are ready to be sent, and what their answers must be like.

use std::cell::{Cell, OnceCell};

use bytes::Bytes;

use crate::answer_check::AnswerCheck;
use crate::reply::{Rejection, Reply};

/// How many different requests each model has, sent in turns: a server that remembers the last answers gains nothing, and
/// their bytes stay few.
pub(crate) const REQUESTS: usize = 8;

/// The requests of one model.
pub(crate) struct PreparedModel {
    pub(crate) name: String,
    requests: Vec<PreparedRequest>,
    next: Cell<usize>,
    /// The size of all outputs together, known from the first answer on.
    output_bytes: OnceCell<usize>,
    /// How answers to equal requests are compared.
    check: AnswerCheck,
}

/// One request.
struct PreparedRequest {
    /// As it goes over the wire.
    message: Bytes,
    /// The outputs of its first answer, where answers are compared.
    outputs: OnceCell<Vec<u8>>,
}

/// What became of a request.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Answered,
    Refused(Rejection),
    Failed(Rejection),
}

impl PreparedModel {
    /// A model with these messages, of which there must be one.
    pub(crate) fn new(name: String, messages: Vec<Bytes>, check: AnswerCheck) -> Self {
        assert!(!messages.is_empty(), "a model has requests");
        let request = |message| PreparedRequest { message, outputs: OnceCell::new() };
        let requests = messages.into_iter().map(request).collect();
        Self { name, requests, next: Cell::new(0), output_bytes: OnceCell::new(), check }
    }

    /// The next request in turn: its place, and what is sent.
    pub(crate) fn next(&self) -> (usize, Bytes) {
        let place = self.next.get();
        self.next.set((place + 1) % self.requests.len());
        (place, self.requests[place].message.clone())
    }

    /// What a reply to the request at a place comes to: outputs that are not those of earlier answers are a failure.
    pub(crate) fn judge(&self, place: usize, reply: Reply<'_>) -> Fate {
        let outputs = match reply {
            Reply::Answered(outputs) => outputs,
            Reply::Refused(rejection) => return Fate::Refused(rejection),
            Reply::Failed(rejection) => return Fate::Failed(rejection),
        };
        let wanted = *self.output_bytes.get_or_init(|| outputs.len());
        if outputs.len() != wanted {
            let message = format!("{} bytes of outputs instead of {wanted}", outputs.len());
            return failed("an answer of another size", message);
        }
        if self.check != AnswerCheck::Size {
            let first = self.requests[place].outputs.get_or_init(|| outputs.to_vec());
            if let Some(difference) = self.check.difference(first, &outputs) {
                return failed("equal inputs with different outputs", difference);
            }
        }
        Fate::Answered
    }
}

fn failed(reason: &str, message: String) -> Fate {
    Fate::Failed(Rejection { reason: reason.into(), message })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(outputs: &[u8]) -> Reply<'_> {
        Reply::Answered(outputs.into())
    }

    #[test]
    fn requests_take_turns() {
        let messages = ["a", "b"].map(Bytes::from).to_vec();
        let model = PreparedModel::new("m".into(), messages, AnswerCheck::Size);
        let places: Vec<usize> = (0..5).map(|_| model.next().0).collect();
        assert_eq!(places, [0, 1, 0, 1, 0]);
    }

    #[test]
    fn answers_must_be_like_those_before() {
        for check in [AnswerCheck::Size, AnswerCheck::Bits] {
            let messages = ["a", "b"].map(Bytes::from).to_vec();
            let model = PreparedModel::new("m".into(), messages, check);
            assert_eq!(model.judge(0, answered(b"1234")), Fate::Answered);
            assert_eq!(model.judge(1, answered(b"5678")), Fate::Answered);
            assert_eq!(model.judge(0, answered(b"1234")), Fate::Answered);
            let differs = model.judge(0, answered(b"1235"));
            assert_eq!(
                matches!(differs, Fate::Failed(_)),
                check == AnswerCheck::Bits,
                "{differs:?}"
            );
            assert!(matches!(model.judge(1, answered(b"567")), Fate::Failed(_)));
        }
    }
}
