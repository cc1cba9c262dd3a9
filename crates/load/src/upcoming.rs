//! Requests that are due next: those that were drawn, and those of clients that think or wait before they ask again.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use weft_scheduler::Time;

use crate::recorder::Job;
use crate::schedule::Due;

/// What is due, in order.
pub(crate) struct Upcoming {
    drawn: std::iter::Peekable<std::vec::IntoIter<Due>>,
    of_clients: BinaryHeap<Reverse<Job>>,
}

impl Upcoming {
    pub(crate) fn new(drawn: Vec<Due>) -> Self {
        Self { drawn: drawn.into_iter().peekable(), of_clients: BinaryHeap::new() }
    }

    /// A client asks at an instant.
    pub(crate) fn push_client(&mut self, model: u32, due: Time) {
        let job = Job { due, model, is_of_client: true, has_waited: false };
        self.of_clients.push(Reverse(job));
    }

    /// When the next is due.
    pub(crate) fn next_at(&mut self) -> Time {
        let drawn = self.drawn.peek().map_or(Time::NEVER, |due| due.at);
        drawn.min(self.of_clients.peek().map_or(Time::NEVER, |Reverse(job)| job.due))
    }

    /// The next one, if it is due by now.
    pub(crate) fn pop(&mut self, now: Time) -> Option<Job> {
        let next = self.next_at();
        if next > now {
            return None;
        }
        if let Some(due) = self.drawn.next_if(|due| due.at == next) {
            let Due { at, model } = due;
            return Some(Job { due: at, model, is_of_client: false, has_waited: false });
        }
        self.of_clients.pop().map(|Reverse(job)| job)
    }
}

#[cfg(test)]
mod tests {
    use weft_scheduler::Span;

    use super::*;

    #[test]
    fn drawn_requests_and_those_of_clients_come_in_one_order() {
        let at = |us: f64| Time::after_start(Span::from_us(us));
        let drawn = [1.0, 4.0].map(|us| Due { at: at(us), model: 0 });
        let mut upcoming = Upcoming::new(drawn.to_vec());
        upcoming.push_client(1, at(5.0));
        upcoming.push_client(1, at(2.0));
        assert_eq!(upcoming.pop(at(0.5)), None);
        let order: Vec<(u32, Time)> =
            std::iter::from_fn(|| upcoming.pop(at(4.5))).map(|job| (job.model, job.due)).collect();
        assert_eq!(order, [(0, at(1.0)), (1, at(2.0)), (0, at(4.0))]);
        assert_eq!(upcoming.next_at(), at(5.0));
    }
}
