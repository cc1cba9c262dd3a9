use super::*;
use crate::request::RequestId;
use crate::time::Span;

/// Ten microseconds for a launch and one for each item, more or less.
#[derive(Default)]
pub(super) struct Simple {
    spread: f64,
}

impl BatchLatency for Simple {
    fn of(&self, _: ModelId, batch: u32) -> Span {
        Span::from_us(10.0 + f64::from(batch))
    }

    fn largest_batch(&self, _: ModelId) -> u32 {
        4
    }

    fn spread(&self, _: ModelId) -> f64 {
        self.spread
    }

    fn certainty(&self, _: ModelId) -> f64 {
        2.0
    }
}

pub(super) const EXACT: Simple = Simple { spread: 0.0 };

pub(super) fn at(us: f64) -> Time {
    Time::START + Span::from_us(us)
}

pub(super) fn request(id: u64, model: u32, arrived: f64, deadline: f64) -> Request {
    Request {
        id: RequestId(id),
        model: ModelId(model),
        arrived: at(arrived),
        deadline: at(deadline),
    }
}

pub(super) fn model(id: u32) -> LaneModel {
    LaneModel { model: ModelId(id), slo: None, weight: 1.0, priority: 0, group: None }
}

fn lane(models: u32) -> Lane {
    Lane::new((0..models).map(model), 100)
}

pub(super) fn admit(lane: &mut Lane, request: Request, latency: &Simple) -> Result<(), Refusal> {
    let prospect = lane.prospect(&request, request.arrived, latency).unwrap();
    lane.admit(request, prospect)
}

pub(super) fn launched(lane: &mut Lane, now: f64) -> Vec<u64> {
    let batch = lane.next(at(now), &EXACT, |late| panic!("{late:?} is not late")).unwrap();
    batch.requests.iter().map(|request| request.id.0).collect()
}

fn too_late(us: f64) -> Result<(), Refusal> {
    Err(Refusal::TooLate { predicted: Span::from_us(us) })
}

#[test]
fn the_most_urgent_model_runs_first_in_as_large_a_batch_as_its_deadline_allows() {
    let mut lane = lane(2);
    for id in 0..6 {
        admit(&mut lane, request(id, 0, 0.0, 100.0), &EXACT).unwrap();
    }
    admit(&mut lane, request(9, 1, 0.0, 60.0), &EXACT).unwrap();
    assert_eq!(launched(&mut lane, 0.0), [9]);
    assert_eq!(launched(&mut lane, 11.0), [0, 1, 2, 3]);
    assert_eq!(launched(&mut lane, 88.5), [4], "two would end at 100.5");
}

#[test]
fn what_would_be_late_is_refused_with_the_prediction() {
    let mut lane = lane(1);
    for id in 0..4 {
        admit(&mut lane, request(id, 0, 0.0, 50.0), &EXACT).unwrap();
    }
    // A batch of four takes 14, and a fifth item another 11.
    assert_eq!(admit(&mut lane, request(4, 0, 0.0, 24.0), &EXACT), too_late(25.0));
    assert_eq!(lane.waiting(), 4);
    let mut short = Lane::new([model(0)], 1);
    admit(&mut short, request(0, 0, 0.0, 50.0), &EXACT).unwrap();
    let refused = admit(&mut short, request(1, 0, 0.0, 50.0), &EXACT);
    assert_eq!(refused, Err(Refusal::QueueFull));
    assert_eq!(short.prospect(&request(1, 7, 0.0, 50.0), at(0.0), &EXACT), None);
}

#[test]
fn a_request_for_which_one_that_was_promised_would_be_late_is_refused() {
    for (promised, outcome) in [(36.0, Ok(())), (35.0, Ok(())), (34.0, too_late(35.0))] {
        let mut lane = lane(2);
        lane.set_busy_until(at(10.0));
        for id in 0..4 {
            admit(&mut lane, request(id, 0, 0.0, promised), &EXACT).unwrap();
        }
        // Alone it would be answered at 21, and then the four at 35.
        assert_eq!(admit(&mut lane, request(4, 1, 0.0, 25.0), &EXACT), outcome);
        let first = if outcome.is_ok() { vec![4] } else { vec![0, 1, 2, 3] };
        assert_eq!(launched(&mut lane, 10.0), first);
    }
}

#[test]
fn a_batch_takes_along_no_more_than_those_who_wait_can_bear() {
    let mut lane = lane(2);
    admit(&mut lane, request(0, 0, 0.0, 20.0), &EXACT).unwrap();
    admit(&mut lane, request(1, 1, 0.0, 23.0), &EXACT).unwrap();
    for id in 2..4 {
        admit(&mut lane, request(id, 0, 0.0, 100.0), &EXACT).unwrap();
    }
    assert_eq!(launched(&mut lane, 0.0), [0, 2], "with both, the other model's ends at 24");
    assert_eq!(launched(&mut lane, 12.0), [1]);
    assert_eq!(launched(&mut lane, 23.0), [3]);
}

#[test]
fn a_batch_is_cut_where_what_ran_took_longer_and_another_model_would_be_late() {
    let mut lane = lane(2);
    admit(&mut lane, request(0, 0, 0.0, 45.0), &EXACT).unwrap();
    for id in 1..4 {
        admit(&mut lane, request(id, 0, 0.0, 200.0), &EXACT).unwrap();
    }
    admit(&mut lane, request(4, 1, 0.0, 50.5), &EXACT).unwrap();
    // The four would end at 40, and the one behind them at 51.
    assert_eq!(launched(&mut lane, 26.0), [0, 1, 2]);
    assert_eq!(launched(&mut lane, 39.0), [4]);
    assert_eq!(launched(&mut lane, 50.0), [3]);
}

#[test]
fn one_is_given_up_rather_than_several() {
    let mut lane = lane(1);
    admit(&mut lane, request(0, 0, 0.0, 30.0), &EXACT).unwrap();
    for id in 1..4 {
        admit(&mut lane, request(id, 0, 0.0, 32.5), &EXACT).unwrap();
    }
    // All end at 33. Alone, the first is in time at 30, and the three behind it end at 43; without it they end at 32.
    let mut shed = Vec::new();
    let batch = lane.next(at(19.0), &EXACT, |late| shed.push(late.id.0)).unwrap();
    assert_eq!((shed, batch.requests.len()), (vec![0], 3));
}

#[test]
fn a_launch_takes_along_what_was_put_off_where_there_is_room_after_all() {
    let mut lane = lane(1);
    lane.set_busy_until(at(10.0));
    admit(&mut lane, request(0, 0, 0.0, 21.5), &EXACT).unwrap();
    admit(&mut lane, request(1, 0, 0.0, 90.0), &EXACT).unwrap();
    assert_eq!(launched(&mut lane, 8.0), [0, 1], "what ran has ended sooner");
}

#[test]
fn the_less_durations_are_known_the_more_is_kept_in_reserve() {
    let outcome = |spread, deadline| {
        let mut lane = lane(1);
        admit(&mut lane, request(0, 0, 0.0, deadline), &Simple { spread })
    };
    assert_eq!(outcome(0.0, 11.0), Ok(()));
    assert!(outcome(0.1, 13.0).is_err());
    assert_eq!(outcome(0.1, 13.5), Ok(()));
}

#[test]
fn a_request_whose_time_has_passed_costs_no_turn() {
    let mut lane = lane(1);
    admit(&mut lane, request(0, 0, 0.0, 20.0), &EXACT).unwrap();
    admit(&mut lane, request(1, 0, 0.0, 90.0), &EXACT).unwrap();
    let mut shed = Vec::new();
    let batch = lane.next(at(10.0), &EXACT, |late| shed.push(late.id.0)).unwrap();
    assert_eq!((shed, batch.requests[0].id.0), (vec![0], 1));
    assert_eq!(lane.waiting(), 0);
    assert!(lane.next(at(10.0), &EXACT, |_| ()).is_none());
}

#[test]
fn what_moves_here_is_in_order_and_nothing_is_lost_on_the_way() {
    let mut lane = lane(1);
    for (id, deadline) in [(0, 300.0), (1, 100.0), (2, 200.0), (3, 400.0), (4, 50.0)] {
        let moved = request(id, 0, 0.0, deadline);
        let prospect = lane.prospect(&moved, at(0.0), &EXACT).unwrap();
        lane.put(moved, prospect);
    }
    assert_eq!(lane.clone().take_waiting().len(), 5);
    assert_eq!(launched(&mut lane, 0.0), [4, 1, 2, 0]);
    assert_eq!(launched(&mut lane, 14.0), [3]);
    assert!(lane.take_waiting().is_empty());
}

pub(super) fn best_effort(id: u64, model: u32) -> Request {
    Request { deadline: Time::NEVER, ..request(id, model, 0.0, 0.0) }
}

#[test]
fn best_effort_runs_when_nothing_else_waits() {
    let mut lane = lane(2);
    for id in 0..6 {
        admit(&mut lane, best_effort(id, 0), &EXACT).unwrap();
    }
    admit(&mut lane, request(9, 1, 0.0, 11.0), &EXACT).unwrap();
    assert_eq!(launched(&mut lane, 0.0), [9]);
    assert_eq!(launched(&mut lane, 11.0), [0, 1, 2, 3]);
    assert_eq!(lane.take_waiting().len(), 2);
}

#[test]
fn best_effort_is_refused_only_where_the_queue_is_full() {
    let mut short = Lane::new([model(0)], 3);
    for id in 0..3 {
        admit(&mut short, best_effort(id, 0), &EXACT).unwrap();
    }
    assert_eq!(admit(&mut short, best_effort(3, 0), &EXACT), Err(Refusal::QueueFull));
}

#[test]
fn best_effort_blocks_for_no_more_than_a_share_of_the_tightest_objective() {
    for (slo_us, batch) in [(40.0, 1), (52.0, 3), (1000.0, 4)] {
        let tight = LaneModel { slo: Some(Span::from_us(slo_us)), ..model(1) };
        let mut lane = Lane::new([model(0), tight], 100);
        for id in 0..6 {
            admit(&mut lane, best_effort(id, 0), &EXACT).unwrap();
        }
        assert_eq!(launched(&mut lane, 0.0).len(), batch, "{slo_us}");
    }
}

#[test]
fn best_effort_is_shared_by_weight_and_nobody_saves_up() {
    let heavy = LaneModel { weight: 3.0, ..model(0) };
    let mut lane = Lane::new([heavy, model(1), model(2)], 1000);
    for id in 0..400 {
        admit(&mut lane, best_effort(id, (id % 2) as u32), &EXACT).unwrap();
    }
    let mut turns = [0; 3];
    for turn in 0..40 {
        if turn == 20 {
            assert_eq!(turns, [15, 5, 0]);
            (400..500).for_each(|id| admit(&mut lane, best_effort(id, 2), &EXACT).unwrap());
        }
        let batch = lane.next(at(14.0 * f64::from(turn)), &EXACT, |_| ()).unwrap();
        turns[batch.model.index()] += 1;
    }
    assert!((3..=5).contains(&turns[2]) && (11..=13).contains(&(turns[0] - 15)), "{turns:?}");
}

#[test]
fn best_effort_is_owed_a_share_of_a_lane_that_is_never_idle() {
    let mut lane = lane(2);
    for id in 0..40 {
        admit(&mut lane, best_effort(id, 0), &EXACT).unwrap();
    }
    let (mut now, mut best_effort_us) = (0.0, 0.0);
    for id in 100..10_000 {
        // One waits while one runs, and as many as can be come besides.
        while admit(&mut lane, request(id, 1, now, now + 30.0), &EXACT).is_ok() {}
        let batch = lane.next(at(now), &EXACT, |late| panic!("{late:?} is late")).unwrap();
        now += batch.expected.us();
        best_effort_us += if batch.model == ModelId(0) { batch.expected.us() } else { 0.0 };
        if best_effort_us > 100.0 {
            break;
        }
    }
    assert!((0.015..0.025).contains(&(best_effort_us / now)), "{}", best_effort_us / now);
}
