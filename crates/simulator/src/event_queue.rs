//! What is going to happen, the soonest first; at one instant, in the order in which it was put here.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use weft_scheduler::Time;

struct Entry<T> {
    at: Time,
    number: u64,
    what: T,
}

impl<T> PartialEq for Entry<T> {
    fn eq(&self, other: &Self) -> bool {
        (self.at, self.number) == (other.at, other.number)
    }
}

impl<T> Eq for Entry<T> {}

impl<T> PartialOrd for Entry<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for Entry<T> {
    fn cmp(&self, other: &Self) -> Ordering {
        // A heap gives the greatest first.
        (other.at, other.number).cmp(&(self.at, self.number))
    }
}

/// Things by the instant at which they happen.
pub(crate) struct EventQueue<T> {
    heap: BinaryHeap<Entry<T>>,
    next_number: u64,
}

impl<T> EventQueue<T> {
    pub(crate) fn new() -> Self {
        Self { heap: BinaryHeap::new(), next_number: 0 }
    }

    pub(crate) fn put(&mut self, at: Time, what: T) {
        let number = self.next_number;
        self.next_number += 1;
        self.heap.push(Entry { at, number, what });
    }

    /// When the next thing happens.
    pub(crate) fn next_at(&self) -> Option<Time> {
        self.heap.peek().map(|entry| entry.at)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }

    /// Takes out the next thing and puts in another, which is cheaper than one after the other.
    pub(crate) fn replace_next(&mut self, at: Time, what: T) {
        let number = self.next_number;
        self.next_number += 1;
        let mut next = self.heap.peek_mut().expect("there is something to replace");
        *next = Entry { at, number, what };
    }

    /// The next thing, which stays.
    pub(crate) fn peek(&self) -> Option<&T> {
        self.heap.peek().map(|entry| &entry.what)
    }

    pub(crate) fn take(&mut self) -> Option<(Time, T)> {
        self.heap.pop().map(|entry| (entry.at, entry.what))
    }
}

#[cfg(test)]
mod tests {
    use weft_scheduler::Span;

    use super::*;

    #[test]
    fn the_soonest_comes_first_and_equals_in_their_order() {
        let mut queue = EventQueue::new();
        let at = |us: f64| Time::START + Span::from_us(us);
        for (us, name) in [(2.0, "b"), (1.0, "a"), (2.0, "c"), (0.5, "z")] {
            queue.put(at(us), name);
        }
        let order: Vec<&str> = std::iter::from_fn(|| queue.take()).map(|(_, name)| name).collect();
        assert_eq!(order, ["z", "a", "b", "c"]);
    }

    #[test]
    fn what_replaces_the_next_takes_its_own_turn() {
        let mut queue = EventQueue::new();
        let at = |us: f64| Time::START + Span::from_us(us);
        queue.put(at(1.0), "a");
        queue.put(at(2.0), "b");
        assert_eq!((queue.next_at(), queue.peek()), (Some(at(1.0)), Some(&"a")));
        queue.replace_next(at(2.0), "c");
        assert_eq!(queue.take(), Some((at(2.0), "b")));
        assert_eq!(queue.take(), Some((at(2.0), "c")));
        assert!(queue.is_empty());
    }
}
