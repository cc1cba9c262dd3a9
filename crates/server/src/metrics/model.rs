//! What is counted of one model, from many threads and without a lock where a request is answered.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use weft_engine::LaunchRecord;

use super::histogram::{DURATION_BOUNDS_NS, Histogram, HistogramCounts, ROWS_BOUNDS, nanos};

/// What comes of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It was answered.
    Ok,
    /// It was declined, for a reason that lies with the request or with the load.
    Refused,
    /// It should have been answered.
    Failed,
    /// The client hung up before.
    Cancelled,
}

impl Outcome {
    pub(crate) const ALL: [Self; 4] = [Self::Ok, Self::Refused, Self::Failed, Self::Cancelled];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Refused => "refused",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }
}

/// The counts of one model, whatever its versions.
#[derive(Debug)]
pub(crate) struct ModelMetrics {
    /// In the order of [`Outcome::ALL`].
    requests: [Histogram; 4],
    refusals: Mutex<BTreeMap<&'static str, u64>>,
    queued: Histogram,
    batch_rows: Histogram,
    executions: Histogram,
    rows: AtomicU64,
    fused_rows: AtomicU64,
    fused_launches: AtomicU64,
    fused_launch_rows: AtomicU64,
    evictions: AtomicU64,
    with_objective: AtomicU64,
    in_time: AtomicU64,
    busy_unit_ns: AtomicU64,
    background_unit_ns: AtomicU64,
    expected_unit_ns: AtomicU64,
    error_unit_ns: AtomicU64,
}

impl Default for ModelMetrics {
    fn default() -> Self {
        let durations = || Histogram::new(DURATION_BOUNDS_NS);
        Self {
            requests: [durations(), durations(), durations(), durations()],
            refusals: Mutex::default(),
            queued: durations(),
            batch_rows: Histogram::new(ROWS_BOUNDS),
            executions: durations(),
            rows: AtomicU64::new(0),
            fused_rows: AtomicU64::new(0),
            fused_launches: AtomicU64::new(0),
            fused_launch_rows: AtomicU64::new(0),
            evictions: AtomicU64::new(0),
            with_objective: AtomicU64::new(0),
            in_time: AtomicU64::new(0),
            busy_unit_ns: AtomicU64::new(0),
            background_unit_ns: AtomicU64::new(0),
            expected_unit_ns: AtomicU64::new(0),
            error_unit_ns: AtomicU64::new(0),
        }
    }
}

impl ModelMetrics {
    /// A request has ended.
    pub(crate) fn ended(&self, outcome: Outcome, took: Duration) {
        self.requests[outcome as usize].add_duration(took);
    }

    /// A request was refused for a reason.
    pub(crate) fn refused(&self, reason: &'static str) {
        let mut refusals = self.refusals.lock().unwrap_or_else(PoisonError::into_inner);
        *refusals.entry(reason).or_default() += 1;
    }

    /// The engine was asked for entries of a batch.
    pub(crate) fn asked(&self, rows: usize) {
        self.rows.fetch_add(rows as u64, Ordering::Relaxed);
    }

    /// The engine answered a request that waited for so long.
    pub(crate) fn queued(&self, queued: Duration) {
        self.queued.add_duration(queued);
    }

    /// A request with a deadline has ended.
    pub(crate) fn judged(&self, is_in_time: bool) {
        self.with_objective.fetch_add(1, Ordering::Relaxed);
        if is_in_time {
            self.in_time.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// A batch has run in which so many entries were the model's: of its time, they have their part.
    pub(crate) fn executed(&self, rows: u32, launch: &LaunchRecord) {
        if rows == 0 || launch.rows == 0 {
            return;
        }
        let (rows, all) = (u64::from(rows), u64::from(launch.rows));
        let units = u64::from(launch.units.len());
        self.batch_rows.add(rows);
        self.executions.add(nanos(launch.took));
        if launch.is_fused {
            self.fused_rows.fetch_add(rows, Ordering::Relaxed);
            self.fused_launches.fetch_add(1, Ordering::Relaxed);
            self.fused_launch_rows.fetch_add(all, Ordering::Relaxed);
        }
        let part = |duration| nanos(duration).saturating_mul(rows) / all;
        let (took, expected) = (part(launch.took), part(launch.expected));
        let busy = if launch.is_background { &self.background_unit_ns } else { &self.busy_unit_ns };
        busy.fetch_add(units * took, Ordering::Relaxed);
        self.expected_unit_ns.fetch_add(units * expected, Ordering::Relaxed);
        self.error_unit_ns.fetch_add(units * took.abs_diff(expected), Ordering::Relaxed);
    }

    /// It is served apart from its group for a while.
    pub(crate) fn evicted(&self) {
        self.evictions.fetch_add(1, Ordering::Relaxed);
    }

    /// What was counted so far.
    pub(crate) fn counts(&self) -> ModelCounts {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        ModelCounts {
            requests: self.requests.each_ref().map(Histogram::counts),
            refusals: self.refusals.lock().unwrap_or_else(PoisonError::into_inner).clone(),
            queued: self.queued.counts(),
            batch_rows: self.batch_rows.counts(),
            executions: self.executions.counts(),
            rows: read(&self.rows),
            fused_rows: read(&self.fused_rows),
            fused_launches: read(&self.fused_launches),
            fused_launch_rows: read(&self.fused_launch_rows),
            evictions: read(&self.evictions),
            with_objective: read(&self.with_objective),
            in_time: read(&self.in_time),
            busy_unit_ns: read(&self.busy_unit_ns),
            background_unit_ns: read(&self.background_unit_ns),
            expected_unit_ns: read(&self.expected_unit_ns),
            error_unit_ns: read(&self.error_unit_ns),
        }
    }
}

/// The counts of one model at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ModelCounts {
    /// Durations by outcome, in the order of [`Outcome::ALL`].
    pub(crate) requests: [HistogramCounts; 4],
    pub(crate) refusals: BTreeMap<&'static str, u64>,
    pub(crate) queued: HistogramCounts,
    pub(crate) batch_rows: HistogramCounts,
    pub(crate) executions: HistogramCounts,
    pub(crate) rows: u64,
    /// That ran in one launch with others of a group.
    pub(crate) fused_rows: u64,
    /// Launches in which they did, and the entries of these, whosever they were.
    pub(crate) fused_launches: u64,
    pub(crate) fused_launch_rows: u64,
    pub(crate) evictions: u64,
    pub(crate) with_objective: u64,
    pub(crate) in_time: u64,
    /// Of batches that did not run in the background.
    pub(crate) busy_unit_ns: u64,
    pub(crate) background_unit_ns: u64,
    pub(crate) expected_unit_ns: u64,
    pub(crate) error_unit_ns: u64,
}

impl ModelCounts {
    /// Durations of the requests with an outcome.
    pub(crate) fn of(&self, outcome: Outcome) -> &HistogramCounts {
        &self.requests[outcome as usize]
    }

    /// What was counted since an earlier moment.
    pub(crate) fn since(&self, earlier: &Self) -> Self {
        let later = |now: u64, then: u64| now.saturating_sub(then);
        let refusals = self.refusals.iter().map(|(&reason, &count)| {
            (reason, later(count, earlier.refusals.get(reason).copied().unwrap_or_default()))
        });
        Self {
            requests: std::array::from_fn(|place| {
                self.requests[place].since(&earlier.requests[place])
            }),
            refusals: refusals.collect(),
            queued: self.queued.since(&earlier.queued),
            batch_rows: self.batch_rows.since(&earlier.batch_rows),
            executions: self.executions.since(&earlier.executions),
            rows: later(self.rows, earlier.rows),
            fused_rows: later(self.fused_rows, earlier.fused_rows),
            fused_launches: later(self.fused_launches, earlier.fused_launches),
            fused_launch_rows: later(self.fused_launch_rows, earlier.fused_launch_rows),
            evictions: later(self.evictions, earlier.evictions),
            with_objective: later(self.with_objective, earlier.with_objective),
            in_time: later(self.in_time, earlier.in_time),
            busy_unit_ns: later(self.busy_unit_ns, earlier.busy_unit_ns),
            background_unit_ns: later(self.background_unit_ns, earlier.background_unit_ns),
            expected_unit_ns: later(self.expected_unit_ns, earlier.expected_unit_ns),
            error_unit_ns: later(self.error_unit_ns, earlier.error_unit_ns),
        }
    }

    /// Requests that have ended, however they did.
    pub(crate) fn request_count(&self) -> u64 {
        self.requests.iter().map(HistogramCounts::total).sum()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use weft_engine::ModelKey;
    use weft_scheduler::UnitMask;

    use super::*;

    #[test]
    fn outcomes_are_in_their_places() {
        for (place, outcome) in Outcome::ALL.into_iter().enumerate() {
            assert_eq!(outcome as usize, place);
        }
    }

    #[test]
    fn launches_are_counted_by_the_units_they_took() {
        let metrics = ModelMetrics::default();
        let launch = |rows, took, is_background| LaunchRecord {
            model: ModelKey::unused(),
            partition: 0,
            is_background,
            units: UnitMask::range(0, 2),
            rows,
            tenants: 1,
            is_fused: false,
            is_mixed: false,
            started: Instant::now(),
            took: Duration::from_nanos(took),
            paused: Duration::ZERO,
            expected: Duration::from_nanos(100),
        };
        metrics.executed(4, &launch(4, 130, false));
        metrics.executed(1, &launch(1, 90, true));
        metrics.executed(0, &launch(0, 1_000, false));
        let counts = metrics.counts();
        assert_eq!((counts.batch_rows.total(), counts.batch_rows.sum), (2, 5));
        assert_eq!((counts.busy_unit_ns, counts.background_unit_ns), (260, 180));
        assert_eq!((counts.expected_unit_ns, counts.error_unit_ns), (400, 80));
        assert_eq!(counts.since(&counts).batch_rows.total(), 0);
        assert_eq!(counts.fused_rows, 0);
    }

    #[test]
    fn a_launch_is_counted_for_each_tenant_by_its_part() {
        let [one, other] = [ModelMetrics::default(), ModelMetrics::default()];
        let launch = LaunchRecord {
            model: ModelKey::unused(),
            partition: 0,
            is_background: false,
            units: UnitMask::range(0, 2),
            rows: 4,
            tenants: 2,
            is_fused: true,
            is_mixed: false,
            started: Instant::now(),
            took: Duration::from_nanos(400),
            paused: Duration::ZERO,
            expected: Duration::from_nanos(800),
        };
        one.executed(1, &launch);
        other.executed(3, &launch);
        let counts = [one.counts(), other.counts()];
        assert_eq!(counts.each_ref().map(|it| it.busy_unit_ns), [200, 600]);
        assert_eq!(counts.each_ref().map(|it| it.expected_unit_ns), [400, 1200]);
        assert_eq!(counts.each_ref().map(|it| it.batch_rows.sum), [1, 3]);
        assert_eq!(counts.each_ref().map(|it| it.fused_rows), [1, 3]);
        assert_eq!(
            counts.each_ref().map(|it| (it.fused_launches, it.fused_launch_rows)),
            [(1, 4); 2]
        );
    }

    #[test]
    fn a_request_costs_microseconds_at_most_to_count() {
        const COUNT: u32 = 100_000;
        let metrics = ModelMetrics::default();
        let start = Instant::now();
        for number in 0..COUNT {
            let took = Duration::from_nanos(u64::from(number) * 997);
            metrics.asked(1);
            metrics.queued(took);
            metrics.judged(true);
            metrics.ended(Outcome::Ok, took);
        }
        let each = start.elapsed() / COUNT;
        assert_eq!(metrics.counts().request_count(), u64::from(COUNT));
        // Far more than it takes, since a busy machine takes the processor away meanwhile.
        assert!(each < Duration::from_micros(10), "{each:?}");
    }
}
