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
