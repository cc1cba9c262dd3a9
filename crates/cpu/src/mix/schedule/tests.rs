use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use proptest::prelude::*;
use weft_device::MixChunks;

use super::*;
use crate::Isa;

const CORES: usize = 3;

fn segment(model: usize, steps: Range<usize>, cores: &[usize], waits: &[usize]) -> MixSegment {
    let units = cores.iter().copied().collect();
    MixSegment { model, steps, chunks: None, units, is_filler: false, waits: waits.to_vec() }
}

fn schedule(segments: &[MixSegment], step_counts: &[usize]) -> Result<Schedule, DeviceError> {
    Schedule::new(segments, &Stage { step_counts, cores: &UnitSet::first(CORES) })
}

fn pool() -> Pool {
    Pool::unpinned(CORES, Isa::Portable).unwrap()
}

/// Fails where something takes so long that it must hang.
fn in_time(body: impl FnOnce() + Send + 'static) {
    let (done, is_done) = mpsc::channel();
    let thread = std::thread::spawn(move || {
        body();
        let _ = done.send(());
    });
    match is_done.recv_timeout(Duration::from_secs(60)) {
        Err(mpsc::RecvTimeoutError::Timeout) => panic!("workers wait for each other for ever"),
        _ => thread.join().unwrap(),
    }
}

/// When the workers of each segment began and ended, counted in what happened before.
struct Log {
    clock: AtomicUsize,
    spans: Vec<Vec<(AtomicUsize, AtomicUsize)>>,
}

impl Log {
    fn new(segments: &[MixSegment]) -> Self {
        let spans = segments.iter().map(|segment| segment.units.iter().map(|_| Default::default()));
        Self { clock: AtomicUsize::new(1), spans: spans.map(Iterator::collect).collect() }
    }

    fn tick(&self) -> usize {
        self.clock.fetch_add(1, Ordering::SeqCst)
    }

    /// Notes one worker's part in a segment, which takes a while.
    fn note(&self, place: usize, worker: &Worker<'_>) {
        let (begin, end) = &self.spans[place][worker.index()];
        assert_eq!(begin.swap(self.tick(), Ordering::SeqCst), 0, "a segment ran twice");
        for _ in 0..place % 3 {
            worker.barrier();
            std::thread::yield_now();
        }
        end.store(self.tick(), Ordering::SeqCst);
    }

    fn first_begin(&self, place: usize) -> usize {
        self.spans[place].iter().map(|(begin, _)| begin.load(Ordering::SeqCst)).min().unwrap()
    }

    fn last_end(&self, place: usize) -> usize {
        self.spans[place].iter().map(|(_, end)| end.load(Ordering::SeqCst)).max().unwrap()
    }
}

/// Segments of models with so many steps each: which model is next, how many of its steps, on which cores, and one segment
/// besides that it waits for.
fn segments(step_counts: &[usize], drawn: &[(usize, usize, usize, usize)]) -> Vec<MixSegment> {
    let mut done = vec![0; step_counts.len()];
    let mut segments: Vec<MixSegment> = Vec::new();
    for &(model, steps, cores, wait) in drawn.iter().cycle() {
        let left: Vec<usize> =
            (0..done.len()).filter(|&model| done[model] < step_counts[model]).collect();
        if left.is_empty() {
            break;
        }
        let model = left[model % left.len()];
        let end = (done[model] + 1 + steps).min(step_counts[model]);
        let cores = (0..CORES).filter(|core| (cores + 1) & (1 << core) != 0).collect::<Vec<_>>();
        let waits: Vec<usize> = segments.len().checked_sub(1 + wait).into_iter().collect();
        segments.push(segment(model, done[model]..end, &cores, &waits));
        done[model] = end;
    }
    segments
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn every_segment_runs_once_after_all_that_it_waits_for(
        step_counts in prop::collection::vec(1usize..9, 1..4),
        drawn in prop::collection::vec((0usize..4, 0usize..4, 0usize..7, 0usize..6), 1..12),
    ) {
        let segments = segments(&step_counts, &drawn);
        let ready = schedule(&segments, &step_counts).unwrap();
        let place_of = |ready: &ReadySegment| {
            let is_it = |of: &MixSegment| of.model == ready.model && of.steps == ready.steps;
            segments.iter().position(is_it).unwrap()
        };
        let pool = pool();
        for _ in 0..20 {
            let log = Log::new(&segments);
            ready.run(&pool, |segment, worker| log.note(place_of(segment), worker)).unwrap();
            for (place, segment) in segments.iter().enumerate() {
                prop_assert!(log.first_begin(place) > 0, "segment {place} did not run");
                let own = segments[..place].iter().rposition(|of| of.model == segment.model);
                for wait in segment.waits.iter().copied().chain(own) {
                    prop_assert!(log.last_end(wait) < log.first_begin(place), "{place} {wait}");
                }
            }
        }
    }
}

#[test]
fn what_is_computed_at_once_follows_all_chunks_and_chunks_follow_the_segment_before() {
    let chunks = |shares: &[&[usize]]| {
        let shares = shares.iter().map(|cores| cores.iter().copied().collect());
        Some(MixChunks { count: 3, until: 3, shares: shares.collect() })
    };
    let segments = [
        MixSegment { chunks: chunks(&[&[0], &[1, 2]]), ..segment(0, 0..2, &[0, 1, 2], &[]) },
        MixSegment { chunks: chunks(&[&[2]]), ..segment(0, 2..4, &[1, 2], &[]) },
    ];
    let schedule = schedule(&segments, &[4]).unwrap();
    assert_eq!(schedule.parts(0), 3);
    let pool = pool();
    for _ in 0..100 {
        let log = std::sync::Mutex::new(Vec::new());
        let ran = schedule.run(&pool, |segment, worker| {
            worker.barrier();
            if worker.index() == 0 {
                let number = segment.part.map(|part| (part.number, part.is_last));
                log.lock().unwrap().push((segment.steps.clone(), number));
            }
        });
        ran.unwrap();
        let mut log = log.into_inner().unwrap();
        // The first chunks are on cores of their own, in any order but that of those on the same.
        let place =
            |number| log.iter().position(|it| *it == (0..2, Some((number, false)))).unwrap();
        assert!(place(0) < place(2) && place(0).max(place(1)).max(place(2)) == 2, "{log:?}");
        let rest = [(2..3, Some((0, true))), (2..3, Some((1, true))), (2..3, Some((2, true)))];
        assert_eq!(log.split_off(3), [&rest[..], &[(3..4, None)]].concat());
    }
}

#[test]
fn cores_that_change_hands_at_every_step_do_so_without_end() {
    in_time(|| {
        let steps = 16;
        let alternating = (0..steps).flat_map(|step| {
            let (one, other) = (step % CORES, (step + 1) % CORES);
            // All cores of the one meet all cores of the other.
            [
                segment(0, step..step + 1, &[one, other], &[]),
                segment(1, step..step + 1, &[one], &[]),
            ]
        });
        let segments: Vec<MixSegment> = alternating.collect();
        let schedule = schedule(&segments, &[steps, steps]).unwrap();
        let (pool, done) = (pool(), [AtomicUsize::new(0), AtomicUsize::new(0)]);
        for run in 1..=500 {
            schedule
                .run(&pool, |segment, worker| {
                    // Each step reads what the one before it wrote, so none may be early.
                    let before = (run - 1) * steps + segment.steps.start;
                    assert_eq!(done[segment.model].load(Ordering::Relaxed), before);
                    worker.barrier();
                    if worker.index() == 0 {
                        done[segment.model].store(before + 1, Ordering::Relaxed);
                    }
                    worker.barrier();
                })
                .unwrap();
        }
    });
}

#[test]
fn a_panic_ends_the_run_for_those_who_wait_and_the_next_run_is_whole() {
    in_time(|| {
        // One waits for the worker that panics in their team, one for the end of that segment.
        let segments = [
            segment(0, 0..1, &[0, 1], &[]),
            segment(1, 0..1, &[2], &[0]),
            segment(0, 1..2, &[1], &[]),
        ];
        let schedule = Arc::new(schedule(&segments, &[2, 1]).unwrap());
        let pool = pool();
        for _ in 0..50 {
            let outcome = schedule.run(&pool, |segment, worker| {
                assert!(segment.steps.start > 0 || worker.index() == 0, "one that fails");
                worker.barrier();
            });
            assert!(matches!(outcome, Err(PoolError::Panicked { .. })), "{outcome:?}");
            let ran = AtomicUsize::new(0);
            schedule
                .run(&pool, |_, worker| {
                    worker.barrier();
                    ran.fetch_add(1, Ordering::Relaxed);
                })
                .unwrap();
            assert_eq!(ran.into_inner(), 4);
        }
    });
}

#[test]
fn schedules_that_cannot_be_run_are_refused_and_say_why() {
    let whole = || segment(0, 0..2, &[0], &[]);
    let first = || segment(0, 0..1, &[0], &[]);
    let chunks = |count, until, core| {
        Some(MixChunks { count, until, shares: vec![UnitSet::from_iter([core])] })
    };
    for (segments, why) in [
        (vec![], "no segments"),
        (vec![segment(2, 0..1, &[0], &[])], "model 2, which there is not"),
        (vec![segment(0, 0..3, &[0], &[])], "steps 0..3 of model 0, which has 2"),
        (vec![segment(0, 0..0, &[0], &[])], "steps 0..0"),
        (vec![segment(0, 1..2, &[0], &[])], "begins at step 1 of model 0, whose next is 0"),
        (vec![segment(0, 0..2, &[0], &[]), segment(0, 1..2, &[0], &[])], "whose next is 2"),
        (vec![segment(0, 0..1, &[0], &[])], "steps 1 to 2 of model 0 do not run"),
        (vec![segment(0, 0..2, &[], &[])], "at least one unit"),
        (vec![segment(0, 0..2, &[0, CORES], &[])], "unit 3 does not exist"),
        (vec![segment(0, 0..2, &[0], &[0])], "segment 0 waits for segment 0"),
        (vec![MixSegment { chunks: chunks(1, 1, 0), ..whole() }], "segment 0 has 1 chunks"),
        (vec![MixSegment { chunks: chunks(2, 3, 0), ..whole() }], "2 chunks until step 3 of 2"),
        (vec![MixSegment { chunks: chunks(2, 1, 1), ..whole() }], "units that are not its own"),
        (
            vec![MixSegment { chunks: chunks(2, 1, 0), ..first() }, segment(0, 1..2, &[0], &[])],
            "segment 1 is in other chunks",
        ),
        (vec![MixSegment { is_filler: true, ..whole() }], "segment 0 fills"),
        (vec![segment(0, 0..2, &[0], &[1]), segment(1, 0..1, &[1], &[])], "waits for segment 1"),
    ] {
        let refused = schedule(&segments, &[2, 1]).err().expect(why).to_string();
        assert!(refused.contains(why), "{refused}");
    }
}
