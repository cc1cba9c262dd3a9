//! What runs, and when it will end. An execution that begins on a partition where another runs interrupts it: that one goes on
//! when it has ended. Executions have their units for themselves and share the device's memory: while all
//! together ask for more than its bandwidth, each runs as much slower as the latency function's formula says, and
//! whenever one begins or ends, the ends of all others move.

use weft_scheduler::{
    LaunchId, MemoryShare, ModelId, PartitionId, RequestId, Span, Time, UnitMask, memory_stretch,
};

/// One launch that runs.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Execution {
    pub(crate) launch: LaunchId,
    pub(crate) partition: PartitionId,
    pub(crate) units: UnitMask,
    pub(crate) unit_count: u32,
    pub(crate) model: ModelId,
    /// How many models its requests are of.
    pub(crate) tenants: u32,
    pub(crate) requests: Vec<RequestId>,
    pub(crate) started: Time,
    /// How long it was paused.
    pub(crate) paused: Span,
    /// When it ends if nothing else begins or ends before; at first, when it would end alone.
    pub(crate) ends: Time,
    /// Of its time alone.
    pub(crate) memory: MemoryShare,
}

impl Execution {
    /// How many times longer it takes while memory is stretched.
    fn slowdown(&self, stretch: f64) -> f64 {
        1.0 + self.memory.value() * (stretch - 1.0)
    }
}

/// An execution that was interrupted, when, and how long it would still take alone.
struct Paused {
    execution: Execution,
    since: Time,
    left: Span,
}

/// All launches that run or are paused.
pub(crate) struct Running {
    /// Those that run, in the order in which they began or went on.
    executions: Vec<Execution>,
    paused: Vec<Paused>,
    /// How many times longer memory takes than for one alone.
    stretch: f64,
    /// The place of the one that ends first, and when.
    next: Option<(Time, usize)>,
}

impl Running {
    pub(crate) fn new() -> Self {
        Self { executions: Vec::new(), paused: Vec::new(), stretch: 1.0, next: None }
    }

    /// When the next execution ends.
    pub(crate) fn next_end(&self) -> Option<Time> {
        self.next.map(|(at, _)| at)
    }

    /// An execution begins now, which would end alone at its `ends`.
    pub(crate) fn begin(&mut self, execution: Execution, now: Time) {
        let is_beneath = |other: &Execution| other.partition == execution.partition;
        if let Some(place) = self.executions.iter().position(is_beneath) {
            let execution = self.executions.remove(place);
            let left = execution.ends.since(now) * execution.slowdown(self.stretch).recip();
            self.paused.push(Paused { execution, since: now, left });
        }
        self.put(execution, now);
    }

    fn put(&mut self, execution: Execution, now: Time) {
        self.executions.push(execution);
        let place = self.executions.len() - 1;
        let stretch = memory_stretch(self.executions.iter().map(|execution| execution.memory));
        let newcomer = &mut self.executions[place];
        // What is left of it is time alone; for the others it is time under the stretch so far.
        newcomer.ends = now + newcomer.ends.since(now) * newcomer.slowdown(self.stretch);
        self.stretch_to(stretch, now);
    }

    /// Takes out the execution that ends first, at that instant.
    pub(crate) fn end_next(&mut self) -> Option<Execution> {
        let (now, place) = self.next?;
        let execution = self.executions.remove(place);
        let stretch = match self.stretch {
            // Less than nothing too much is asked for when one has ended.
            1.0 => 1.0,
            _ => memory_stretch(self.executions.iter().map(|execution| execution.memory)),
        };
        self.stretch_to(stretch, now);
        let is_beneath = |paused: &Paused| paused.execution.partition == execution.partition;
        if let Some(place) = self.paused.iter().position(is_beneath) {
            let Paused { execution, since, left } = self.paused.remove(place);
            let paused = execution.paused + now.since(since);
            self.put(Execution { ends: now + left, paused, ..execution }, now);
        }
        Some(execution)
    }

    fn stretch_to(&mut self, stretch: f64, now: Time) {
        if stretch != self.stretch {
            for execution in &mut self.executions {
                let ratio = execution.slowdown(stretch) / execution.slowdown(self.stretch);
                execution.ends = now + execution.ends.since(now) * ratio;
            }
            self.stretch = stretch;
        }
        let ends = self.executions.iter().enumerate();
        self.next = ends.map(|(place, execution)| (execution.ends, place)).min();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const BANDWIDTH: f64 = 1e9;

    fn at(us: f64) -> Time {
        Time::START + Span::from_us(us)
    }

    /// Begins when it is put in, takes so long alone and moves so many bytes.
    fn execution(launch: u64, start_us: f64, us: f64, bytes: f64) -> Execution {
        let alone = Span::from_us(us);
        Execution {
            launch: LaunchId(launch),
            partition: PartitionId(launch as u32),
            units: UnitMask::range(launch as u32, 1),
            unit_count: 1,
            model: ModelId(0),
            tenants: 1,
            requests: Vec::new(),
            started: at(start_us),
            paused: Span::ZERO,
            ends: at(start_us) + alone,
            memory: MemoryShare::of(bytes, alone, BANDWIDTH),
        }
    }

    /// Lets executions begin at their times; gives the end of each by launch.
    fn play(mut list: Vec<Execution>) -> Vec<Time> {
        let mut running = Running::new();
        let mut ends = vec![Time::NEVER; list.len()];
        list.sort_by_key(|execution| execution.started);
        let mut waiting = list.into_iter().peekable();
        loop {
            let start = waiting.peek().map(|execution| execution.started);
            match (running.next_end(), start) {
                (None, None) => return ends,
                (Some(end), start) if start.is_none_or(|start| end <= start) => {
                    let ended = running.end_next().unwrap();
                    assert_eq!(ended.ends, end);
                    ends[ended.launch.0 as usize] = end;
                }
                _ => {
                    let next = waiting.next().unwrap();
                    let now = next.started;
                    running.begin(next, now);
                }
            }
        }
    }

    fn is_near(found: Time, us: f64) -> bool {
        (found.since(Time::START).us() - us).abs() < 0.01
    }

    #[test]
    fn without_contention_every_end_is_exact() {
        // Half, a quarter and a quarter of the bandwidth.
        let list = [(10.0, 5e3), (8.0, 2e3), (20.0, 5e3)];
        let list = list.iter().enumerate();
        let ends =
            play(list.map(|(id, &(us, bytes))| execution(id as u64, 1.0, us, bytes)).collect());
        assert_eq!(ends, [at(11.0), at(9.0), at(21.0)]);
    }

    #[test]
    fn two_copies_side_by_side_take_twice_as_long() {
        let ends = play(vec![execution(0, 0.0, 100.0, 1e5), execution(1, 0.0, 100.0, 1e5)]);
        assert!(ends.iter().all(|&end| is_near(end, 200.0)), "{ends:?}");
    }

    #[test]
    fn one_that_starts_in_the_middle_delays_what_is_left_and_gains_when_it_is_alone() {
        // Alone until 50, then side by side until the first has moved its other half, at 150; the second then has half
        // of its bytes left and the memory for itself.
        let ends = play(vec![execution(0, 0.0, 100.0, 1e5), execution(1, 50.0, 100.0, 1e5)]);
        assert!(is_near(ends[0], 150.0) && is_near(ends[1], 200.0), "{ends:?}");
    }

    #[test]
    fn what_is_interrupted_goes_on_afterwards() {
        let on_one_partition = |launch, start, us| Execution {
            partition: PartitionId(0),
            ..execution(launch, start, us, 0.0)
        };
        let ends = play(vec![
            on_one_partition(0, 0.0, 100.0),
            on_one_partition(1, 30.0, 20.0),
            on_one_partition(2, 60.0, 10.0),
            execution(3, 0.0, 100.0, 0.0),
        ]);
        assert_eq!(ends, [at(130.0), at(50.0), at(70.0), at(100.0)]);
    }

    #[test]
    fn what_moves_nothing_is_not_delayed() {
        let ends = play(vec![
            execution(0, 0.0, 100.0, 1e5),
            execution(1, 0.0, 100.0, 1e5),
            execution(2, 10.0, 80.0, 0.0),
        ]);
        assert_eq!(ends[2], at(90.0));
        assert!(is_near(ends[0], 200.0));
    }

    proptest! {
        #[test]
        fn no_more_bytes_are_moved_than_the_bandwidth_allows(
            list in prop::collection::vec((0.0f64..500.0, 1.0f64..200.0, 0.0f64..=1.0), 1..12),
        ) {
            let executions: Vec<Execution> = list
                .iter()
                .enumerate()
                .map(|(id, &(start, us, share))| {
                    execution(id as u64, start, us, share * us * 1e-6 * BANDWIDTH)
                })
                .collect();
            let ends = play(executions.clone());
            for (execution, end) in executions.iter().zip(&ends) {
                prop_assert!(*end + Span::from_nanos(50) >= execution.ends);
            }
            // All that lies within any window was moved in it.
            for (from, to) in executions.iter().flat_map(|one| ends.iter().map(|&end| (one.started, end))) {
                let inside = executions.iter().zip(&ends).filter(|(one, end)| one.started >= from && **end <= to);
                let moved: f64 = inside.map(|(one, _)| one.memory.value() * one.ends.since(one.started).seconds()).sum();
                prop_assert!(moved <= to.since(from).seconds() + 1e-7, "{moved}");
            }
        }

        #[test]
        fn the_memory_is_not_idle_while_something_waits_for_it(count in 1u32..8, us in 10.0f64..100.0) {
            let bytes = us * 1e-6 * BANDWIDTH;
            let ends = play((0..count).map(|id| execution(id.into(), 0.0, us, bytes)).collect());
            prop_assert!(ends.iter().all(|&end| is_near(end, us * f64::from(count))));
        }
    }
}
