use std::sync::Arc;

use proptest::prelude::*;
use weft_scheduler::plan::Slo;
use weft_scheduler::policies::{self, equal_partitions};
use weft_scheduler::{FixedServing, GroupId, Profile, ProfilePoint, Refusal, UnitMask};

use super::*;
use crate::load::Load;
use crate::world::SimulatedModel;

fn profile(us: f64) -> Arc<Profile> {
    let grid = [1u32, 8].into_iter().flat_map(|batch| [1u32, 4].map(move |units| (batch, units)));
    let point = |(batch, units): (u32, u32)| {
        let us = us * f64::from(batch).sqrt() * (0.3 + 0.7 / f64::from(units));
        ProfilePoint { batch, units, latency: Span::from_us(us), dram_bytes: 0.0 }
    };
    Arc::new(Profile::new(&grid.map(point).collect::<Vec<_>>(), 0).unwrap())
}

fn world(rate_per_s: f64, slo_us: f64, noise: f64, seed: u64) -> World {
    let model = |name: &str, us: f64| SimulatedModel {
        name: name.into(),
        profile: profile(us),
        load: Load::Poisson { rate_per_s },
        slo: Some(Slo { percentile: 0.99, latency: Span::from_us(slo_us) }),
        weight: 1.0,
        priority: 0,
        group: None,
        late: None,
    };
    World {
        models: vec![model("fast", 200.0), model("slow", 900.0)],
        units: 4,
        bandwidth_bytes_per_s: 1e12,
        memory_bytes: 1 << 30,
        can_interrupt: false,
        preparation: Span::from_us(100.0),
        preparation_per_model: Span::from_us(1000.0),
        planning: Span::from_us(100_000.0),
        mixes: Vec::new(),
        noise,
        length: Span::from_s(2.0),
        seed,
    }
}

fn time_sharing(world: &World) -> FixedServing {
    policies::time_sharing(world.served_device())
}

#[test]
fn light_load_is_served_in_time() {
    let world = world(100.0, 5000.0, 0.0, 1);
    let outcome = run(&world, &mut time_sharing(&world)).unwrap();
    assert!(outcome.attainment() > 0.999, "{}", outcome.attainment());
    assert!(outcome.busy_unit_seconds > 0.0);
}

#[test]
fn partitions_keep_a_slow_neighbour_from_delaying_the_fast() {
    // Tight enough that waiting for the slow model once is too long.
    let slow = world(300.0, 500.0, 0.0, 4);
    let mut partitioned = equal_partitions(slow.served_device());
    let apart = run(&slow, &mut partitioned).unwrap();
    let together = run(&slow, &mut time_sharing(&slow)).unwrap();
    assert!(apart.models[0].attainment() > 0.95, "{}", apart.models[0].attainment());
    assert!(apart.models[0].attainment() > together.models[0].attainment());
}

#[test]
fn a_run_can_be_repeated() {
    let world = world(3000.0, 3000.0, 0.1, 5);
    let once = run(&world, &mut time_sharing(&world)).unwrap();
    assert_eq!(once, run(&world, &mut time_sharing(&world)).unwrap());
    let other = World { seed: 6, ..world.clone() };
    assert_ne!(once, run(&other, &mut time_sharing(&other)).unwrap());
}

#[test]
fn overload_is_refused_at_the_door_and_what_is_accepted_is_in_time() {
    let world = world(20_000.0, 3000.0, 0.0, 2);
    let outcome = run(&world, &mut time_sharing(&world)).unwrap();
    let refused: u64 = outcome.models.iter().map(|model| model.refused).sum();
    let late: u64 = outcome.models.iter().map(|model| model.late).sum();
    assert!(refused > 10_000);
    assert_eq!(late, 0);
}

#[test]
fn clients_wait_for_their_answers() {
    let mut world = world(0.0, 5000.0, 0.0, 1);
    world.models[0].slo = None;
    // Alone on the whole device, one item takes 95 us.
    let think = Span::from_us(905.0);
    world.models[0].load = Load::ClosedLoop { clients: 1, think };
    world.models[1].load = Load::ClosedLoop { clients: 0, think };
    let one = run(&world, &mut time_sharing(&world)).unwrap();
    assert_eq!(one.models[1].arrived, 0);
    assert!((1800..2200).contains(&one.models[0].arrived), "{}", one.models[0].arrived);
    assert_eq!(one.models[0].latency(1.0), Span::from_us(95.0));
    // Without thinking, four clients are always being served, in batches.
    world.models[0].load = Load::ClosedLoop { clients: 4, think: Span::ZERO };
    let busy = run(&world, &mut time_sharing(&world)).unwrap();
    assert!(busy.busy_unit_seconds > 0.99 * 4.0 * busy.length.seconds() - 0.01);
    // Impossible deadlines are refused, and clients ask again after a while.
    world.models[0].slo = Some(Slo { percentile: 0.99, latency: Span::from_us(10.0) });
    let refused = run(&world, &mut time_sharing(&world)).unwrap().models[0].clone();
    // But for those that are tried all the same, ever less often.
    assert_eq!((refused.refused + refused.late_trials, refused.late_trials), (refused.arrived, 9));
    assert_eq!(refused.promises_kept(), 1.0);
    assert!((7900..8100).contains(&refused.arrived), "{}", refused.arrived);
}

/// Remembers how long launches took, and their batches.
#[derive(Default)]
struct Durations(Vec<(usize, Span)>);

impl Observer for Durations {
    fn executed(&mut self, executed: Executed<'_>) {
        self.0.push((executed.requests.len(), executed.end.since(executed.start)));
    }
}

#[test]
fn partitions_share_the_memory_and_nothing_else() {
    let play = |dram_bytes: f64| {
        let mut world = world(1000.0, 1e6, 0.0, 3);
        let point =
            |batch| ProfilePoint { batch, units: 2, latency: Span::from_us(900.0), dram_bytes };
        let profile = Arc::new(Profile::new(&[point(1), point(8)], 0).unwrap());
        world.models.iter_mut().for_each(|model| model.profile = profile.clone());
        let mut durations = Durations::default();
        let mut policy = equal_partitions(world.served_device());
        run_observed(&world, &mut policy, &mut durations).unwrap();
        durations.0.iter().map(|(_, duration)| duration.us()).collect::<Vec<f64>>()
    };
    assert!(play(0.0).iter().all(|&us| us == 900.0));
    // Each asks for two thirds of the bandwidth: 600 of 900 us.
    let shared = play(600e-6 * 1e12);
    assert!(shared.iter().all(|&us| (900.0..1200.01).contains(&us)), "{shared:?}");
    let mean = shared.iter().sum::<f64>() / shared.len() as f64;
    assert!(mean > 1100.0, "{mean}");
}

/// Launches nothing, ever.
struct Idle;

impl Policy for Idle {
    fn name(&self) -> &'static str {
        "idle"
    }

    fn react(&mut self, _: Event, _: Time, _: &mut Vec<Action>) {}
}

/// Asks for more units than there are.
struct Greedy;

impl Policy for Greedy {
    fn name(&self) -> &'static str {
        "greedy"
    }

    fn react(&mut self, event: Event, _: Time, actions: &mut Vec<Action>) {
        if event == Event::Started {
            actions.push(Action::Prepare {
                partition: PartitionId(0),
                units: UnitMask::range(0, 99),
                models: Vec::new(),
            });
        }
    }
}

#[test]
fn policies_that_lose_requests_or_oversubscribe_units_are_found_out() {
    let world = world(100.0, 5000.0, 0.0, 1);
    assert!(matches!(run(&world, &mut Idle), Err(Violation::RequestsLost(_))));
    let beyond = Violation::UnitsBeyondDevice(PartitionId(0));
    assert_eq!(run(&world, &mut Greedy), Err(beyond));
}

/// Wakes up forever, and does nothing else.
struct Sleepless;

impl Policy for Sleepless {
    fn name(&self) -> &'static str {
        "sleepless"
    }

    fn react(&mut self, event: Event, now: Time, actions: &mut Vec<Action>) {
        match event {
            Event::Arrived(request) if request.id.0 % 2 == 0 => {
                actions.push(Action::Refuse { request: request.id, why: Refusal::NotServed });
            }
            Event::Started | Event::Woken => actions.push(Action::WakeAt(now + Span::from_s(1.0))),
            _ => {}
        }
    }
}

#[test]
fn a_run_ends_though_the_policy_goes_on() {
    let mut world = world(100.0, 5000.0, 0.0, 1);
    let lost = run(&world, &mut Sleepless);
    assert!(matches!(lost, Err(Violation::RequestsLost(150..250))), "{lost:?}");
    world.length = Span::ZERO;
    assert!(run(&world, &mut Sleepless).is_ok());
}

/// Launches every request on two partitions.
struct Twice;

impl Policy for Twice {
    fn name(&self) -> &'static str {
        "twice"
    }

    fn react(&mut self, event: Event, _: Time, actions: &mut Vec<Action>) {
        match event {
            Event::Started => actions.extend([0, 1].map(|id| Action::Prepare {
                partition: PartitionId(id),
                units: UnitMask::range(id, 1),
                models: vec![ModelId(0), ModelId(1)],
            })),
            Event::Prepared(partition) => actions.push(Action::Activate(partition)),
            Event::Arrived(request) => actions.extend([0, 1].map(|id| Action::Launch {
                launch: LaunchId(u64::from(id)),
                partition: PartitionId(id),
                model: request.model,
                mix: None,
                requests: vec![request.id],
                expected: Span::ZERO,
            })),
            _ => {}
        }
    }
}

#[test]
fn a_request_runs_once() {
    let world = world(100.0, 5000.0, 0.0, 1);
    assert_eq!(run(&world, &mut Twice), Err(Violation::UnknownRequest(RequestId(0))));
}

/// Launches the first requests of two models together.
#[derive(Default)]
struct Mixing(Vec<Request>);

impl Policy for Mixing {
    fn name(&self) -> &'static str {
        "mixing"
    }

    fn react(&mut self, event: Event, _: Time, actions: &mut Vec<Action>) {
        let partition = PartitionId(0);
        match event {
            Event::Started => actions.push(Action::Prepare {
                partition,
                units: UnitMask::range(0, 1),
                models: vec![ModelId(0), ModelId(1)],
            }),
            Event::Prepared(partition) => actions.push(Action::Activate(partition)),
            Event::Arrived(request) if self.0.iter().all(|it| it.model != request.model) => {
                self.0.push(request);
                if let [one, other] = self.0[..] {
                    actions.push(Action::Launch {
                        launch: LaunchId(0),
                        partition,
                        model: one.model,
                        mix: None,
                        requests: vec![one.id, other.id],
                        expected: Span::ZERO,
                    });
                }
            }
            Event::Arrived(request) => {
                actions.push(Action::Refuse { request: request.id, why: Refusal::NotServed });
            }
            _ => {}
        }
    }
}

#[test]
fn only_members_of_one_group_run_together_and_each_counts_for_itself() {
    let mut world = world(100.0, 5000.0, 0.0, 1);
    assert!(matches!(run(&world, &mut Mixing::default()), Err(Violation::WrongModel { .. })));
    world.models.iter_mut().for_each(|model| model.group = Some(GroupId(0)));
    let outcome = run(&world, &mut Mixing::default()).unwrap();
    for model in &outcome.models {
        assert_eq!((model.in_time + model.late, model.latencies.count()), (1, 1));
        assert_eq!(model.refused, model.arrived - 1);
    }
    world.models[1].group = Some(GroupId(1));
    assert!(matches!(run(&world, &mut Mixing::default()), Err(Violation::WrongModel { .. })));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn every_request_ends_once(
        rate in 1.0f64..8000.0, slo in 100.0f64..20_000.0, noise in 0.0f64..0.5, seed: u64,
    ) {
        let world = World { length: Span::from_s(0.3), ..world(rate, slo, noise, seed) };
        let outcome = run(&world, &mut time_sharing(&world)).unwrap();
        for model in &outcome.models {
            let ended = model.in_time + model.late + model.refused + model.shed;
            prop_assert_eq!(ended, model.arrived);
            prop_assert_eq!(model.latencies.count(), model.in_time + model.late);
        }
    }
}
