use proptest::prelude::*;

use super::tests::{at, model, request};
use super::*;
use crate::identity::{GroupId, MixId};

const MIX: MixId = MixId(3);

/// Ten microseconds for a launch and one for each item; the mix takes so long, and its batches one after another.
struct WithMix {
    together_us: f64,
    apart_us: f64,
}

/// A mix of three batches of one.
fn with_mix(together_us: f64) -> WithMix {
    WithMix { together_us, apart_us: 33.0 }
}

impl BatchLatency for WithMix {
    fn of(&self, _: ModelId, batch: u32) -> Span {
        Span::from_us(10.0 + f64::from(batch))
    }

    fn largest_batch(&self, _: ModelId) -> u32 {
        4
    }

    fn of_mix(&self, mix: MixId) -> Option<MixLatency> {
        let latency = MixLatency { share: self.together_us / self.apart_us, spread: 0.0 };
        (mix == MIX).then_some(latency)
    }
}

/// Models 0 to 3, of which 0, 1 and 2 are the mix, one request each, within 5 us of each other.
fn lane() -> Lane {
    let mut lane = Lane::new((0..4).map(model), 100);
    lane.set_mix(Some(&mix(&[0, 1, 2])));
    lane
}

fn mix(models: &[u32]) -> LaneMix {
    let models = models.iter().map(|&id| (ModelId(id), 1)).collect();
    LaneMix { mix: MIX, models, lag: Span::from_us(5.0), can_be_counted_on: false }
}

fn admit(lane: &mut Lane, request: Request, latency: &WithMix) {
    let prospect = lane.prospect(&request, request.arrived, latency).unwrap();
    lane.admit(request, prospect).unwrap();
}

/// Admits one request of each of these models at once, each due at an instant.
fn admit_all(lane: &mut Lane, models: &[(u32, f64)], latency: &WithMix) {
    for (id, &(model, deadline)) in (0..).zip(models) {
        admit(lane, request(id, model, 0.0, deadline), latency);
    }
}

fn next(lane: &mut Lane, now: f64, latency: &WithMix) -> (Option<MixId>, Vec<u32>, Span) {
    let batch = lane.next(at(now), latency, |late| panic!("{late:?} is not late")).unwrap();
    let models = batch.requests.iter().map(|request| request.model.0).collect();
    (batch.mix, models, batch.expected)
}

#[test]
fn a_mix_is_one_launch_where_all_of_it_waits() {
    let (mut lane, latency) = (lane(), with_mix(20.0));
    admit_all(&mut lane, &[(1, 100.0), (3, 150.0), (0, 100.0), (2, 100.0)], &latency);
    assert_eq!(lane.gathers_until(at(0.0), &latency), None, "all are there");
    assert_eq!(next(&mut lane, 0.0, &latency), (Some(MIX), vec![0, 1, 2], Span::from_us(20.0)));
    assert_eq!((lane.waiting(), lane.free_at(at(0.0))), (1, at(20.0)));
    assert_eq!(next(&mut lane, 20.0, &latency).1, [3]);
}

#[test]
fn batches_run_apart_where_the_mix_gains_nothing_or_makes_someone_late() {
    let each = |mix_us: f64, deadlines: [f64; 3]| {
        let (mut lane, latency) = (lane(), with_mix(mix_us));
        let models: Vec<(u32, f64)> = (0..).zip(deadlines).collect();
        admit_all(&mut lane, &models, &latency);
        next(&mut lane, 0.0, &latency).0
    };
    assert_eq!(each(32.0, [100.0; 3]), Some(MIX));
    assert_eq!(each(33.0, [100.0; 3]), None, "one after another they take 33");
    assert_eq!(each(20.0, [19.0, 100.0, 100.0]), None, "the first is due before the mix ends");
    assert_eq!(each(20.0, [20.0, 100.0, 100.0]), Some(MIX));
}

#[test]
fn who_is_not_in_the_mix_is_not_late_for_it() {
    for (deadline, expected) in [(31.0, Some(MIX)), (30.0, None)] {
        let (mut lane, latency) = (lane(), with_mix(20.0));
        // It would run second, and end at 22; after the mix it ends at 31.
        admit_all(&mut lane, &[(0, 25.0), (3, deadline), (1, 90.0), (2, 90.0)], &latency);
        assert_eq!(next(&mut lane, 0.0, &latency).0, expected, "{deadline}");
    }
}

#[test]
fn other_numbers_of_requests_are_another_mix() {
    let (mut lane, latency) = (lane(), with_mix(20.0));
    admit_all(&mut lane, &[(0, 100.0), (0, 100.0), (1, 110.0), (2, 120.0)], &latency);
    assert_eq!(lane.gathers_until(at(0.0), &latency), None);
    assert_eq!(next(&mut lane, 0.0, &latency).1, [0, 0]);
}

#[test]
fn the_lane_waits_for_the_rest_of_a_mix_as_long_as_that_pays_and_all_can_wait() {
    let gathers = |mix_us: f64, deadline: f64, now: f64| {
        let (mut lane, latency) = (lane(), with_mix(mix_us));
        admit_all(&mut lane, &[(0, deadline)], &latency);
        lane.gathers_until(at(now), &latency)
    };
    assert_eq!(gathers(20.0, 100.0, 0.0), Some(at(5.0)));
    assert_eq!(gathers(20.0, 100.0, 4.0), Some(at(5.0)));
    assert_eq!(gathers(20.0, 100.0, 5.0), None, "it has come to nothing");
    assert_eq!(gathers(20.0, 25.0, 0.0), Some(at(5.0)), "the mix would end at 25");
    assert_eq!(gathers(20.0, 24.0, 0.0), None);
    assert_eq!(gathers(27.0, 100.0, 0.0), Some(at(5.0)), "6 are gained for 5");
    assert_eq!(gathers(28.0, 100.0, 0.0), None);
}

#[test]
fn what_is_not_in_the_mix_waits_for_nobody() {
    let (mut lane, latency) = (lane(), with_mix(20.0));
    admit_all(&mut lane, &[(3, 50.0), (0, 100.0)], &latency);
    assert_eq!(lane.gathers_until(at(0.0), &latency), None);
    assert_eq!(next(&mut lane, 0.0, &latency).1, [3]);
}

#[test]
fn members_of_groups_and_strangers_are_in_no_mix() {
    let member = LaneModel { group: Some(GroupId(1)), ..model(1) };
    for (models, mix) in [([model(0), member], mix(&[0, 1])), ([model(0), model(1)], mix(&[0, 7]))]
    {
        let (mut lane, latency) = (Lane::new(models, 100), with_mix(5.0));
        lane.set_mix(Some(&mix));
        admit_all(&mut lane, &[(0, 100.0), (1, 100.0)], &latency);
        assert_eq!(lane.gathers_until(at(0.0), &latency), None);
        assert_eq!(next(&mut lane, 0.0, &latency).0, None);
    }
}

#[test]
fn a_mix_is_not_interrupted() {
    let (lane, latency) = (lane(), with_mix(20.0));
    let mut lane = lane.with_interruptions(true);
    admit_all(&mut lane, &[(0, 100.0), (1, 100.0), (2, 100.0)], &latency);
    assert_eq!(next(&mut lane, 0.0, &latency).0, Some(MIX));
    admit(&mut lane, request(9, 3, 1.0, 50.0), &latency);
    assert!(!lane.has_paused());
    assert_eq!(lane.free_at(at(1.0)), at(20.0));
}

#[test]
fn a_mix_does_not_run_beside_what_is_paused() {
    let mut lane = Lane::new((0..5).map(model), 100).with_interruptions(true);
    let latency = with_mix(20.0);
    lane.set_mix(Some(&mix(&[0, 1, 2])));
    admit(&mut lane, request(0, 3, 0.0, 200.0), &latency);
    assert_eq!(next(&mut lane, 0.0, &latency).1, [3]);
    admit(&mut lane, request(1, 4, 1.0, 14.0), &latency);
    assert!(lane.has_paused());
    assert_eq!(next(&mut lane, 1.0, &latency).1, [4]);
    for model in [0, 1, 2] {
        admit(&mut lane, request(2, model, 2.0, 100.0), &latency);
        assert_eq!(lane.gathers_until(at(12.0), &latency), None);
    }
    for model in [0, 1, 2] {
        assert_eq!(next(&mut lane, 12.0, &latency), (None, vec![model], Span::from_us(11.0)));
    }
    assert!(lane.resume(at(45.0)));
}

#[test]
fn requests_of_one_model_come_to_a_round_that_is_counted_on_one_after_another() {
    let (mut lane, latency) = (lane(), WithMix { together_us: 12.0, apart_us: 34.0 });
    let models = [(0, 1), (1, 1), (2, 2)].map(|(id, count)| (ModelId(id), count)).to_vec();
    lane.set_mix(Some(&LaneMix { models, can_be_counted_on: true, ..mix(&[]) }));
    // In turn the second ends at 23.
    for (now, model, due) in [(0.0, 0, 20.0), (1.0, 1, 20.0), (2.0, 2, 60.0), (3.0, 2, 60.0)] {
        admit(&mut lane, request(0, model, now, due), &latency);
    }
    assert_eq!(next(&mut lane, 3.0, &latency), (Some(MIX), vec![0, 1, 2, 2], Span::from_us(12.0)));
}

#[test]
fn who_is_late_by_itself_holds_nobody_up_for_its_round() {
    let (mut lane, latency) = (lane(), with_mix(30.0));
    lane.set_busy_until(at(30.0));
    admit_all(&mut lane, &[(0, 50.0)], &latency);
    lane.delay(Span::from_us(20.0));
    // The others of its round would have come by now.
    let stranger = lane.prospect(&request(1, 3, 10.0, 200.0), at(10.0), &latency).unwrap();
    assert_eq!(stranger.finish, at(72.0));
}

/// Whether requests that come one after another, all due at the same instant, are taken in, and what runs in the end.
fn round(models: &[u32], mix_us: f64, deadline: f64, counted_on: bool) -> (Vec<bool>, Vec<u32>) {
    let (mut lane, latency) = (lane(), with_mix(mix_us));
    lane.set_mix(Some(&LaneMix { can_be_counted_on: counted_on, ..mix(&[0, 1, 2]) }));
    let mut come = |(id, &model): (u64, &u32)| {
        let it = request(id, model, id as f64, deadline);
        let prospect = lane.prospect(&it, it.arrived, &latency).unwrap();
        lane.admit(it, prospect).is_ok()
    };
    let accepted = (0..).zip(models).map(&mut come).collect();
    (accepted, next(&mut lane, models.len() as f64, &latency).1)
}

#[test]
fn the_last_of_a_mix_is_taken_in_though_it_would_be_late_in_turn() {
    // In turn the third ends at 33 at the earliest.
    assert_eq!(round(&[0, 1, 2], 20.0, 30.0, false), (vec![true; 3], vec![0, 1, 2]));
    assert_eq!(round(&[0, 1, 2], 29.0, 30.0, false).0, [true, true, false], "nor does the mix");
    assert_eq!(round(&[0, 1, 3], 20.0, 30.0, false).0, [true, true, false], "it is none of it");
}

#[test]
fn the_first_of_a_mix_are_taken_in_where_the_others_can_be_counted_on() {
    // Two take 22 in turn, and the mix ends at 5 + 12 at the latest.
    assert_eq!(round(&[0, 1, 2], 12.0, 17.0, true), (vec![true; 3], vec![0, 1, 2]));
    assert_eq!(round(&[0, 1, 2], 12.0, 17.0, false).0, [true, false, false]);
    assert_eq!(round(&[0, 1, 2], 12.0, 16.0, true).0, [true, false, false], "it may end at 17");
}

#[test]
fn what_waits_does_not_keep_a_round_from_being_taken_in_if_it_can_wait_for_it() {
    // In turn the other ends at 15 or 48, and the last of the round at 48; after the mix, it ends at 4 + 20 + 11.
    for (other_due, round_due, expected) in
        [(60.0, 37.0, true), (36.0, 37.0, true), (34.0, 37.0, false), (36.0, 23.0, false)]
    {
        let (mut lane, latency) = (lane(), with_mix(20.0));
        lane.set_busy_until(at(4.0));
        let models = [(3, other_due), (0, round_due), (1, round_due), (2, round_due)];
        let mut come = |(id, &(model, due)): (u64, &(u32, f64))| {
            let it = request(id, model, 0.0, due);
            let prospect = lane.prospect(&it, it.arrived, &latency).unwrap();
            lane.admit(it, prospect).is_ok()
        };
        let accepted = (0..).zip(&models).map(&mut come).filter(|is_accepted| *is_accepted).count();
        assert_eq!(accepted == 4, expected, "{other_due} {round_due}");
        if expected {
            let mix = (Some(MIX), vec![0, 1, 2], Span::from_us(20.0));
            assert_eq!(next(&mut lane, 4.0, &latency), mix);
            assert_eq!(next(&mut lane, 24.0, &latency).1, [3]);
        }
    }
}

#[test]
fn a_round_of_which_one_ran_by_itself_is_counted_on_no_more() {
    let (mut lane, latency) = (lane(), with_mix(12.0));
    lane.set_mix(Some(&LaneMix { can_be_counted_on: true, ..mix(&[0, 1, 2]) }));
    let come = |lane: &mut Lane, id: u64, model: u32, now: f64, due: f64| {
        let it = request(id, model, now, due);
        let prospect = lane.prospect(&it, it.arrived, &latency).unwrap();
        lane.admit(it, prospect).is_ok()
    };
    // It cannot wait for the others.
    assert!(come(&mut lane, 0, 0, 0.0, 12.0));
    assert_eq!(lane.gathers_until(at(0.0), &latency), None);
    assert_eq!(next(&mut lane, 0.0, &latency).1, [0]);
    assert!(come(&mut lane, 1, 1, 1.0, 31.0));
    assert!(!come(&mut lane, 2, 2, 2.0, 31.0), "in turn it ends at 33");
    assert_eq!(lane.gathers_until(at(11.0), &latency), None, "nobody else comes");
    assert_eq!(next(&mut lane, 11.0, &latency).1, [1]);
    // The next round is whole again.
    assert!(come(&mut lane, 3, 2, 50.0, 71.0) && come(&mut lane, 4, 1, 51.0, 71.0));
    assert_eq!(lane.gathers_until(at(51.0), &latency), Some(at(55.0)));
    assert!(come(&mut lane, 5, 0, 52.0, 71.0));
    assert_eq!(next(&mut lane, 52.0, &latency).0, Some(MIX));
}

#[test]
fn a_round_that_was_promised_as_a_mix_runs_as_one_however_little_that_gains() {
    // One after another they take 33, and the last has a little less.
    let (mut lane, latency) = (lane(), with_mix(32.5));
    admit_all(&mut lane, &[(0, 32.8), (1, 32.8), (2, 32.8)], &latency);
    assert_eq!(next(&mut lane, 0.0, &latency).0, Some(MIX));
}

#[test]
fn best_effort_waits_for_a_round_that_was_promised_as_a_mix() {
    // A round of one, one and four comes during the last of so many launches: in turn its last batch would end at 36, and best
    // effort that runs before it would take 11. How many of it are taken in, and what runs next.
    let after = |launches: u32| {
        let latency = WithMix { together_us: 25.0, apart_us: 36.0 };
        let mut lane = Lane::new((0..5).map(model), 100);
        let models = [(0, 1), (1, 1), (2, 4)].map(|(id, count)| (ModelId(id), count)).to_vec();
        lane.set_mix(Some(&LaneMix { models, can_be_counted_on: true, ..mix(&[]) }));
        let waits = request(0, 4, 0.0, 0.0);
        admit(&mut lane, Request { deadline: Time::NEVER, ..waits }, &latency);
        let mut now = 0.0;
        for _ in 0..launches {
            admit(&mut lane, request(1, 3, now, now + 100.0), &latency);
            assert_eq!(next(&mut lane, now, &latency).1, [3]);
            now += 11.0;
        }
        let mut is_taken_in = |model: u32| {
            let it = request(2, model, now - 1.0, now + 34.0);
            let prospect = lane.prospect(&it, it.arrived, &latency).unwrap();
            lane.admit(it, prospect).is_ok()
        };
        let accepted = [0, 1, 2, 2, 2, 2].iter().filter(|&&model| is_taken_in(model)).count();
        (accepted, next(&mut lane, now, &latency).1)
    };
    // With the fiftieth launch a turn of best effort is owed, which nobody could know at the door.
    for launches in [49, 50] {
        assert_eq!(after(launches), (6, vec![0, 1, 2, 2, 2, 2]), "{launches}");
    }
}

#[test]
fn who_is_none_of_a_round_waits_for_all_of_it() {
    let (mut lane, latency) = (lane(), with_mix(20.0));
    lane.set_busy_until(at(4.0));
    admit_all(&mut lane, &[(0, 30.0), (1, 30.0), (2, 30.0)], &latency);
    let stranger = request(3, 3, 1.0, 100.0);
    let prospect = lane.prospect(&stranger, at(1.0), &latency).unwrap();
    assert_eq!(prospect.finish, at(35.0), "4 + 20 + 11");
    lane.admit(stranger, prospect).unwrap();
    // One more of a model of the round is none of it.
    let again = request(4, 0, 1.0, 46.0);
    let prospect = lane.prospect(&again, at(1.0), &latency).unwrap();
    assert_eq!(prospect.finish, at(46.0));
    lane.admit(again, prospect).unwrap();
    assert_eq!(next(&mut lane, 4.0, &latency), (Some(MIX), vec![0, 1, 2], Span::from_us(20.0)));
    assert_eq!(next(&mut lane, 24.0, &latency).1, [3]);
    assert_eq!(next(&mut lane, 35.0, &latency).1, [0]);
}

/// When one comes, for which model, and how long it has; without end, it is best effort.
type Arrival = (f64, u32, f64);

/// Plays what comes to a lane with such a mix: each request runs once, and who was promised is in time.
fn keeps_promises(
    mut lane: Lane,
    mut arrivals: Vec<Arrival>,
    latency: &WithMix,
) -> Result<(), TestCaseError> {
    let mut free_at: f64 = 0.0;
    let (mut accepted, mut ran) = (Vec::new(), Vec::new());
    let mut run_until = |lane: &mut Lane, free_at: &mut f64, until: f64| {
        while *free_at <= until && lane.waiting() > 0 {
            if let Some(wake) = lane.gathers_until(at(*free_at), latency) {
                let wake = wake.since(Time::START).us();
                if wake > until {
                    return;
                }
                *free_at = wake;
                continue;
            }
            let mut late = 0;
            let batch = lane.next(at(*free_at), latency, |_| late += 1);
            assert_eq!(late, 0, "nobody is given up where durations are as predicted");
            let Some(batch) = batch else { return };
            *free_at += batch.expected.us();
            for request in batch.requests {
                assert!(at(*free_at) <= request.deadline + Span::from_nanos(2));
                ran.push(request.id.0);
            }
        }
    };
    arrivals.sort_by(|one, other| one.0.total_cmp(&other.0));
    for (id, (now, model, time)) in (0u64..).zip(arrivals) {
        run_until(&mut lane, &mut free_at, now);
        free_at = free_at.max(now);
        let deadline = if time.is_finite() { at(now + time) } else { Time::NEVER };
        let it = Request { deadline, ..request(id, model, now, now) };
        let prospect = lane.prospect(&it, at(now), latency).unwrap();
        if lane.admit(it, prospect).is_ok() {
            accepted.push(id);
        }
    }
    run_until(&mut lane, &mut free_at, f64::INFINITY);
    ran.sort_unstable();
    prop_assert_eq!(ran, accepted);
    Ok(())
}

/// How long one has who is of no round: now and then any time.
fn other_time_us() -> impl Strategy<Value = f64> {
    prop_oneof![3 => 12.0f64..90.0, 1 => Just(f64::INFINITY)]
}

proptest! {
    /// Whatever comes, with a mix and without.
    #[test]
    fn promises_hold_with_mixes(
        arrivals in prop::collection::vec((0u32..4, 0.0f64..30.0, 15.0f64..90.0), 1..40),
        mix_us in 8.0f64..40.0,
    ) {
        let mut now = 0.0;
        let arrivals = arrivals.into_iter().map(|(model, gap, time)| {
            now += gap;
            (now, model, time)
        });
        keeps_promises(lane(), arrivals.collect(), &with_mix(mix_us))?;
    }

    /// The same for rounds that are promised as mixes before they are whole, while others come too.
    #[test]
    fn promises_hold_with_rounds_that_are_counted_on(
        rounds in prop::collection::vec((prop::array::uniform6(0.0f64..5.0), 10.0f64..60.0), 1..20),
        counts in prop::array::uniform3(1u32..3),
        others in prop::collection::vec((0.0f64..20.0, other_time_us()), 0..60),
        mix_us in 8.0f64..36.0,
        slos_us in prop::array::uniform3(15.0f64..60.0),
    ) {
        let with_slo = |(id, us)| LaneModel { slo: Some(Span::from_us(us)), ..model(id) };
        let models = (0..).zip(slos_us).map(with_slo).chain([model(3)]);
        let mut lane = Lane::new(models, 100);
        let models = (0..).map(ModelId).zip(counts).collect();
        lane.set_mix(Some(&LaneMix { can_be_counted_on: true, models, ..mix(&[]) }));

        let (mut begin_us, mut other_us) = (0.0, 0.0);
        let mut arrivals: Vec<Arrival> = Vec::new();
        for (after_us, period_us) in rounds {
            let of_round = (0u32..3).flat_map(|model| (0..counts[model as usize]).map(move |_| model));
            let of_round = of_round.zip(after_us);
            arrivals.extend(of_round.map(|(model, after_us)| {
                (begin_us + after_us, model, slos_us[model as usize])
            }));
            begin_us += period_us;
        }
        for (gap_us, slo_us) in others {
            other_us += gap_us;
            arrivals.push((other_us, 3, slo_us));
        }
        let apart_us = counts.iter().map(|&count| 10.0 + f64::from(count)).sum();
        keeps_promises(lane, arrivals, &WithMix { together_us: mix_us, apart_us })?;
    }
}
