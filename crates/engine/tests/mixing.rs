//! Requests that come together again and again, on an engine that regulates them: they run as one launch, with the answers of each
//! model alone.

mod support;
#[path = "support/watched_mix.rs"]
mod watched_mix;

use std::fs;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, getpriority_process};
use weft_cpu::CpuDevice;
use weft_device::{
    Device, DeviceDescription, DeviceError, LoadedModel, Mix, MixMember, MixSegment, Partition,
    UnitSet,
};
use weft_engine::{
    Answer, Claim, Engine, EngineDevice, EngineModel, FoundSchedule, InferError, KnownSchedules,
    LaunchRecord, MixOutcome, ModelKey, Observer, Submission,
};
use weft_ir::{Graph, Value};
use weft_scheduler::policies::named;
use weft_scheduler::{Profile, ProfilePoint, Span};
use weft_zoo::{ZooOptions, entry, sample_inputs};

use watched_mix::WatchedMix;

const NAMES: [&str; 2] = ["tiny_resnet", "tiny_mobilenet_v2"];

/// Within this, what is waited for has long happened.
const PATIENCE: Duration = Duration::from_secs(60);

/// A CPU whose mixes are said to be faster, or slower, than their models one after another.
struct MixingCpu {
    cpu: CpuDevice,
    said_us: fn(&[MixSegment]) -> f64,
    /// What its mixes take more of its memory with each run.
    bytes_per_run: usize,
}

fn faster(segments: &[MixSegment]) -> f64 {
    if are_in_turns(segments) { 1000.0 } else { 500.0 }
}

fn slower(segments: &[MixSegment]) -> f64 {
    if are_in_turns(segments) { 1000.0 } else { 2000.0 }
}

fn are_in_turns(segments: &[MixSegment]) -> bool {
    segments.len() == NAMES.len() && segments.iter().all(|segment| segment.units.len() == 2)
}

impl Device for MixingCpu {
    fn description(&self) -> DeviceDescription {
        self.cpu.description()
    }

    fn load(&self, name: &str, graph: &Graph) -> Result<Arc<dyn LoadedModel>, DeviceError> {
        self.cpu.load(name, graph)
    }

    fn partition(&self, units: &UnitSet) -> Result<Arc<dyn Partition>, DeviceError> {
        self.cpu.partition(units)
    }

    fn can_interrupt(&self) -> bool {
        self.cpu.can_interrupt()
    }

    fn mix(
        &self,
        models: &[MixMember],
        units: &UnitSet,
    ) -> Option<Result<Box<dyn Mix>, DeviceError>> {
        let said_us = Some(self.said_us);
        let watched = |mix| WatchedMix {
            mix,
            runs: Arc::default(),
            wrong: None,
            said_us,
            shared_us: None,
            chunked_step_us: None,
            bytes_per_run: self.bytes_per_run,
        };
        let mix = self.cpu.mix(models, units)?;
        Some(mix.map(|mix| Box::new(watched(mix)) as Box<dyn Mix>))
    }
}

/// Models and the sizes of their batches.
type Models = Vec<(ModelKey, u32)>;

/// What the engine told of itself.
#[derive(Default)]
struct Seen {
    launches: Mutex<Vec<LaunchRecord>>,
    outcomes: Mutex<Vec<(Models, MixOutcome)>>,
}

impl Observer for Seen {
    fn launch_ended(&self, launch: &LaunchRecord) {
        self.launches.lock().unwrap().push(*launch);
    }

    fn regulated(&self, models: &[(ModelKey, u32)], outcome: &MixOutcome) {
        self.outcomes.lock().unwrap().push((models.to_vec(), outcome.clone()));
    }
}

/// Schedules that are kept for as long as the test runs.
#[derive(Default)]
struct Kept(Mutex<Vec<(String, u32, FoundSchedule)>>);

impl KnownSchedules for Kept {
    fn known(&self, likeness: &str, units: u32) -> Option<String> {
        let kept = self.0.lock().unwrap();
        let known = kept.iter().find(|(of, on, _)| (of.as_str(), *on) == (likeness, units));
        known.map(|(_, _, found)| found.stages.clone())
    }

    fn keep(&self, likeness: &str, units: u32, found: &FoundSchedule) {
        self.0.lock().unwrap().push((likeness.into(), units, found.clone()));
    }
}

struct Served {
    engine: Engine,
    models: Vec<EngineModel>,
    seen: Arc<Seen>,
    kept: Arc<Kept>,
}

impl Served {
    fn new(said_us: fn(&[MixSegment]) -> f64, kept: Arc<Kept>) -> Self {
        Self::growing(said_us, 0, kept)
    }

    /// Two models that one core is said to be too slow for, so that they share both, and whose mixes take more with each run.
    fn growing(said_us: fn(&[MixSegment]) -> f64, bytes_per_run: usize, kept: Arc<Kept>) -> Self {
        let cpu = CpuDevice::new().expect("there is a CPU");
        let model = |name: &&str| {
            let mut model = support::model(&cpu, name, Some(2000.0), 2, |_| Span::from_us(1.0));
            let point = |units, us| {
                let latency = Span::from_us(us);
                ProfilePoint { batch: 1, units, latency, dram_bytes: 0.0 }
            };
            let points = [point(1, 1.9e6), point(2, 50e3)];
            model.served.profile = Arc::new(Profile::new(&points, 1 << 20).expect("a full grid"));
            model
        };
        let models: Vec<EngineModel> = NAMES.iter().map(model).collect();
        let on = EngineDevice {
            units: cpu.units().iter().take(2).collect(),
            device: Arc::new(MixingCpu { cpu, said_us, bytes_per_run }),
            bandwidth_bytes_per_s: 1e10,
            memory_bytes: 1 << 30,
            uses_background: false,
            schedules: Some(kept.clone()),
        };
        let seen = Arc::new(Seen::default());
        let weft = named("weft").expect("it is there");
        let make = Box::new(|served| weft.make(served));
        let engine = Engine::start(on, make, seen.clone()).expect("threads start");
        engine.serve(models.clone()).expect("they are prepared");
        Self { engine, models, seen, kept }
    }

    fn submit(&self, which: usize, inputs: Vec<Value>) -> Receiver<Result<Answer, InferError>> {
        let (answer, answered) = channel();
        let reply = Box::new(move |result| drop(answer.send(result)));
        let (model, claim) = (self.models[which].key, Claim::Promised);
        self.engine.submit(Submission { model, inputs, rows: 1, timeout: None, claim }, reply);
        answered
    }

    /// Asks both models at once, checks what they say, and rests for a while.
    fn round(&self, seed: u64) {
        let inputs = [inputs(NAMES[0], seed), inputs(NAMES[1], seed)];
        let answers = [0, 1].map(|which| self.submit(which, inputs[which].clone()));
        for (which, answer) in answers.into_iter().enumerate() {
            let answer = answer.recv().expect("an answer comes").expect("it is in time");
            assert_eq!(answer.outputs, self.alone(which, &inputs[which]), "{}", NAMES[which]);
        }
        thread::sleep(Duration::from_millis(4));
    }

    /// What a model says by itself on all units.
    fn alone(&self, which: usize, inputs: &[Value]) -> Vec<Value> {
        let loaded = &self.models[which].loaded;
        let cpu = CpuDevice::new().expect("there is a CPU");
        let units = cpu.units().iter().take(2).collect();
        let shapes: Vec<Vec<usize>> = inputs
            .iter()
            .map(|input| input.tensor().expect("it is a tensor").shape().to_vec())
            .collect();
        let partition = cpu.partition(&units).expect("there are such units");
        let executable = partition.prepare(&**loaded, &shapes).expect("it is prepared");
        executable.run(inputs).expect("it runs")
    }

    /// What the mix of both takes, as the device says.
    fn mix_bytes(&self) -> u64 {
        let cpu = CpuDevice::new().expect("there is a CPU");
        let member = |(model, name): (&EngineModel, &&str)| {
            let shapes = inputs(name, 0);
            let shapes = shapes.iter().map(|input| input.tensor().expect("it is one").shape());
            MixMember {
                model: model.loaded.clone(),
                shapes: shapes.map(<[usize]>::to_vec).collect(),
            }
        };
        let members: Vec<MixMember> = self.models.iter().zip(&NAMES).map(member).collect();
        let units = cpu.units().iter().take(2).collect();
        let mix = cpu.mix(&members, &units).expect("a CPU has mixes").expect("it is prepared");
        mix.memory_bytes() as u64
    }

    fn mixed(&self) -> usize {
        self.seen.launches.lock().unwrap().iter().filter(|launch| launch.is_mixed).count()
    }

    fn outcomes(&self) -> Vec<MixOutcome> {
        self.seen.outcomes.lock().unwrap().iter().map(|(_, outcome)| outcome.clone()).collect()
    }

    /// Sends rounds until something has happened.
    fn rounds_until(&self, has_happened: impl Fn(&Self) -> bool) {
        let begun = Instant::now();
        for seed in 0.. {
            assert!(begun.elapsed() < PATIENCE, "{:?}, {}", self.outcomes(), self.mixed());
            self.round(seed);
            if has_happened(self) {
                return;
            }
        }
    }
}

fn inputs(name: &str, seed: u64) -> Vec<Value> {
    let options = ZooOptions { seed, ..ZooOptions::default() };
    let tensors = sample_inputs(entry(name).expect("the zoo has it"), &options, 1, 8);
    tensors.expect("it takes them").into_iter().map(Value::from).collect()
}

#[test]
fn rounds_run_as_one_launch_once_they_are_regulated_and_schedules_are_kept() {
    let served = Served::new(faster, Arc::default());
    assert!(served.engine.status().units == 2, "this takes two cores");
    served.rounds_until(|served| served.mixed() >= 10);
    let outcomes = served.outcomes();
    let us = Duration::from_micros;
    assert_eq!(outcomes, [MixOutcome::Faster { latency: us(500), in_turns: us(1000) }]);
    let of: Models = served.models.iter().map(|model| (model.key, 1)).collect();
    assert_eq!(served.seen.outcomes.lock().unwrap()[0].0, of);
    {
        let launches = served.seen.launches.lock().unwrap();
        let mixed = launches.iter().find(|launch| launch.is_mixed).expect("there are ten");
        assert_eq!((mixed.rows, mixed.tenants, mixed.is_fused), (2, 2, false));
    }
    // One model alone is served as ever.
    for seed in 0..20 {
        let inputs = inputs(NAMES[1], seed);
        let answer =
            served.engine.infer(served.models[1].key, inputs.clone()).expect("it is served");
        assert_eq!(answer.outputs, served.alone(1, &inputs));
    }
    // Another server finds what this one has.
    let kept = served.kept.clone();
    assert_eq!(kept.0.lock().unwrap().len(), 1);
    drop(served);
    let again = Served::new(faster, kept.clone());
    again.rounds_until(|served| served.mixed() >= 3);
    assert!(kept.0.lock().unwrap().len() <= 2);
}

#[test]
fn who_works_for_a_mix_that_is_served_does_not_step_back() {
    let served = Served::new(faster, Arc::default());
    served.rounds_until(|served| served.mixed() >= 1);
    let own = getpriority_process(None).expect("it is told");
    let mut workers = 0;
    for thread in fs::read_dir("/proc/self/task").expect("there is one").flatten() {
        let name = fs::read_to_string(thread.path().join("comm")).unwrap_or_default();
        // Another test's may have gone by now.
        let id = thread.file_name().to_str().and_then(|id| Pid::from_raw(id.parse().ok()?));
        if let Ok(nice) = getpriority_process(id)
            && name.starts_with("weft-core-")
        {
            assert_eq!(nice, own, "{name}");
            workers += 1;
        }
    }
    // Those of the partition and those of the mix.
    assert!(workers >= 4, "{workers}");
}

#[test]
fn a_round_in_which_one_fails_is_no_mix() {
    let served = Served::new(faster, Arc::default());
    served.rounds_until(|served| served.mixed() >= 3);
    let fell_apart = || {
        let launches = served.seen.launches.lock().unwrap();
        launches.iter().any(|launch| launch.tenants == 2 && !launch.is_mixed)
    };
    let before = served.mixed();
    for seed in 0..10 {
        let right = inputs(NAMES[1], seed);
        let (wrong, other) = (served.submit(0, Vec::new()), served.submit(1, right.clone()));
        assert!(wrong.recv().expect("an answer comes").is_err());
        let answer = other.recv().expect("an answer comes").expect("its inputs are right");
        assert_eq!(answer.outputs, served.alone(1, &right));
        thread::sleep(Duration::from_millis(4));
    }
    assert!(fell_apart());
    assert_eq!(served.mixed(), before);
}

#[test]
fn what_gains_nothing_runs_apart_and_is_regulated_once() {
    let served = Served::new(slower, Arc::default());
    served.rounds_until(|served| !served.outcomes().is_empty());
    (0..60).for_each(|seed| served.round(seed));
    assert_eq!(served.outcomes(), [MixOutcome::NotFaster]);
    assert_eq!((served.mixed(), served.kept.0.lock().unwrap().len()), (0, 0));
}

#[test]
fn models_change_while_a_mix_is_regulated_and_while_it_is_used() {
    let served = Served::new(faster, Arc::default());
    for used in [0, 3] {
        served.rounds_until(|served| served.mixed() >= used);
        (0..20).for_each(|seed| served.round(seed));
        served.engine.serve(served.models[..1].to_vec()).expect("one of them is served");
        let inputs = inputs(NAMES[0], 1);
        let answer = served.engine.infer(served.models[0].key, inputs.clone()).expect("it answers");
        assert_eq!(answer.outputs, served.alone(0, &inputs));
        served.engine.serve(served.models.clone()).expect("both are served");
    }
    served.round(9);
}

#[test]
fn a_mix_for_which_there_is_no_room_is_none() {
    let served = Served::new(faster, Arc::default());
    let memory_bytes = served.mix_bytes();
    let free_bytes = memory_bytes - 1;
    served.engine.leave_to_mixes(free_bytes);
    served.rounds_until(|served| !served.outcomes().is_empty());
    (0..30).for_each(|seed| served.round(seed));
    assert_eq!(served.outcomes(), [MixOutcome::NoRoom { memory_bytes, free_bytes }]);
    assert_eq!((served.mixed(), served.engine.mix_memory_bytes()), (0, 0));

    let served = Served::new(faster, Arc::default());
    served.engine.leave_to_mixes(memory_bytes);
    served.rounds_until(|served| served.mixed() >= 3);
    assert_eq!(served.engine.mix_memory_bytes(), memory_bytes);
}

#[test]
fn a_mix_that_outgrows_its_room_while_it_is_regulated_is_given_up() {
    let served = Served::growing(faster, 1 << 10, Arc::default());
    let free_bytes = served.mix_bytes() + (10 << 10);
    served.engine.leave_to_mixes(free_bytes);
    served.rounds_until(|served| !served.outcomes().is_empty());
    let outcomes = served.outcomes();
    let [MixOutcome::NoRoom { memory_bytes, free_bytes: told_bytes }] = outcomes[..] else {
        panic!("{outcomes:?}")
    };
    assert!(memory_bytes > free_bytes && told_bytes == free_bytes, "{outcomes:?}");
    assert_eq!((served.mixed(), served.engine.mix_memory_bytes()), (0, 0));
}

#[test]
fn a_mix_is_let_go_of_where_models_need_its_room() {
    let served = Served::new(faster, Arc::default());
    served.rounds_until(|served| served.mixed() >= 3);
    let memory_bytes = served.mix_bytes();
    assert_eq!(served.engine.status().mixes.len(), 1);
    served.engine.leave_to_mixes(memory_bytes);
    assert_eq!(served.engine.mix_memory_bytes(), memory_bytes, "there is room");
    served.engine.leave_to_mixes(5);
    assert_eq!((served.engine.mix_memory_bytes(), served.engine.status().mixes.len()), (0, 0));
    let outcomes = served.outcomes();
    assert_eq!(outcomes.last(), Some(&MixOutcome::NoRoom { memory_bytes, free_bytes: 5 }));
    // Its rounds go on without it.
    let mixed = served.mixed();
    (0..30).for_each(|seed| served.round(seed));
    assert_eq!(served.mixed(), mixed);
}
