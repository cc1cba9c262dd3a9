//! Answers on their way from the engine's threads to one thread of connections.
//!
//! Waking a thread costs a call of the operating system, which a batch of answers makes once here and not for each of them.

use std::sync::{Mutex, PoisonError};

use tokio::sync::{Notify, oneshot};
use weft_engine::{Answer, InferError};

/// What came of a request.
pub(crate) type Outcome = Result<Answer, InferError>;

/// Outcomes that wait for the thread they belong to. There are no more than requests in flight.
#[derive(Default)]
pub(crate) struct Mailbox {
    letters: Mutex<Vec<Letter>>,
    arrived: Notify,
}

/// An outcome, and who waits for it.
struct Letter {
    outcome: Outcome,
    receiver: oneshot::Sender<Outcome>,
}

impl Mailbox {
    /// Leaves an outcome, from whatever thread.
    pub(crate) fn post(&self, outcome: Outcome, receiver: oneshot::Sender<Outcome>) {
        let mut letters = self.letters.lock().unwrap_or_else(PoisonError::into_inner);
        letters.push(Letter { outcome, receiver });
        let is_first = letters.len() == 1;
        drop(letters);
        if is_first {
            self.arrived.notify_one();
        }
    }

    /// Hands out what is left here, for as long as it is polled: by the thread of those who wait.
    pub(crate) async fn deliver(&self) {
        let mut letters = Vec::new();
        loop {
            self.arrived.notified().await;
            std::mem::swap(
                &mut letters,
                &mut *self.letters.lock().unwrap_or_else(PoisonError::into_inner),
            );
            for Letter { outcome, receiver } in letters.drain(..) {
                // Whoever has given up does not wait for it.
                let _ = receiver.send(outcome);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::thread;

    use super::*;

    #[tokio::test]
    async fn every_letter_is_delivered() {
        let mailbox = Arc::new(Mailbox::default());
        let (receivers, waiting): (Vec<_>, Vec<_>) = (0..100).map(|_| oneshot::channel()).unzip();
        let posting = mailbox.clone();
        let poster = thread::spawn(move || {
            for receiver in receivers {
                posting.post(Err(InferError::Shed), receiver);
            }
        });
        let delivering = tokio::spawn(async move { mailbox.deliver().await });
        for answered in waiting {
            assert!(matches!(answered.await, Ok(Err(InferError::Shed))));
        }
        delivering.abort();
        poster.join().unwrap();
    }
}
