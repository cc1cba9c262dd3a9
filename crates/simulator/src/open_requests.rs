//! Requests that are neither answered nor declined, by their numbers, which rise: a window that moves on as they end.

use std::collections::VecDeque;

use weft_scheduler::{Request, RequestId};

/// The open requests.
#[derive(Default)]
pub(crate) struct OpenRequests {
    /// From the oldest open request on; `None` for those that have ended.
    window: VecDeque<Option<Request>>,
    /// The number of the first in the window.
    first: u64,
    count: usize,
}

impl OpenRequests {
    /// Adds a request, whose number is the one after the last.
    pub(crate) fn add(&mut self, request: Request) {
        assert_eq!(request.id.0, self.first + self.window.len() as u64, "numbers rise by one");
        self.window.push_back(Some(request));
        self.count += 1;
    }

    pub(crate) fn get(&self, id: RequestId) -> Option<&Request> {
        self.window.get(self.place(id)?)?.as_ref()
    }

    /// Takes a request out; `None` where it is not open.
    pub(crate) fn take(&mut self, id: RequestId) -> Option<Request> {
        let place = self.place(id)?;
        let request = self.window.get_mut(place)?.take()?;
        self.count -= 1;
        while self.window.front() == Some(&None) {
            self.window.pop_front();
            self.first += 1;
        }
        Some(request)
    }

    pub(crate) fn len(&self) -> usize {
        self.count
    }

    fn place(&self, id: RequestId) -> Option<usize> {
        id.0.checked_sub(self.first).map(|place| place as usize)
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
        assert_eq!(open.take(RequestId(3)), Some(request(3)));
        assert_eq!(open.take(RequestId(3)), None);
        assert_eq!(open.take(RequestId(0)), Some(request(0)));
        assert_eq!((open.len(), open.first, open.window.len()), (3, 1, 4));
        assert_eq!(open.get(RequestId(4)), Some(&request(4)));
        assert_eq!(open.get(RequestId(0)), None);
        for id in [1, 2, 4] {
            open.take(RequestId(id)).unwrap();
        }
        assert_eq!((open.len(), open.window.len()), (0, 0));
        open.add(request(5));
        assert_eq!(open.take(RequestId(9)), None);
    }
}
