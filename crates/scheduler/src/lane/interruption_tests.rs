use super::*;
use crate::request::RequestId;
use crate::time::Span;

/// Requests of model 0 take 100 us, those of model 1 take 10, alone or together.
struct LongAndShort;

impl BatchLatency for LongAndShort {
    fn of(&self, model: ModelId, _: u32) -> Span {
        Span::from_us(if model == LONG { 100.0 } else { 10.0 })
    }

    fn largest_batch(&self, _: ModelId) -> u32 {
        2
    }
}

const LONG: ModelId = ModelId(0);
const SHORT: ModelId = ModelId(1);

fn at(us: f64) -> Time {
    Time::START + Span::from_us(us)
}

fn lane() -> Lane {
    let model = |model| LaneModel { model, slo: None, weight: 1.0, priority: 0, group: None };
    Lane::new([model(LONG), model(SHORT)], 100).with_interruptions(true)
}

/// A request comes; says whether it was accepted.
fn comes(lane: &mut Lane, id: u64, model: ModelId, now: f64, deadline: f64) -> bool {
    asks(lane, Request { id: RequestId(id), model, arrived: at(now), deadline: at(deadline) })
}

fn asks(lane: &mut Lane, request: Request) -> bool {
    let prospect = lane.prospect(&request, request.arrived, &LongAndShort).unwrap();
    lane.admit(request, prospect).is_ok()
}

fn next(lane: &mut Lane, now: f64) -> Option<Vec<u64>> {
    let batch = lane.next(at(now), &LongAndShort, |late| panic!("{late:?} is not late"))?;
    Some(batch.requests.iter().map(|request| request.id.0).collect())
}

/// A lane that runs a long request from 0 on, which is due at `deadline`.
fn busy(deadline: f64) -> Lane {
    busy_with(at(deadline))
}

/// The same; `Time::NEVER` is best effort.
fn busy_with(deadline: Time) -> Lane {
    let mut lane = lane();
    assert!(asks(&mut lane, Request { id: RequestId(0), model: LONG, arrived: at(0.0), deadline }));
    assert_eq!(next(&mut lane, 0.0), Some(vec![0]));
    lane
}

#[test]
fn who_is_due_first_goes_first_and_what_was_paused_goes_on() {
    let mut lane = busy(500.0);
    assert!(comes(&mut lane, 1, SHORT, 20.0, 35.0), "in turn it would end at 110");
    assert!(lane.has_paused());
    assert_eq!(next(&mut lane, 20.0), Some(vec![1]));
    assert_eq!(lane.free_at(at(20.0)), at(30.0));
    lane.set_busy_until(at(30.0));
    assert_eq!(next(&mut lane, 30.0), None);
    assert!(lane.resume(at(30.0)));
    assert_eq!(lane.free_at(at(30.0)), at(110.0), "80 us were left of it");
    assert!(!lane.has_paused() && !lane.resume(at(30.0)));
}

#[test]
fn what_runs_is_not_made_late() {
    let mut lane = busy(109.0);
    assert!(!comes(&mut lane, 1, SHORT, 20.0, 35.0));
    assert!(!lane.has_paused());
    let mut lane = busy(110.0);
    assert!(comes(&mut lane, 1, SHORT, 20.0, 35.0));
    assert!(lane.has_paused());
}

#[test]
fn those_who_wait_are_not_made_late() {
    for (deadline, is_accepted) in [(209.0, false), (211.0, true)] {
        let mut lane = busy(200.0);
        assert!(comes(&mut lane, 1, LONG, 5.0, deadline));
        assert_eq!(comes(&mut lane, 2, SHORT, 20.0, 35.0), is_accepted, "{deadline}");
    }
}

#[test]
fn who_is_due_later_waits_and_so_does_who_waits_for_little() {
    let mut lane = busy(150.0);
    assert!(comes(&mut lane, 1, SHORT, 20.0, 200.0));
    assert!(!lane.has_paused());
    let mut lane = busy(500.0);
    assert!(comes(&mut lane, 1, SHORT, 98.0, 150.0));
    assert!(!lane.has_paused());
}

#[test]
fn what_is_paused_is_on_the_agenda_by_its_deadline() {
    let mut lane = busy(190.0);
    assert!(comes(&mut lane, 1, SHORT, 20.0, 60.0));
    assert_eq!(next(&mut lane, 20.0), Some(vec![1]));
    assert!(comes(&mut lane, 2, SHORT, 25.0, 65.0), "it is due before what is paused");
    assert!(comes(&mut lane, 3, LONG, 25.0, 220.0), "and this one after");
    lane.set_busy_until(at(30.0));
    assert_eq!(next(&mut lane, 30.0), Some(vec![2]));
    lane.set_busy_until(at(40.0));
    assert_eq!(next(&mut lane, 40.0), None);
    assert!(lane.resume(at(40.0)));
    assert_eq!(lane.free_at(at(40.0)), at(120.0));
    lane.set_busy_until(at(120.0));
    assert_eq!(next(&mut lane, 120.0), Some(vec![3]));
}

#[test]
fn an_interruption_is_not_interrupted() {
    let mut lane = busy(5000.0);
    assert!(comes(&mut lane, 1, LONG, 20.0, 300.0));
    assert_eq!(next(&mut lane, 20.0), Some(vec![1]));
    assert!(!comes(&mut lane, 2, SHORT, 30.0, 50.0), "the interruption ends at 120");
    assert!(comes(&mut lane, 3, SHORT, 30.0, 140.0));
    lane.set_busy_until(at(120.0));
    assert_eq!(next(&mut lane, 120.0), Some(vec![3]));
}

#[test]
fn best_effort_is_interrupted_by_whoever_has_a_deadline() {
    let mut lane = busy_with(Time::NEVER);
    assert!(comes(&mut lane, 1, SHORT, 20.0, 31.0));
    assert_eq!(next(&mut lane, 20.0), Some(vec![1]));
    lane.set_busy_until(at(30.0));
    assert_eq!(next(&mut lane, 30.0), None);
    assert!(lane.resume(at(30.0)));
}

#[test]
fn best_effort_that_was_begun_ends_however_much_is_urgent() {
    let mut lane = busy_with(Time::NEVER);
    // Every 10 us comes one that takes 10 us: as much as the lane can do.
    let (mut now, mut left) = (10.0, 90.0);
    for id in 1.. {
        let is_running = !lane.has_paused() && lane.free_at(at(now)) > at(now);
        comes(&mut lane, id, SHORT, now, now + 30.0);
        if is_running && !lane.has_paused() {
            // It goes on.
            left -= 10.0;
        } else if lane.next(at(now), &LongAndShort, |_| {}).is_none() {
            assert!(lane.resume(at(now)));
            left -= 10.0;
        }
        if left <= 0.0 {
            break;
        }
        now += 10.0;
        if lane.has_paused() {
            lane.set_busy_until(at(now));
        }
        assert!(now < 90.0 / 0.02 + 200.0, "it has had {} us of its share", 90.0 - left);
    }
    assert!(now > 1000.0, "it gives way for as long as it may: {now}");
}

#[test]
fn what_is_paused_stays_when_all_that_waits_is_taken_out_or_it_ends_by_itself() {
    let mut lane = busy(500.0);
    assert!(comes(&mut lane, 1, SHORT, 20.0, 60.0));
    assert_eq!(next(&mut lane, 20.0), Some(vec![1]));
    assert!(comes(&mut lane, 2, SHORT, 25.0, 65.0));
    assert_eq!(lane.take_waiting().len(), 1);
    assert!(lane.has_paused());
    let paused = lane.take_paused().unwrap();
    assert!(!lane.has_paused() && lane.take_paused().is_none());
    lane.put_paused(paused);
    lane.set_busy_until(at(30.0));
    assert!(lane.resume(at(30.0)));
}

#[test]
fn an_interruption_that_is_taken_back_has_not_happened() {
    let mut lane = busy(500.0);
    let (before, waiting) = (lane.before(), lane.waiting());
    let request = Request { id: RequestId(1), model: SHORT, arrived: at(20.0), deadline: at(35.0) };
    let prospect = lane.prospect(&request, at(20.0), &LongAndShort).unwrap();
    lane.accept(request, prospect);
    assert!(lane.has_paused());
    lane.take_back(before, &[prospect]);
    assert_eq!((lane.has_paused(), lane.waiting()), (false, waiting));
    assert_eq!(lane.free_at(at(20.0)), at(100.0));
    assert!(comes(&mut lane, 2, SHORT, 20.0, 35.0), "it can be interrupted as before");
}

#[test]
fn what_has_not_begun_when_it_is_paused_is_all_left() {
    let mut lane = busy(500.0);
    assert!(comes(&mut lane, 1, SHORT, 20.0, 35.0));
    assert_eq!(next(&mut lane, 20.0), Some(vec![1]));
    lane.delay_paused(Span::from_us(20.0));
    lane.set_busy_until(at(30.0));
    assert!(next(&mut lane, 30.0).is_none() && lane.resume(at(30.0)));
    assert_eq!(lane.free_at(at(30.0)), at(130.0));
}
