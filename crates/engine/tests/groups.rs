//! Groups on the CPU device: tenants of one architecture share launches, and each gets what its model says alone.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use weft_cpu::CpuDevice;
use weft_device::{
    Buckets, Device, DeviceDescription, DeviceError, Executable, LoadedModel, Partition, UnitSet,
};
use weft_engine::{
    Answer, Claim, Engine, EngineDevice, EngineModel, InferError, LaunchRecord, MakePolicy,
    Membership, ModelKey, ModelLimits, Observer, Profiling, Submission, Unobserved, measure_group,
};
use weft_ir::operators::layout::concat;
use weft_ir::{Dimensions, Graph, Tensor, Value};
use weft_scheduler::plan::Slo;
use weft_scheduler::policies::{ALL, KnownPolicy};
use weft_scheduler::{
    Action, Event, GroupId, ModelId, Policy, Profile, ProfilePoint, ServedModel, Span, Time,
};
use weft_zoo::{ZooOptions, build, entries, entry, sample_inputs};

const MODEL: &str = "tiny_resnet";
const TENANTS: usize = 3;
const ENTRIES: u32 = 8;

fn graph(name: &str, seed: u64) -> Graph {
    build(name, &ZooOptions { seed, ..ZooOptions::default() }).expect("the zoo has it")
}

fn inputs(seed: u64, rows: usize) -> Vec<Value> {
    let options = ZooOptions { seed, ..ZooOptions::default() };
    let tensors = sample_inputs(entry(MODEL).expect("the zoo has it"), &options, rows, 8);
    tensors.expect("it takes them").into_iter().map(Value::from).collect()
}

/// A profile by which a batch takes so long on one unit and on any number.
fn profile(us: impl Fn(u32) -> f64) -> Arc<Profile> {
    let point = |batch| {
        let latency = Span::from_us(us(batch));
        ProfilePoint { batch, units: 1, latency, dram_bytes: 0.0 }
    };
    Arc::new(Profile::new(&[point(1), point(ENTRIES)], 1 << 20).expect("a full grid"))
}

/// What launches there were, and whose entries were in them.
#[derive(Default)]
struct Seen {
    launches: Mutex<Vec<LaunchRecord>>,
    parts: Mutex<Vec<(ModelKey, u32)>>,
    evicted: Mutex<Vec<(ModelKey, Duration)>>,
}

impl Observer for Seen {
    fn launch_ended(&self, launch: &LaunchRecord) {
        self.launches.lock().unwrap().push(*launch);
    }

    fn took_part(&self, model: ModelKey, rows: u32, _: &LaunchRecord) {
        self.parts.lock().unwrap().push((model, rows));
    }

    fn evicted(&self, model: ModelKey, length: Duration) {
        self.evicted.lock().unwrap().push((model, length));
    }
}

struct Served {
    engine: Engine,
    models: Vec<EngineModel>,
    seen: Arc<Seen>,
}

impl Served {
    /// Tenants of one group on so many units, by a policy and a profile of their fused launches. One by itself is said to
    /// take a millisecond.
    fn by(policy: &str, fused: Arc<Profile>, units: usize) -> Self {
        let known = ALL.iter().find(|known| known.name == policy).expect("it is there");
        Self::made(Box::new(|served| known.make(served)), fused, units)
    }

    fn made(make: MakePolicy, fused: Arc<Profile>, units: usize) -> Self {
        let device = Arc::new(CpuDevice::new().expect("there is a CPU"));
        let apart = profile(|batch| 1000.0 * f64::from(batch));
        let membership = Membership::new(GroupId(7), ENTRIES, apart.clone(), fused);
        let model = |seed| {
            let latency = Span::from_us(60e6);
            let served = ServedModel {
                profile: apart.clone(),
                slo: Some(Slo { percentile: 0.99, latency }),
                expected_per_s: 100.0,
                weight: 1.0,
                priority: 0,
                group: None,
            };
            let model = EngineModel {
                key: ModelKey::unused(),
                loaded: device.load(MODEL, &graph(MODEL, seed)).expect("it loads"),
                dimensions: Dimensions::batch(1),
                served,
                limits: ModelLimits::default(),
                group: None,
            };
            model.in_group(membership.clone())
        };
        let models: Vec<EngineModel> = (0..TENANTS as u64).map(model).collect();
        let on = EngineDevice {
            units: device.units().iter().take(units).collect(),
            device,
            bandwidth_bytes_per_s: 1e10,
            memory_bytes: 1 << 30,
            uses_background: true,
            schedules: None,
        };
        let seen = Arc::new(Seen::default());
        let engine = Engine::start(on, make, seen.clone()).expect("threads start");
        engine.serve(models.clone()).expect("they are prepared");
        Self { engine, models, seen }
    }

    fn fused(policy: &str, units: usize) -> Self {
        Self::by(policy, profile(|batch| 900.0 + 50.0 * f64::from(batch)), units)
    }

    fn submit(&self, tenant: usize, inputs: Vec<Value>, rows: u32) -> Receiver<Outcome> {
        let (answer, answered) = channel();
        let reply = Box::new(move |result| drop(answer.send(result)));
        let (model, claim) = (self.models[tenant].key, Claim::Promised);
        self.engine.submit(Submission { model, inputs, rows, timeout: None, claim }, reply);
        answered
    }

    fn ask(&self, tenant: usize, inputs: Vec<Value>, rows: u32) -> Outcome {
        self.submit(tenant, inputs, rows).recv().expect("an answer comes")
    }

    /// Launches with requests of several tenants, and those that were fused.
    fn counts(&self) -> (usize, usize) {
        let launches = self.seen.launches.lock().unwrap();
        let count = |which: fn(&&LaunchRecord) -> bool| launches.iter().filter(which).count();
        (count(|launch| launch.tenants > 1), count(|launch| launch.is_fused))
    }
}

type Outcome = Result<Answer, InferError>;

/// What each tenant's model says alone, on one unit: more of them may compute it by other kernels.
struct Alone(Vec<Buckets>);

impl Alone {
    fn new() -> Self {
        let device = CpuDevice::new().expect("there is a CPU");
        let unit = device.units().iter().take(1).collect();
        let partition = device.partition(&unit).expect("it has units");
        let prepare = |seed| {
            let loaded = device.load(MODEL, &graph(MODEL, seed)).expect("it loads");
            let buckets = Buckets::prepare(&*partition, &*loaded, &[1], &Dimensions::batch(1));
            buckets.expect("it is prepared")
        };
        Self((0..TENANTS as u64).map(prepare).collect())
    }

    fn says(&self, tenant: usize, inputs: &[Value]) -> Vec<Value> {
        self.0[tenant].run(inputs).expect("it runs")
    }
}

/// Inputs one below the other.
fn together(seeds: &[u64]) -> Vec<Value> {
    let row = |&seed: &u64| inputs(seed, 1).remove(0).into_tensor().expect("it is a tensor");
    let rows: Vec<Tensor> = seeds.iter().map(row).collect();
    vec![concat(&rows.iter().collect::<Vec<_>>(), 0).expect("they are alike").into()]
}

#[test]
fn structures_are_told_apart_and_weights_are_not() {
    let mut seen = Vec::new();
    for entry in entries().filter(|entry| entry.name.starts_with("tiny_")) {
        let name = entry.name;
        let structure = graph(name, 1).structure();
        assert_eq!(graph(name, 2).structure(), structure, "{name}");
        assert!(!seen.contains(&structure), "{name}");
        seen.push(structure);
    }
    assert!(seen.len() > 5);
}

/// To the bit on one unit, and closely on several.
fn assert_says(answer: &Answer, expected: &[Value], units: usize) {
    if units == 1 {
        return assert_eq!(answer.outputs, expected);
    }
    let elements =
        |values: &[Value]| values[0].tensor().unwrap().elements::<f32>().unwrap().to_vec();
    let (said, expected) = (elements(&answer.outputs), elements(expected));
    assert_eq!(said.len(), expected.len());
    for (said, expected) in said.into_iter().zip(expected) {
        assert!((said - expected).abs() < 1e-4, "{said} instead of {expected}");
    }
}

#[test]
fn tenants_get_their_own_answers_under_every_policy() {
    let alone = Alone::new();
    let everywhere = ALL.iter().map(|KnownPolicy { name, .. }| (*name, usize::MAX));
    for (policy, units) in everywhere.chain([("weft", 1), ("time-sharing", 1)]) {
        let served = Served::fused(policy, units);
        thread::scope(|scope| {
            for caller in 0..6u64 {
                let (served, alone) = (&served, &alone);
                scope.spawn(move || {
                    for round in 0..5 {
                        let tenant = (caller + round) as usize % TENANTS;
                        let given = inputs(caller, 1);
                        let answer = served.ask(tenant, given.clone(), 1);
                        let answer = answer.unwrap_or_else(|error| panic!("{policy}: {error}"));
                        assert_says(&answer, &alone.says(tenant, &given), units);
                    }
                });
            }
        });
        let rows: u32 = served.seen.parts.lock().unwrap().iter().map(|(_, rows)| rows).sum();
        assert_eq!(rows, 30, "{policy}: every entry is counted for its model");
    }
}

#[test]
fn a_launch_takes_requests_of_several_tenants_where_that_is_faster() {
    let alone = Alone::new();
    for (is_fused, fused) in [
        (true, profile(|batch| 900.0 + 50.0 * f64::from(batch))),
        (false, profile(|batch| 2000.0 * f64::from(batch))),
    ] {
        let served = Served::by("weft", fused, 1);
        let given: Vec<_> =
            (0..60).map(|seed| (seed as usize % TENANTS, inputs(seed, 1))).collect();
        let requests: Vec<_> = given
            .into_iter()
            .map(|(tenant, given)| (tenant, given.clone(), served.submit(tenant, given, 1)))
            .collect();
        for (tenant, given, answered) in requests {
            let answer = answered.recv().unwrap().expect("there is time");
            assert_eq!(answer.outputs, alone.says(tenant, &given));
        }
        let (shared, fused) = served.counts();
        // Where fusing gains nothing, neither does it to gather requests.
        assert_eq!((shared > 0, fused > 0), (is_fused, is_fused));
    }
}

#[test]
fn rows_that_came_together_are_answered_together() {
    let alone = Alone::new();
    let seeds: Vec<u64> = (0..11).collect();
    for policy in ["weft", "time-sharing"] {
        let served = Served::fused(policy, 1);
        let answers: Vec<_> =
            (0..TENANTS).map(|tenant| served.submit(tenant, together(&seeds), 11)).collect();
        for (tenant, answered) in answers.into_iter().enumerate() {
            let answer = answered.recv().unwrap().expect("there is time");
            assert_eq!(answer.outputs, alone.says(tenant, &together(&seeds)), "{policy}");
        }
    }
}

#[test]
fn wrong_inputs_fail_their_tenant_alone() {
    let alone = Alone::new();
    let served = Served::fused("weft", 1);
    for _ in 0..4 {
        let right: Vec<_> = (0..2).map(|seed| served.submit(0, inputs(seed, 1), 1)).collect();
        let wrong = [
            served.submit(1, Vec::new(), 1),
            served.submit(1, vec![Tensor::vector(vec![1f32]).into()], 1),
            served.submit(1, inputs(0, 1), 3),
            served.submit(1, Vec::new(), 3),
        ];
        let after: Vec<_> = (0..2).map(|seed| served.submit(2, together(&[seed, 9]), 2)).collect();
        for (seed, answered) in right.into_iter().enumerate() {
            let answer = answered.recv().unwrap().expect("its inputs are right");
            assert_eq!(answer.outputs, alone.says(0, &inputs(seed as u64, 1)));
        }
        for answered in wrong {
            let error = answered.recv().unwrap().expect_err("its inputs are wrong");
            assert!(matches!(error, InferError::Device(_)), "{error}");
        }
        for (seed, answered) in after.into_iter().enumerate() {
            let answer = answered.recv().unwrap().expect("its inputs are right");
            assert_eq!(answer.outputs, alone.says(2, &together(&[seed as u64, 9])));
        }
    }
}

/// Ends those who ask again and again, whatever happens.
struct End<'a>(&'a AtomicBool);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn members_come_and_go_while_others_are_served() {
    let alone = Alone::new();
    for KnownPolicy { name: policy, .. } in ALL {
        let served = Served::fused(policy, usize::MAX);
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            let _end = End(&is_over);
            for caller in 0..3u64 {
                let (served, alone, is_over) = (&served, &alone, &is_over);
                scope.spawn(move || {
                    let given = inputs(caller, 1);
                    let expected = alone.says(0, &given);
                    while !is_over.load(Ordering::Relaxed) {
                        let answer = served.ask(0, given.clone(), 1);
                        let answer = answer.unwrap_or_else(|error| panic!("{policy}: {error}"));
                        assert_says(&answer, &expected, usize::MAX);
                    }
                });
            }
            // The first stays, whoever made the group.
            let [first, second, third] = [0, 1, 2].map(|tenant| served.models[tenant].clone());
            for models in [
                vec![first.clone()],
                vec![second.clone(), first.clone()],
                vec![third.clone(), first.clone()],
                vec![third, second, first],
            ] {
                let keys: Vec<ModelKey> = models.iter().map(|model| model.key).collect();
                served.engine.serve(models).expect("they are prepared");
                for (tenant, model) in served.models.iter().enumerate() {
                    let outcome = served.ask(tenant, inputs(5, 1), 1);
                    match (keys.contains(&model.key), outcome) {
                        (true, Ok(answer)) => {
                            let expected = alone.says(tenant, &inputs(5, 1));
                            assert_says(&answer, &expected, usize::MAX);
                        }
                        (false, Err(InferError::NotServed)) => {}
                        (_, outcome) => panic!("{policy}: {outcome:?}"),
                    }
                }
            }
        });
    }
}

#[test]
fn a_group_is_measured_with_weights_that_differ() {
    let device = CpuDevice::new().expect("there is a CPU");
    let load = |seed| device.load(MODEL, &graph(MODEL, seed)).expect("it loads");
    let members: Vec<Arc<dyn LoadedModel>> = (0..3).map(load).collect();
    let units = device.units().iter().take(2).collect();
    let profiling = Profiling {
        units: &units,
        dimensions: &Dimensions::batch(1),
        largest_batch: ENTRIES,
        time_per_case: Duration::from_millis(1),
    };
    let profile = measure_group(&device, &members, &profiling, |_| {}).expect("they are alike");
    assert_eq!(profile.batches(), [1, 2, 4, 8]);
    assert!(profile.memory_bytes > 1000);
    let other = device.load("other", &graph("tiny_mobilenet_v2", 0)).expect("it loads");
    let members = [members[0].clone(), other];
    assert!(measure_group(&device, &members, &profiling, |_| {}).is_err());
    assert!(measure_group(&device, &[], &profiling, |_| {}).is_err());
}

/// A device without groups.
struct Plain(CpuDevice);

impl Device for Plain {
    fn description(&self) -> DeviceDescription {
        self.0.description()
    }

    fn load(&self, name: &str, graph: &Graph) -> Result<Arc<dyn LoadedModel>, DeviceError> {
        self.0.load(name, graph)
    }

    fn partition(&self, units: &UnitSet) -> Result<Arc<dyn Partition>, DeviceError> {
        Ok(Arc::new(PlainPartition(self.0.partition(units)?)))
    }
}

struct PlainPartition(Arc<dyn Partition>);

impl Partition for PlainPartition {
    fn units(&self) -> &UnitSet {
        self.0.units()
    }

    fn prepare(
        &self,
        model: &dyn LoadedModel,
        shapes: &[Vec<usize>],
    ) -> Result<Box<dyn Executable>, DeviceError> {
        self.0.prepare(model, shapes)
    }
}

#[test]
fn a_device_without_groups_says_so() {
    let device = Arc::new(Plain(CpuDevice::new().expect("there is a CPU")));
    assert!(!device.has_groups() && device.0.has_groups());
    let units = device.0.units();
    let on = EngineDevice {
        device,
        units,
        bandwidth_bytes_per_s: 1e10,
        memory_bytes: 1 << 30,
        uses_background: false,
        schedules: None,
    };
    let known = ALL.iter().find(|known| known.name == "weft").expect("it is there");
    let make = Box::new(|served| known.make(served));
    let engine = Engine::start(on, make, Arc::new(Unobserved)).expect("threads start");
    let models = Served::fused("weft", 1).models;
    let error = engine.serve(models).expect_err("it has no groups").to_string();
    assert!(error.contains("the device has no groups"), "{error}");
}

/// Evicts the second of its models for a minute when a request comes.
struct Evicting(Box<dyn Policy>);

impl Policy for Evicting {
    fn name(&self) -> &'static str {
        "evicting"
    }

    fn is_evicted(&self, model: ModelId, _: Time) -> bool {
        model == ModelId(1)
    }

    fn react(&mut self, event: Event, now: Time, actions: &mut Vec<Action>) {
        if matches!(event, Event::Arrived(_)) {
            let until = now + Span::from_s(60.0);
            actions.push(Action::Evicted { model: ModelId(1), until });
        }
        self.0.react(event, now, actions);
    }
}

#[test]
fn evictions_are_told_and_seen() {
    let weft = ALL.iter().find(|known| known.name == "weft").expect("it is there");
    let make = Box::new(|served| Box::new(Evicting(weft.make(served))) as Box<dyn Policy>);
    let served = Served::made(make, profile(|_| 1000.0), 1);
    served.engine.infer(served.models[0].key, inputs(1, 1)).expect("it is answered");
    let second = served.models[1].key;
    assert_eq!(*served.seen.evicted.lock().unwrap(), [(second, Duration::from_secs(60))]);
    let status = served.engine.status();
    let evicted = status.models.iter().filter(|model| model.is_evicted);
    assert_eq!(evicted.map(|model| model.model).collect::<Vec<_>>(), [second]);
}
