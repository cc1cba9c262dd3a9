use super::tests::{EXACT, admit, at, best_effort, launched, model, request};
use super::*;
use crate::identity::GroupId;

fn member(id: u32) -> LaneModel {
    LaneModel { group: Some(GroupId(1)), ..model(id) }
}

/// Models 0 to 2 are a group, and model 3 is none of it.
fn lane() -> Lane {
    Lane::new([member(0), member(1), member(2), model(3)], 100)
}

#[test]
fn one_batch_holds_requests_of_several_members() {
    let mut lane = lane();
    for (id, model) in [(0, 2), (1, 3), (2, 0), (3, 2), (4, 1)] {
        admit(&mut lane, request(id, model, 0.0, 100.0), &EXACT).unwrap();
    }
    let batch = lane.next(at(0.0), &EXACT, |late| panic!("{late:?} is not late")).unwrap();
    let models: Vec<u32> = batch.requests.iter().map(|request| request.model.0).collect();
    assert_eq!((models, batch.model), (vec![2, 0, 2, 1], ModelId(2)));
    assert_eq!(batch.expected, EXACT.of(ModelId(0), 4));
    assert_eq!(launched(&mut lane, 14.0), [1]);
    assert_eq!(lane.waiting(), 0);
}

#[test]
fn groups_do_not_mix() {
    let other = |id| LaneModel { group: Some(GroupId(2)), ..model(id) };
    let mut lane = Lane::new([member(0), other(1), member(2), other(3)], 100);
    for id in 0..4 {
        admit(&mut lane, request(id, id as u32, 0.0, 100.0), &EXACT).unwrap();
    }
    assert_eq!(launched(&mut lane, 0.0), [0, 2]);
    assert_eq!(launched(&mut lane, 12.0), [1, 3]);
}

#[test]
fn a_batch_takes_in_members_only_as_long_as_all_in_it_are_in_time() {
    let mut lane = lane();
    admit(&mut lane, request(0, 0, 0.0, 12.5), &EXACT).unwrap();
    admit(&mut lane, request(1, 1, 0.0, 100.0), &EXACT).unwrap();
    admit(&mut lane, request(2, 2, 0.0, 100.0), &EXACT).unwrap();
    assert_eq!(launched(&mut lane, 0.0), [0, 1], "three would end at 13");
    // With the one that waits it would be answered at 24, and after it at 34.
    let too_late = Err(Refusal::TooLate { predicted: Span::from_us(34.0) });
    assert_eq!(admit(&mut lane, request(3, 0, 0.0, 23.0), &EXACT), too_late);
    assert_eq!(launched(&mut lane, 12.0), [2]);
}

#[test]
fn what_moves_here_runs_by_deadline_among_those_of_the_group() {
    let mut lane = lane();
    for (id, model, deadline) in [(0, 1, 300.0), (1, 0, 100.0), (2, 2, 200.0)] {
        let moved = request(id, model, 0.0, deadline);
        let prospect = lane.prospect(&moved, at(0.0), &EXACT).unwrap();
        lane.put(moved, prospect);
    }
    assert_eq!(lane.clone().take_waiting().len(), 3);
    assert_eq!(launched(&mut lane, 0.0), [1, 2, 0]);
}

#[test]
fn best_effort_of_a_group_shares_batches_by_weight() {
    let heavy = LaneModel { weight: 3.0, ..member(0) };
    let mut lane = Lane::new([heavy, member(1), model(2)], 1000);
    for id in 0..300 {
        admit(&mut lane, best_effort(id, (id % 3) as u32), &EXACT).unwrap();
    }
    let mut had = [0; 3];
    for turn in 0..40 {
        let batch = lane.next(at(14.0 * f64::from(turn)), &EXACT, |_| ()).unwrap();
        assert_eq!(batch.requests.len(), 4);
        let is_of_group = |request: &Request| request.model != ModelId(2);
        assert!(batch.requests.iter().all(|it| is_of_group(it) == is_of_group(&batch.requests[0])));
        batch.requests.iter().for_each(|request| had[request.model.index()] += 1);
    }
    // Forty turns of four, by weights of 3, 1 and 1.
    let is_near = |count: i32, expected: i32| (count - expected).abs() <= 8;
    assert!(is_near(had[0], 96) && is_near(had[1], 32) && is_near(had[2], 32), "{had:?}");
}

#[test]
fn what_is_apart_runs_alone_and_only_where_there_is_nothing_else_to_do() {
    let mut lane = lane();
    let apart = |lane: &mut Lane, it: Request| {
        let prospect = lane.prospect_apart(&it, it.arrived, &EXACT).unwrap();
        lane.admit(it, prospect)
    };
    // Nothing runs: two that come together are one batch, which nobody else is in.
    apart(&mut lane, request(0, 1, 0.0, 30.0)).unwrap();
    apart(&mut lane, request(1, 1, 0.0, 30.0)).unwrap();
    admit(&mut lane, request(2, 0, 0.0, 100.0), &EXACT).unwrap();
    let over_share = |predicted| Err(Refusal::OverShare { predicted: Span::from_us(predicted) });
    let waits = apart(&mut lane, request(3, 1, 0.0, 100.0));
    assert!(matches!(waits, Err(Refusal::OverShare { .. })), "another waits: {waits:?}");
    assert_eq!(launched(&mut lane, 0.0), [0, 1]);
    assert_eq!(launched(&mut lane, 12.0), [2]);
    // One of the group runs.
    assert_eq!(apart(&mut lane, request(4, 1, 13.0, 100.0)), over_share(21.0));
    lane.set_busy_until(at(23.0));
    let hopeless = apart(&mut lane, request(5, 1, 23.0, 24.0));
    assert!(matches!(hopeless, Err(Refusal::TooLate { .. })), "{hopeless:?}");
    apart(&mut lane, request(6, 1, 23.0, 100.0)).unwrap();
    assert_eq!((launched(&mut lane, 23.0), lane.waiting()), (vec![6], 0));
}

#[test]
fn a_late_request_is_told_to_keep_others_out_of_its_batch() {
    let slo = Some(Span::from_us(100.0));
    let lane = || Lane::new([0, 1, 2].map(|id| LaneModel { slo, ..member(id) }), 100);
    let held_up_by = |lane: &Lane, it: Request| {
        let prospect = lane.prospect(&it, it.arrived, &EXACT).unwrap();
        lane.held_up_by(&it, &prospect, it.arrived, &EXACT)
    };
    // Two take 12, and three 13.
    let mut late = lane();
    admit(&mut late, request(0, 0, 0.0, 100.0), &EXACT).unwrap();
    admit(&mut late, request(1, 1, 0.0, 12.5), &EXACT).unwrap();
    assert_eq!(held_up_by(&late, request(2, 2, 0.0, 100.0)), Some(ModelId(1)));
    assert_eq!(held_up_by(&late, request(2, 1, 0.0, 100.0)), None, "its own request");
    assert_eq!(held_up_by(&late, request(2, 2, 0.0, 80.0)), None, "late itself");
    // There is time for one more.
    let mut in_time = lane();
    admit(&mut in_time, request(0, 0, 0.0, 100.0), &EXACT).unwrap();
    admit(&mut in_time, request(1, 1, 0.0, 13.0), &EXACT).unwrap();
    assert_eq!(held_up_by(&in_time, request(2, 2, 0.0, 100.0)), None);
    // A batch that is full, or bound by a punctual request, keeps others out by itself.
    let mut full = lane();
    for id in 0..4 {
        let deadline = if id == 1 { 14.0 } else { 100.0 };
        admit(&mut full, request(id, id as u32 % 2, 0.0, deadline), &EXACT).unwrap();
    }
    assert_eq!(held_up_by(&full, request(4, 2, 0.0, 100.0)), None);
}
