//! Requests that are neither answered nor declined, by their numbers, which rise: a window that moves on as they end.

use std::collections::VecDeque;

use weft_scheduler::{Request, RequestId};

/// The open requests.
#[derive(Default)]
pub(crate) struct OpenRequests {
    /// From the oldest open request on.
    window: VecDeque<State>,
    /// The number of the first in the window.
    first: u64,
    count: usize,
}

#[derive(Clone, Copy)]
enum State {
    Waiting(Request),
    Running(Request),
    Ended,
}

impl OpenRequests {
    /// Adds a request, whose number is the one after the last.
    pub(crate) fn add(&mut self, request: Request) {
        assert_eq!(request.id.0, self.first + self.window.len() as u64, "numbers rise by one");
        self.window.push_back(State::Waiting(request));
        self.count += 1;
    }

    /// A request that waits begins to run; `None` where it does not wait.
    pub(crate) fn launch(&mut self, id: RequestId) -> Option<Request> {
        let state = self.state(id)?;
        let State::Waiting(request) = *state else { return None };
        *state = State::Running(request);
        Some(request)
    }

    /// Takes a request out that waits; `None` where it does not.
    pub(crate) fn take_waiting(&mut self, id: RequestId) -> Option<Request> {
        let state = self.state(id)?;
        let State::Waiting(request) = *state else { return None };
        *state = State::Ended;
        self.move_on();
        Some(request)
    }

    /// Takes a request out that runs; `None` where it does not.
    pub(crate) fn take_running(&mut self, id: RequestId) -> Option<Request> {
        let state = self.state(id)?;
        let State::Running(request) = *state else { return None };
        *state = State::Ended;
        self.move_on();
        Some(request)
    }

    pub(crate) fn len(&self) -> usize {
        self.count
    }

    fn state(&mut self, id: RequestId) -> Option<&mut State> {
        let place = id.0.checked_sub(self.first)?;
        self.window.get_mut(place as usize)
    }

    fn move_on(&mut self) {
        self.count -= 1;
        while let Some(State::Ended) = self.window.front() {
            self.window.pop_front();
            self.first += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use weft_scheduler::{ModelId, Time};

    use super::*;

    #[test]
    fn requests_end_once_in_any_order_and_the_window_moves_on() {
        let mut open = OpenRequests::default();
        let request = |id| Request {
            id: RequestId(id),
            model: ModelId(0),
            arrived: Time::START,
            deadline: Time::NEVER,
        };
        (0..5).for_each(|id| open.add(request(id)));
        assert_eq!(open.take_waiting(RequestId(3)), Some(request(3)));
        assert_eq!(open.take_waiting(RequestId(3)), None);
        assert_eq!(open.launch(RequestId(3)), None);
        assert_eq!(open.take_running(RequestId(0)), None, "it waits");
        assert_eq!(open.launch(RequestId(0)), Some(request(0)));
        assert_eq!(open.launch(RequestId(0)), None, "it runs");
        assert_eq!(open.take_waiting(RequestId(0)), None, "it runs");
        assert_eq!(open.take_running(RequestId(0)), Some(request(0)));
        assert_eq!((open.len(), open.first, open.window.len()), (3, 1, 4));
        for id in [1, 2, 4] {
            open.take_waiting(RequestId(id)).unwrap();
        }
        assert_eq!((open.len(), open.window.len()), (0, 0));
        open.add(request(5));
        assert_eq!(open.take_waiting(RequestId(9)), None);
    }
}
