//! What fails, panics or is given up: the engine answers whoever waits, learns nothing wrong from it, and goes on.

mod support;

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use weft_cpu::CpuDevice;
use weft_device::{Device, DeviceDescription, DeviceError, LoadedModel, Partition, UnitSet};
use weft_engine::{
    Answer, Claim, Engine, EngineDevice, EngineModel, InferError, MakePolicy, ModelKey, StartError,
    Submission, Ticket, Unobserved,
};
use weft_ir::{Graph, Value};
use weft_scheduler::policies::{self, KnownPolicy};
use weft_scheduler::{Action, Event, Policy, Span, Time};
use weft_zoo::{ZooOptions, entry, sample_inputs};

const SHORT: &str = "tiny_mobilenet_v2";
const LONG: &str = "resnet18";
/// Of the long one at once: no machine is done with them before others come.
const ROWS: u32 = 8;

/// Longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(120);

fn known(name: &str) -> &'static KnownPolicy {
    policies::named(name).expect("it is there")
}

fn model(name: &str, slo_ms: Option<f64>) -> EngineModel {
    let device = CpuDevice::new().expect("there is a CPU");
    support::model(&device, name, slo_ms, ROWS, |_| Span::from_us(2000.0))
}

fn engine(device: Arc<dyn Device>, make: MakePolicy) -> Engine {
    let on = EngineDevice {
        // One unit, so that there is one partition.
        units: CpuDevice::new().expect("there is a CPU").units().iter().take(1).collect(),
        device,
        bandwidth_bytes_per_s: 1e10,
        memory_bytes: 1 << 30,
        uses_background: true,
        schedules: None,
    };
    Engine::start(on, make, Arc::new(Unobserved)).expect("threads start")
}

fn on_cpu(make: MakePolicy) -> Engine {
    engine(Arc::new(CpuDevice::new().expect("there is a CPU")), make)
}

fn inputs(name: &str, rows: u32) -> Vec<Value> {
    let zoo = entry(name).expect("the zoo has it");
    let tensors = sample_inputs(zoo, &ZooOptions::default(), rows as usize, 8);
    tensors.expect("it takes them").into_iter().map(Value::from).collect()
}

fn submit(
    engine: &Engine,
    model: ModelKey,
    name: &str,
    rows: u32,
) -> (Receiver<Result<Answer, InferError>>, Ticket) {
    let (answer, answered) = channel();
    let reply = Box::new(move |result| drop(answer.send(result)));
    let (inputs, claim) = (inputs(name, rows), Claim::Promised);
    let submission = Submission { model, inputs, rows, timeout: None, claim };
    (answered, engine.submit(submission, reply))
}

fn is_served(engine: &Engine, model: &EngineModel) {
    let (answered, _) = submit(engine, model.key, SHORT, 1);
    answered.recv_timeout(PATIENCE).expect("it is answered").expect("it is served");
}

/// What comes of serving models: whoever waits for ever is not waited for.
fn serve(engine: &Arc<Engine>, models: Vec<EngineModel>) -> Result<(), StartError> {
    let (done, is_done) = channel();
    let engine = engine.clone();
    thread::spawn(move || done.send(engine.serve(models)));
    is_done.recv_timeout(PATIENCE).expect("it ends")
}

/// A policy, what it is told, and what becomes of what it says.
struct Tapped {
    policy: Box<dyn Policy>,
    seen: Arc<Mutex<Vec<Event>>>,
    change: fn(&mut Action),
}

impl Policy for Tapped {
    fn name(&self) -> &'static str {
        self.policy.name()
    }

    fn react(&mut self, event: Event, now: Time, actions: &mut Vec<Action>) {
        self.seen.lock().unwrap().push(event.clone());
        self.policy.react(event, now, actions);
        actions.iter_mut().for_each(self.change);
    }
}

fn tapped(policy: &str, change: fn(&mut Action)) -> (MakePolicy, Arc<Mutex<Vec<Event>>>) {
    let seen = Arc::<Mutex<Vec<Event>>>::default();
    let (policy, also_seen) = (known(policy), seen.clone());
    let make: MakePolicy = Box::new(move |device| {
        Box::new(Tapped { policy: policy.make(device), seen: also_seen.clone(), change })
    });
    (make, seen)
}

#[test]
fn a_policy_is_told_of_launches_whose_callers_have_gone() {
    let (make, seen) = tapped("time-sharing", |_| {});
    let engine = on_cpu(make);
    let long = model(LONG, Some(600_000.0));
    engine.serve(vec![long.clone()]).expect("it is prepared");
    let (first, _) = submit(&engine, long.key, LONG, ROWS);
    let (gone, ticket) = submit(&engine, long.key, LONG, ROWS / 2);
    let (stays, _) = submit(&engine, long.key, LONG, ROWS / 2);
    ticket.cancel();
    let answer = |answered: Receiver<Result<Answer, InferError>>| {
        answered.recv_timeout(PATIENCE).expect("it is answered").expect("there is time")
    };
    assert_eq!((answer(first).batch, answer(stays).batch), (ROWS, ROWS / 2));
    assert!(gone.recv().is_err(), "nobody is answered");
    drop(engine);
    let seen = seen.lock().unwrap();
    let count = |is_it: fn(&Event) -> bool| seen.iter().filter(|event| is_it(event)).count();
    let thinned = count(|event| matches!(event, Event::Thinned(_)));
    assert_eq!((thinned, count(|event| matches!(event, Event::Finished(_)))), (1, 2));
}

/// A model that no device can prepare.
struct Panicking(Arc<dyn LoadedModel>);

impl LoadedModel for Panicking {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn graph(&self) -> &Graph {
        self.0.graph()
    }

    fn as_any(&self) -> &dyn Any {
        panic!("it is nothing that a device knows");
    }
}

fn panicking(slo_ms: Option<f64>) -> EngineModel {
    let mut model = model(SHORT, slo_ms);
    model.loaded = Arc::new(Panicking(model.loaded));
    model
}

#[test]
fn a_panic_while_a_model_is_made_ready_is_an_error_and_those_before_go_on() {
    let make: MakePolicy = Box::new(|device| known("weft").make(device));
    let engine = Arc::new(on_cpu(make));
    let good = model(SHORT, Some(60_000.0));
    serve(&engine, vec![good.clone()]).expect("it is prepared");
    for _ in 0..2 {
        let failed = serve(&engine, vec![good.clone(), panicking(Some(60_000.0))]);
        assert!(matches!(failed, Err(StartError::Device(_))), "{failed:?}");
        is_served(&engine, &good);
    }
    let other = model(SHORT, Some(60_000.0));
    serve(&engine, vec![good.clone(), other.clone()]).expect("they are prepared");
    is_served(&engine, &other);
}

#[test]
fn a_panic_while_partitions_are_planned_leaves_one_of_all_units() {
    // A search that finds less than it was promised.
    let (make, seen) = tapped("weft", |action| {
        if let Action::Plan(task) = action {
            task.spreads.clear();
            assert!(catch_unwind(AssertUnwindSafe(|| task.solve())).is_err());
        }
    });
    let engine = Arc::new(on_cpu(make));
    let model = model(SHORT, Some(60_000.0));
    serve(&engine, vec![model.clone()]).expect("it is prepared");
    is_served(&engine, &model);
    assert!(seen.lock().unwrap().contains(&Event::Unplanned));
}

#[test]
fn a_reply_that_panics_keeps_no_other_from_being_answered() {
    let make: MakePolicy = Box::new(|device| known("time-sharing").make(device));
    let engine = on_cpu(make);
    let model = model(SHORT, Some(60_000.0));
    engine.serve(vec![model.clone()]).expect("it is prepared");
    let (inputs, claim) = (inputs(SHORT, 1), Claim::Promised);
    let submission = Submission { model: model.key, inputs, rows: 1, timeout: None, claim };
    engine.submit(submission, Box::new(|_| panic!("this one does not want to know")));
    is_served(&engine, &model);
    is_served(&engine, &model);
}

/// A device that counts how often partitions of its background are opened.
struct Counted {
    device: CpuDevice,
    opened: Arc<AtomicUsize>,
}

impl Device for Counted {
    fn description(&self) -> DeviceDescription {
        self.device.description()
    }

    fn load(&self, name: &str, graph: &Graph) -> Result<Arc<dyn LoadedModel>, DeviceError> {
        self.device.load(name, graph)
    }

    fn partition(&self, units: &UnitSet) -> Result<Arc<dyn Partition>, DeviceError> {
        self.device.partition(units)
    }

    fn background_partition(
        &self,
        units: &UnitSet,
    ) -> Option<Result<Arc<dyn Partition>, DeviceError>> {
        self.opened.fetch_add(1, Ordering::Relaxed);
        self.device.background_partition(units)
    }
}

#[test]
fn what_was_made_ready_in_vain_is_not_kept() {
    let opened = Arc::<AtomicUsize>::default();
    let device = CpuDevice::new().expect("there is a CPU");
    let make: MakePolicy = Box::new(|device| known("time-sharing").make(device));
    let engine = engine(Arc::new(Counted { device, opened: opened.clone() }), make);
    let good = model(SHORT, Some(60_000.0));
    engine.serve(vec![good.clone()]).expect("it is prepared");
    let before = opened.load(Ordering::Relaxed);
    // A partition of the background is opened for the other, which then fails.
    for times in 1..=3 {
        let failed = engine.serve(vec![good.clone(), panicking(None)]);
        assert!(failed.is_err());
        assert_eq!(opened.load(Ordering::Relaxed) - before, times, "the one before is let go of");
    }
    is_served(&engine, &good);
}
