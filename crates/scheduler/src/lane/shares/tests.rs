use std::iter::empty;

use super::*;

/// A request takes 10 us, alone or not.
struct Flat;

impl BatchLatency for Flat {
    fn of(&self, _: ModelId, batch: u32) -> Span {
        Span::from_us(10.0 * f64::from(batch))
    }

    fn largest_batch(&self, _: ModelId) -> u32 {
        8
    }
}

const SLO: Span = Span::from_nanos(100_000);

fn model(id: u32, weight: f64, priority: u8) -> LaneModel {
    LaneModel { model: ModelId(id), slo: Some(SLO), weight, priority, group: None }
}

/// Plays demands, as shares of the lane, for a while: of what comes, each model has `had`, and the rest is refused.
fn played(models: &[LaneModel], demands: &[f64], had: &[f64]) -> Shares {
    played_at(models, (0..models.len()).collect(), demands, had)
}

/// The same where those with the same place run together.
fn played_at(models: &[LaneModel], places: Vec<usize>, demands: &[f64], had: &[f64]) -> Shares {
    let mut shares = Shares::new(models, places);
    let step = SLO;
    for round in 0..400u64 {
        for (member, (demand, had)) in demands.iter().zip(had).enumerate() {
            // Ten requests fill a step; what is not a whole number comes in some steps and not in others.
            let count = |share: f64| {
                let until = |round: u64| (share * 10.0 * round as f64).round() as u64;
                until(round + 1) - until(round)
            };
            let (came, served) = (count(*demand), count(*had));
            (0..came).for_each(|index| shares.observe_arrival(member, index >= served));
            (0..served).for_each(|_| shares.observe_launch(vec![member], Span::from_us(10.0)));
        }
        shares.divide(Time::START + step * (round as f64), &Flat, || vec![0; models.len()]);
    }
    shares
}

fn divided(models: &[LaneModel], demands: &[f64]) -> Vec<f64> {
    let shares = played(models, demands, &vec![0.0; demands.len()]);
    shares.accounts.iter().map(|account| (account.share * 100.0).round() / 100.0).collect()
}

#[test]
fn what_one_does_not_need_goes_to_the_others_by_weight() {
    let equal = [model(0, 1.0, 0), model(1, 1.0, 0), model(2, 1.0, 0)];
    assert_eq!(divided(&equal, &[5.0, 5.0, 5.0]), [0.33, 0.33, 0.33]);
    assert_eq!(divided(&equal, &[5.0, 0.2, 5.0]), [0.4, 0.2, 0.4]);
    assert_eq!(divided(&equal, &[5.0, 0.2, 0.1]), [0.7, 0.2, 0.1]);
    let weighted = [model(0, 3.0, 0), model(1, 1.0, 0)];
    assert_eq!(divided(&weighted, &[5.0, 5.0]), [0.75, 0.25]);
    assert_eq!(divided(&weighted, &[0.5, 5.0]), [0.5, 0.5]);
}

#[test]
fn a_higher_priority_gets_what_it_asks_for_first() {
    let models = [model(0, 1.0, 0), model(1, 1.0, 7), model(2, 3.0, 0)];
    assert_eq!(divided(&models, &[5.0, 0.6, 5.0]), [0.1, 0.6, 0.3]);
    assert_eq!(divided(&models, &[5.0, 6.0, 5.0]), [0.0, 1.0, 0.0]);
}

#[test]
fn only_who_asks_for_more_than_its_share_leaves_room() {
    let models = [model(0, 1.0, 0), model(1, 1.0, 0)];
    let shares = played(&models, &[5.0, 0.3], &[0.7, 0.3]);
    let room = |member: usize| shares.headroom(member, SLO, empty()).room;
    assert!(room(0) >= Span::from_us(20.0), "{}", room(0));
    assert_eq!(room(1), Span::ZERO);
}

#[test]
fn who_has_more_than_its_share_leaves_room_for_who_has_less() {
    let models = [model(0, 1.0, 0), model(1, 1.0, 0)];
    let shares = played(&models, &[5.0, 5.0], &[0.7, 0.3]);
    let room = |member: usize| shares.headroom(member, SLO, empty()).room;
    assert!(room(0) > Span::ZERO && room(0) <= SLO * 0.5, "{}", room(0));
    assert_eq!(room(1), Span::ZERO);
}

#[test]
fn a_lane_that_serves_all_leaves_no_room() {
    let models = [model(0, 1.0, 0), model(1, 1.0, 1)];
    let shares = played(&models, &[0.6, 0.3], &[0.6, 0.3]);
    assert_eq!(shares.headroom(0, SLO, empty()), Headroom::default());
}

#[test]
fn batches_are_no_longer_than_a_higher_priority_can_bear() {
    let shares = played(&[model(0, 1.0, 0), model(1, 1.0, 1)], &[0.1, 0.1], &[0.1, 0.1]);
    assert_eq!((shares.longest(0), shares.longest(1)), (Span::from_us(45.0), Span::MAX));
}

/// What each model of one group leaves to the others of the time to a deadline, in percent, where these shares of the lane
/// are accepted of each.
fn left_to_mates(weights: &[f64], accepted: &[f64]) -> Vec<u32> {
    let models: Vec<LaneModel> =
        (0..).zip(weights).map(|(id, weight)| model(id, *weight, 0)).collect();
    let shares = played_at(&models, vec![0; models.len()], accepted, accepted);
    let left = |member| shares.headroom(member, SLO, empty());
    let percent = |member| (left(member).room.us() / SLO.us() * 100.0).round() as u32;
    (0..models.len()).map(percent).collect()
}

#[test]
fn who_floods_its_group_leaves_room_while_the_lane_is_crowded() {
    let equal = [1.0; 4];
    // A request takes a tenth of its objective alone, and is answered within a little less than twice that.
    let crowded = left_to_mates(&equal, &[0.6, 0.1, 0.1, 0.1]);
    assert!((80..=85).contains(&crowded[0]), "{crowded:?}");
    assert_eq!(crowded[1..], [0; 3]);
    let half_crowded = left_to_mates(&equal, &[0.475, 0.1, 0.1, 0.1]);
    assert!((30..=55).contains(&half_crowded[0]), "{half_crowded:?}");
    assert_eq!(left_to_mates(&equal, &[0.3, 0.1, 0.1, 0.1]), [0; 4], "there is time for all");
    assert_eq!(left_to_mates(&equal, &[0.22; 4]), [0; 4], "all have their parts");
    assert_eq!(
        left_to_mates(&equal, &[0.45, 0.45, 0.0, 0.0]),
        [0; 4],
        "the others ask for nothing"
    );
}

#[test]
fn parts_are_by_weight() {
    let weighted = [3.0, 1.0, 1.0, 1.0];
    assert_eq!(left_to_mates(&weighted, &[0.45, 0.13, 0.13, 0.13]), [0; 4]);
    let second = left_to_mates(&weighted, &[0.2, 0.5, 0.1, 0.1]);
    assert!(second[1] > 80 && [second[0], second[2], second[3]] == [0; 3], "{second:?}");
    let both = left_to_mates(&weighted, &[0.9, 0.4, 0.1, 0.1]);
    assert!(
        both[0] > 0 && both[0] < both[1] && both[2..] == [0; 2],
        "the second further: {both:?}"
    );
}
