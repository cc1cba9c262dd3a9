//! What came and what was answered in time, interval by interval.

use std::collections::HashMap;

use weft_scheduler::{Request, RequestId, Span, Time};

/// Intervals of a run.
const INTERVALS: usize = 100;

/// Counts over the time in which requests come; what is answered after it belongs to the last interval.
pub(super) struct Series {
    begin: Time,
    interval: Span,
    pub(super) arrived: Vec<u64>,
    pub(super) in_time: Vec<u64>,
    /// Of requests that are not done with.
    deadlines: HashMap<RequestId, Time>,
}

impl Series {
    pub(super) fn new(begin: Time, length: Span) -> Self {
        Self {
            begin,
            interval: length * (1.0 / INTERVALS as f64),
            arrived: vec![0; INTERVALS],
            in_time: vec![0; INTERVALS],
            deadlines: HashMap::new(),
        }
    }

    pub(super) fn interval_s(&self) -> f64 {
        self.interval.seconds()
    }

    /// How far the run is, from 0 to 1.
    pub(super) fn progress(&self, now: Time) -> f64 {
        self.place(now) as f64 / INTERVALS as f64
    }

    fn place(&self, now: Time) -> usize {
        let intervals = now.since(self.begin).nanos() / self.interval.nanos().max(1);
        usize::try_from(intervals).unwrap_or(INTERVALS).min(INTERVALS - 1)
    }

    pub(super) fn arrive(&mut self, request: &Request) {
        let place = self.place(request.arrived);
        self.arrived[place] += 1;
        self.deadlines.insert(request.id, request.deadline);
    }

    pub(super) fn answer(&mut self, request: RequestId, now: Time) {
        let deadline = self.deadlines.remove(&request);
        if deadline.is_some_and(|deadline| now <= deadline) {
            let place = self.place(now);
            self.in_time[place] += 1;
        }
    }

    pub(super) fn drop(&mut self, request: RequestId) {
        self.deadlines.remove(&request);
    }
}

#[cfg(test)]
mod tests {
    use weft_scheduler::ModelId;

    use super::*;

    #[test]
    fn requests_count_where_they_come_and_where_they_are_answered_in_time() {
        let at = |seconds: f64| Time::START + Span::from_s(seconds);
        let mut series = Series::new(at(1.0), Span::from_s(10.0));
        for (id, arrived, deadline) in [(0, 1.0, 1.5), (1, 1.05, 1.06), (2, 10.99, 20.0)] {
            let (id, arrived, deadline) = (RequestId(id), at(arrived), at(deadline));
            series.arrive(&Request { id, model: ModelId(0), arrived, deadline });
        }
        series.answer(RequestId(0), at(1.35));
        series.answer(RequestId(1), at(1.35));
        series.answer(RequestId(2), at(15.0));
        assert_eq!((series.arrived[0], series.arrived[99]), (2, 1));
        assert_eq!((series.in_time[3], series.in_time[99]), (1, 1));
        assert_eq!(series.in_time.iter().sum::<u64>(), 2);
        assert_eq!(series.interval_s(), 0.1);
    }
}
