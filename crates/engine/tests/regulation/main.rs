//! Mixes that are regulated piece by piece on a CPU.

#[path = "../support/watched_mix.rs"]
mod watched_mix;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use weft_cpu::CpuDevice;
use weft_device::{Device, Mix, MixMember, MixSegment, UnitSet};
use weft_engine::regulation::{
    RegulatedMix, RegulatedModel, Regulation, RegulationError, RegulationOptions, Way, likeness,
    read_stages, write_stages,
};
use weft_ir::Value;
use weft_scheduler::regulate::{Stages, Strategy};
use weft_zoo::{ZooOptions, build, sample_inputs};

use watched_mix::WatchedMix;

const MODELS: [&str; 2] = ["tiny_resnet", "tiny_mobilenet_v2"];

const ROUNDS: usize = 2;

struct World {
    device: CpuDevice,
    members: Vec<MixMember>,
    units: UnitSet,
}

impl World {
    /// Models that differ in their weights from seed to seed.
    fn new(seed: u64) -> Self {
        let device = CpuDevice::new().expect("there is a CPU");
        let options = ZooOptions { seed, ..ZooOptions::default() };
        let member = |name: &&str| {
            let graph = build(name, &options).expect("the zoo has it");
            let entry = weft_zoo::entry(name).expect("the zoo has it");
            let inputs = sample_inputs(entry, &options, 1, 8).expect("it has inputs");
            let shapes = inputs.iter().map(|input| input.shape().to_vec()).collect();
            MixMember { model: device.load(name, &graph).expect("it loads"), shapes }
        };
        let members = MODELS.iter().map(member).collect();
        let units = device.units().iter().take(2).collect();
        Self { device, members, units }
    }

    /// What each model reads; other values for each seed.
    fn inputs(&self, seed: u64) -> Vec<Vec<Value>> {
        let options = ZooOptions { seed, ..ZooOptions::default() };
        let inputs = |name: &&str| {
            let entry = weft_zoo::entry(name).expect("the zoo has it");
            let inputs = sample_inputs(entry, &options, 1, 8).expect("it has inputs");
            inputs.into_iter().map(Value::Tensor).collect()
        };
        MODELS.iter().map(inputs).collect()
    }

    /// What each model says on a partition of all units.
    fn alone(&self, inputs: &[Vec<Value>]) -> Vec<Vec<Value>> {
        let partition = self.device.partition(&self.units).expect("there are such units");
        let models = self.members.iter().zip(inputs);
        let run = models.map(|(MixMember { model, shapes }, inputs)| {
            partition.prepare(&**model, shapes)?.run(inputs)
        });
        run.collect::<Result<_, _>>().expect("they run")
    }

    fn mix(&self) -> Box<dyn Mix> {
        let mix = self.device.mix(&self.members, &self.units).expect("a CPU has mixes");
        mix.expect("it is prepared")
    }

    fn watched(&self) -> WatchedMix {
        let (mix, runs) = (self.mix(), Arc::default());
        let (wrong, said_us, shared_us, chunked_step_us) = (None, None, None, None);
        let bytes_per_run = 0;
        WatchedMix { mix, runs, wrong, said_us, shared_us, chunked_step_us, bytes_per_run }
    }

    /// A session of a mix whose schedules are said to take a millisecond and whose shared launches so long, at its end.
    fn sharing(&self, shared_us: f64) -> Regulation {
        let (said_us, shared_us): (fn(&[MixSegment]) -> f64, _) = (|_| 1e3, Some(shared_us));
        let watched = WatchedMix { said_us: Some(said_us), shared_us, ..self.watched() };
        ended(self.session_of(Box::new(watched), Duration::ZERO, Duration::ZERO))
    }

    fn session(&self, time: Duration) -> Regulation {
        self.session_of(self.mix(), time, Duration::from_millis(1))
    }

    fn session_of(&self, mix: Box<dyn Mix>, time: Duration, piece: Duration) -> Regulation {
        let name = |member: &MixMember| member.model.name().to_string();
        let models = self.members.iter().map(name).zip(self.inputs(1));
        let models = models.map(|(name, inputs)| RegulatedModel { name, inputs }).collect();
        let options = RegulationOptions { time, strategy: Strategy::Descents, piece };
        Regulation::new(mix, models, options).expect("inputs fit")
    }

    /// A session whose steps are timed.
    fn timed(&self, time: Duration) -> Regulation {
        let mut session = self.session(time);
        while session.timed().is_none() {
            assert!(session.needs_device() && session.progress().starts_with("timing tiny_"));
            assert!(session.advance().expect("it goes on"));
        }
        session
    }
}

fn settled(session: Regulation) -> RegulatedMix {
    let mut settling = session.settle(ROUNDS).expect("something was run");
    while settling.advance().expect("results are those of each model alone") {}
    settling.finish().expect("it has ended")
}

fn ended(mut session: Regulation) -> Regulation {
    while session.advance().expect("it goes on") {}
    session
}

#[test]
fn chunks_take_what_all_of_them_take_beside_each_other() {
    let world = World::new(3);
    if world.units.len() < 2 {
        return;
    }
    let said_us: fn(&[MixSegment]) -> f64 =
        |segments| if segments[0].chunks.is_some() { 400.0 } else { 1000.0 };
    // By itself each would be much faster.
    let (said_us, chunked_step_us) = (Some(said_us), Some(1.0));
    let watched = WatchedMix { said_us, chunked_step_us, ..world.watched() };
    let mut session = world.session_of(Box::new(watched), Duration::ZERO, Duration::ZERO);
    while session.timed().is_none() {
        assert!(session.advance().expect("it goes on"));
    }
    for model in session.timed().expect("it is timed").models() {
        let form = model.forms().find(|form| form.chunks == 2).expect("they gain");
        let us = model.time(form, 2).us();
        assert!((us - 400.0).abs() < 1.0, "{us}");
    }
}

#[test]
fn a_regulated_mix_gives_the_bits_of_each_model_alone() {
    let world = World::new(3);
    let session = ended(world.timed(Duration::from_millis(200)));
    assert!(session.progress().contains("schedules run"), "{}", session.progress());
    let mut regulated = settled(session);
    assert!(regulated.latency_us() > 0.0 && regulated.in_turns_us() > 0.0);
    assert!(!regulated.is_known());
    for seed in 10..14 {
        let inputs = world.inputs(seed);
        assert_eq!(regulated.run(&inputs).expect("it runs"), world.alone(&inputs));
    }
    let error = regulated.run(&world.inputs(1)[..1]).expect_err("a model has no inputs");
    assert!(error.to_string().contains("given inputs for 1"), "{error}");
    // What is kept of it is read again.
    let text = write_stages(regulated.stages(), regulated.timed());
    assert_eq!(&read_stages(&text, regulated.timed()).expect("it fits"), regulated.stages());
}

#[test]
fn all_ways_are_compared_and_the_schedule_is_whole() {
    let mut shown = Vec::new();
    let session = ended(World::new(3).timed(Duration::from_millis(100)));
    let outcome = session.finish(ROUNDS, |what| shown.push(what));
    let outcome = outcome.expect("results are those of each model alone");
    let rounds = (1..=ROUNDS).map(|round| format!("comparing ways: round {round} of {ROUNDS}"));
    shown.dedup();
    assert!(
        shown.iter().cloned().eq(["comparing results".to_string()].into_iter().chain(rounds)),
        "{shown:?}"
    );
    outcome.schedule.check(&outcome.mix).expect("every step runs once");
    assert!(outcome.ways().all(|way| outcome.time_us(way) > 0.0), "{:?}", outcome.times_us);
    // A CPU has no launches that models could share.
    assert!(outcome.ways().eq(Way::ALL.into_iter().filter(|&way| way != Way::SharedLaunches)));
    assert!(outcome.lockstep.is_none());
    let best_us = outcome.time_us(outcome.best());
    let mut others = outcome.ways().filter(|way| *way != Way::AtOnce);
    assert!(others.all(|way| best_us <= outcome.time_us(way)));
    assert!(outcome.coordinate_descent_us > 0.0 && outcome.measured > 0 && outcome.evaluated > 0);
    assert!(outcome.profiling > Duration::ZERO && !outcome.history.is_empty());
    assert_eq!(outcome.name(Way::AtOnce), "free-running threads");
}

#[test]
fn a_search_without_time_runs_one_schedule() {
    let outcome = ended(World::new(3).timed(Duration::ZERO)).finish(1, |_| ()).expect("it ends");
    assert_eq!(outcome.measured, 1);
    assert!(!outcome.is_known);
}

#[test]
fn what_is_known_is_run_first_and_is_all_where_there_is_no_time() {
    let mut session = World::new(3).timed(Duration::ZERO);
    let mix = session.timed().expect("its steps are timed");
    let known = Stages::in_turns(mix);
    session.offer(known.clone());
    let mut pieces = 0;
    while session.advance().expect("it goes on") {
        pieces += 1;
        assert!(pieces < 1000);
    }
    let regulated = settled(session);
    assert!(regulated.is_known());
    assert_eq!(regulated.stages(), &known);
}

#[test]
fn a_session_that_has_run_nothing_has_nothing_to_settle() {
    let world = World::new(3);
    let mut session = world.session(Duration::ZERO);
    session.advance().expect("it goes on");
    assert!(matches!(session.settle(ROUNDS), Err(RegulationError::NothingRun)));
    assert!(matches!(
        world.timed(Duration::ZERO).finish(ROUNDS, |_| ()),
        Err(RegulationError::NothingRun)
    ));
}

#[test]
fn the_shortest_pieces_run_a_schedule_once_after_once_to_warm_up() {
    let world = World::new(3);
    let runs = Arc::new(AtomicUsize::new(0));
    let watched = WatchedMix { runs: runs.clone(), ..world.watched() };
    let time = Duration::from_millis(50);
    let mut session = world.session_of(Box::new(watched), time, Duration::ZERO);
    let is_short = |what: &str| {
        let count = runs.swap(0, Ordering::Relaxed);
        assert!(count <= 2, "{what}: {count}");
    };
    while session.advance().expect("it goes on") {
        is_short(&session.progress());
    }
    let mut settling = session.settle(ROUNDS).expect("something was run");
    while settling.advance().expect("results are those of each model alone") {
        is_short("settling");
    }
}

#[test]
fn a_model_whose_results_are_wrong_in_the_mix_is_named() {
    let world = World::new(3);
    let watched = WatchedMix { wrong: Some(1), ..world.watched() };
    let session = ended(world.session_of(Box::new(watched), Duration::ZERO, Duration::ZERO));
    let mut settling = session.settle(ROUNDS).expect("something was run");
    let error = std::iter::repeat_with(|| settling.advance()).find_map(Result::err);
    let error = error.expect("it does not settle");
    assert!(
        matches!(&error, RegulationError::Results { model, .. } if model == MODELS[1]),
        "{error}"
    );
    assert!(error.to_string().contains("tiny_mobilenet_v2 is off by"), "{error}");
}

#[test]
fn shared_launches_are_what_a_mix_runs_by_where_they_are_faster() {
    let world = World::new(3);
    if world.units.len() < 2 {
        // Steps that have one unit leave nothing idle for others.
        assert!(settled(world.sharing(1.0)).lockstep().is_none());
        return;
    }
    let mut regulated = settled(world.sharing(900.0));
    assert!(regulated.lockstep().is_some_and(|lockstep| lockstep.shared_count() > 0));
    assert_eq!((regulated.latency_us(), regulated.schedule_us()), (900.0, 1e3));
    let inputs = world.inputs(10);
    assert_eq!(regulated.run(&inputs).expect("it runs"), world.alone(&inputs));
    let outcome = world.sharing(900.0).finish(ROUNDS, |_| ()).expect("it ends");
    assert_eq!(outcome.best(), Way::SharedLaunches);
    assert_eq!(outcome.time_us(Way::SharedLaunches), 900.0);
    assert!(outcome.ways().eq(Way::ALL));
}

#[test]
fn shared_launches_that_are_not_faster_change_nothing() {
    let world = World::new(3);
    let regulated = settled(world.sharing(1e3));
    assert!(regulated.lockstep().is_none());
    assert_eq!(regulated.latency_us(), 1e3);
    assert_eq!(world.sharing(1e3).finish(ROUNDS, |_| ()).expect("it ends").best(), Way::Regulated);
}

#[test]
fn shared_launches_that_cannot_be_compiled_are_left_out() {
    let world = World::new(3);
    let regulated = settled(world.sharing(f64::NAN));
    assert!(regulated.lockstep().is_none());
    assert_eq!(regulated.latency_us(), 1e3);
    let outcome = world.sharing(f64::NAN).finish(ROUNDS, |_| ()).expect("it ends");
    assert_eq!(outcome.best(), Way::Regulated);
    assert!(outcome.lockstep.is_none());
    assert_eq!(outcome.unshared.is_some(), world.units.len() > 1);
}

#[test]
fn shared_launches_are_compiled_in_a_piece_that_leaves_the_device_alone() {
    let world = World::new(3);
    let session = world.sharing(1.0);
    let mut settling = session.settle(ROUNDS).expect("something was run");
    let mut compiled_beside = 0;
    loop {
        let needs_device = settling.needs_device();
        let goes_on = settling.advance().expect("results are right");
        compiled_beside += usize::from(!needs_device);
        if !goes_on {
            break;
        }
    }
    assert_eq!(compiled_beside, usize::from(world.units.len() > 1));
}

#[test]
fn models_that_differ_in_their_weights_alone_are_alike() {
    let [one, other] = [3, 4].map(World::new);
    assert_eq!(likeness(&one.members), likeness(&other.members));
    let mut turned = one.members.clone();
    turned.reverse();
    assert_ne!(likeness(&one.members), likeness(&turned));
}
