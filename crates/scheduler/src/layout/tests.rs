use std::sync::Arc;

use super::rehearsal::Rehearsal;
use super::*;
use crate::plan::Slo;
use crate::profile::{Profile, ProfilePoint};
use crate::time::Span;

const UNITS: u32 = 8;

/// Takes `fixed_us` on any number of units, and `item_us` per item divided among them.
fn model(fixed_us: f64, item_us: f64, slo_us: f64) -> ServedModel {
    profiled(slo_us, |batch, units| fixed_us + item_us * batch / units)
}

/// Takes so long for each item, on any number of units.
fn serial(item_us: f64, slo_us: f64) -> ServedModel {
    profiled(slo_us, |batch, _| item_us * batch)
}

fn profiled(slo_us: f64, takes_us: impl Fn(f64, f64) -> f64) -> ServedModel {
    let grid = [1u32, 4, 16].into_iter().flat_map(|batch| [1, 2, 4, UNITS].map(|u| (batch, u)));
    let point = |(batch, units): (u32, u32)| {
        let us = takes_us(f64::from(batch), f64::from(units));
        ProfilePoint { batch, units, latency: Span::from_us(us), dram_bytes: 0.0 }
    };
    let points: Vec<ProfilePoint> = grid.map(point).collect();
    ServedModel {
        profile: Arc::new(Profile::new(&points, 1000).expect("the grid is full")),
        slo: Some(Slo { percentile: 0.99, latency: Span::from_us(slo_us) }),
        expected_per_s: 1.0,
        weight: 1.0,
        priority: 0,
        group: None,
    }
}

fn task(models: Vec<ServedModel>, per_s: &[f64]) -> LayoutTask {
    LayoutTask {
        per_s: per_s.to_vec(),
        corrections: vec![1.0; models.len()],
        spreads: vec![0.02; models.len()],
        present: None,
        rounds: None,
        device: ServedDevice {
            models,
            units: UNITS,
            bandwidth_bytes_per_s: 1e12,
            memory_bytes: 10_000,
            can_interrupt: false,
        },
    }
}

fn layout(sizes: &[u32]) -> Layout {
    Layout::new(sizes.to_vec())
}

#[test]
fn a_partition_serves_what_it_answers_in_time_at_batches_that_block_for_half_an_objective() {
    // On one unit 210 us alone; on four, 10 + 50 per item.
    let device = task(vec![model(10.0, 200.0, 220.0), model(10.0, 200.0, 5000.0)], &[]).device;
    let seats = layout(&[4, 1]).seats(&device);
    assert_eq!(seats[0], [(ModelId(0), 2), (ModelId(1), 16)]);
    assert_eq!(seats[1], [(ModelId(1), 12)]);
}

#[test]
fn what_no_partition_answers_in_time_is_tried_on_the_largest() {
    let device = task(vec![model(10.0, 200.0, 50.0)], &[]).device;
    let seats = layout(&[2, 2, 1]).seats(&device);
    assert_eq!(seats, [vec![(ModelId(0), 1)], vec![(ModelId(0), 1)], vec![]]);
}

#[test]
fn models_that_do_not_fit_the_memory_are_left_out_by_their_worth() {
    let mut device = task(vec![model(10.0, 10.0, 900.0); 3], &[]).device;
    device.memory_bytes = 2500;
    device.models[1].expected_per_s = 0.5;
    let seats = layout(&[8]).seats(&device);
    let served: Vec<u32> = seats[0].iter().map(|(model, _)| model.0).collect();
    assert_eq!(served, [0, 2]);
}

#[test]
fn more_load_loses_more_and_a_limit_ends_the_rehearsal_early() {
    let task = task(vec![model(200.0, 1000.0, 1500.0); 2], &[2000.0, 2000.0]);
    let rehearsal = Rehearsal::new(&task);
    let lost = |load| rehearsal.lost(&layout(&[4, 4]), load, f64::INFINITY);
    assert!(lost(0.2) < 0.001, "{}", lost(0.2));
    assert!(lost(1.5) < lost(3.0) && lost(3.0) < lost(6.0));
    assert_eq!(lost(3.0), lost(3.0));
    let some = lost(6.0);
    assert!(some > 0.2, "{some}");
    let cut = rehearsal.lost(&layout(&[4, 4]), 6.0, 0.1);
    assert!(cut > 0.1 && cut <= some, "{cut} {some}");
}

#[test]
fn durations_longer_than_profiled_lose_more() {
    let mut task = task(vec![model(200.0, 1000.0, 1500.0)], &[3000.0]);
    let layout = Layout::even(UNITS, 4);
    let lost = |task: &LayoutTask| Rehearsal::new(task).lost(&layout, 1.0, f64::INFINITY);
    let as_profiled = lost(&task);
    task.corrections = vec![1.6];
    assert!(lost(&task) > as_profiled + 0.05, "{} {as_profiled}", lost(&task));
}

#[test]
fn models_that_gain_nothing_from_units_get_many_partitions() {
    let found = task(vec![serial(300.0, 1500.0); 3], &[5000.0; 3]).solve();
    assert_eq!(found.layout, Layout::even(UNITS, UNITS));
    assert_eq!(found.present_lost, None);
}

#[test]
fn an_objective_that_only_the_whole_device_holds_gets_it() {
    let found = task(vec![model(10.0, 800.0, 140.0)], &[300.0]).solve();
    assert_eq!(found.layout, layout(&[8]));
}

#[test]
fn a_tight_model_beside_many_light_ones_gets_a_large_partition_and_they_small_ones() {
    let mut models = vec![serial(100.0, 1000.0); 4];
    models.push(model(10.0, 800.0, 420.0));
    let task = task(models, &[5000.0, 5000.0, 5000.0, 5000.0, 300.0]);
    let found = task.solve();
    let rehearsal = Rehearsal::new(&task);
    let lost = |layout: &Layout| rehearsal.lost(layout, 1.0, f64::INFINITY);
    assert!(found.layout.sizes()[0] >= 3 && found.layout.sizes().len() >= 4, "{:?}", found.layout);
    for count in 1..=UNITS {
        let even = Layout::even(UNITS, count);
        assert!(lost(&found.layout) <= lost(&even) + 1e-9, "{:?} and {even:?}", found.layout);
    }
}

#[test]
fn the_same_task_has_the_same_solution_and_the_present_layout_is_judged_alike() {
    let mut task = task(vec![model(100.0, 200.0, 900.0), model(50.0, 50.0, 400.0)], &[9000.0; 2]);
    let found = task.solve();
    assert_eq!(found, task.solve());
    assert_eq!(found.layout.sizes().iter().sum::<u32>(), UNITS);
    task.present = Some(found.layout.clone());
    let again = task.solve();
    assert_eq!(again.present_lost, Some(found.lost));
    let total = |lost: Lost| lost.now + lost.later;
    assert!(total(again.lost) <= total(found.lost));
}

#[test]
fn no_load_at_all_has_a_layout_too() {
    let found = task(vec![model(100.0, 200.0, 900.0)], &[0.0]).solve();
    assert_eq!(found.layout.sizes().iter().sum::<u32>(), UNITS);
    assert_eq!(found.lost, Lost { now: 0.0, later: 0.0 });
}

#[test]
fn the_room_of_what_was_found_is_what_it_carries_itself() {
    let at = |per_s: f64| task(vec![model(200.0, 1000.0, 1500.0); 2], &[per_s; 2]);
    let found = at(1500.0).solve();
    assert!(found.room >= 1.0 && !found.carries_all_tried(), "{found:?}");
    let lost = |load| {
        let task = at(1500.0);
        Rehearsal::new(&task).lost(&found.layout, load, f64::INFINITY)
    };
    assert!(lost(found.room) <= 0.01 && lost(found.room * 1.3) > 0.01, "{found:?}");
    assert!(at(10.0).solve().carries_all_tried());
    assert_eq!(at(90_000.0).solve().room, 0.0);
}

#[test]
fn the_late_share_counts_each_request_once_where_the_loss_counts_broken_objectives_too() {
    let mut task = task(vec![model(10.0, 800.0, 50.0), serial(10.0, 900.0)], &[300.0, 900.0]);
    task.device.models[0].weight = 9.0;
    let layout = layout(&[4, 4]);
    let late = task.late_share(&layout);
    assert!((late - 0.25).abs() < 0.03, "{late}");
    assert!(Rehearsal::new(&task).lost(&layout, 1.0, f64::INFINITY) > 1.0);
}

#[test]
fn rounds_are_rehearsed_beside_independent_requests() {
    // Every two milliseconds, two that take half of one each; both have two for it.
    let rounds = RoundLoad {
        models: vec![(ModelId(0), 1), (ModelId(1), 1)],
        lag: Span::ZERO,
        periods: vec![Span::from_us(2000.0)],
        mixed: None,
    };
    let late_share = |rounds_per_s: f64, other_per_s: f64| {
        let models = vec![serial(500.0, 2000.0), serial(500.0, 2000.0), serial(400.0, 2000.0)];
        let per_s = [rounds_per_s, rounds_per_s, other_per_s];
        let rounds = Some(rounds.clone());
        LayoutTask { rounds, ..task(models, &per_s) }.late_share(&layout(&[UNITS]))
    };
    assert_eq!(late_share(500.0, 0.0), 0.0);
    assert_eq!(late_share(5000.0, 0.0), 0.0, "they come as rounds come");
    let (few, many) = (late_share(500.0, 200.0), late_share(500.0, 2500.0));
    assert!(few < 0.02 && many > 0.2, "{few} {many}");
}

#[test]
#[ignore = "prints times, which only mean something with optimisation"]
#[allow(clippy::print_stdout)]
fn time_of_a_search() {
    for count in [4usize, 16, 100] {
        let models = (0..count).map(|index| model(100.0 + index as f64, 400.0, 1500.0)).collect();
        let mut task = task(models, &vec![12_000.0 / count as f64; count]);
        task.device.units = 16;
        task.device.memory_bytes = u64::MAX;
        let start = std::time::Instant::now();
        let found = task.solve();
        println!("{count} models: {:.0?}, {:?}", start.elapsed(), found.layout);
    }
}
