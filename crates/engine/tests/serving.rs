//! An engine on the CPU device, with every policy: answers are those of the model alone, whatever they were batched with.

mod support;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use weft_cpu::CpuDevice;
use weft_device::{Buckets, Device};
use weft_engine::{
    Answer, Claim, Engine, EngineDevice, EngineModel, InferError, ModelKey, StartError, Submission,
    Ticket, Unobserved,
};
use weft_ir::operators::layout::concat;
use weft_ir::{Dimensions, Tensor, Value};
use weft_scheduler::policies::{self, ALL, KnownPolicy};
use weft_scheduler::{Action, Event, Learned, Policy, Refusal, Span, Time};
use weft_zoo::{ZooOptions, build, entry, sample_inputs};

const NAMES: [&str; 2] = ["tiny_resnet", "tiny_mobilenet_v2"];

fn model(device: &CpuDevice, name: &str, slo_ms: Option<f64>) -> EngineModel {
    // What its profile says hardly matters here, but for the largest batch.
    support::model(device, name, slo_ms, 4, |batch| Span::from_us(1000.0 * f64::from(batch)))
}

struct Served {
    engine: Engine,
    models: Vec<EngineModel>,
}

impl Served {
    fn by(policy: &str, slo_ms: f64) -> Self {
        Self::with(policy, [Some(slo_ms); 2])
    }

    fn with(policy: &str, slos_ms: [Option<f64>; 2]) -> Self {
        let known = ALL.iter().find(|known| known.name == policy).expect("it is there");
        let device = Arc::new(CpuDevice::new().expect("there is a CPU"));
        let models = NAMES.iter().zip(slos_ms);
        let models: Vec<EngineModel> =
            models.map(|(name, slo_ms)| model(&device, name, slo_ms)).collect();
        let on = EngineDevice {
            units: device.units(),
            device,
            bandwidth_bytes_per_s: 1e10,
            memory_bytes: 1 << 30,
            uses_background: true,
            schedules: None,
        };
        let make = Box::new(|served| known.make(served));
        let engine = Engine::start(on, make, Arc::new(Unobserved)).expect("threads start");
        engine.serve(models.clone()).expect("they are prepared");
        Self { engine, models }
    }

    fn infer(&self, which: usize, inputs: Vec<Value>) -> Result<Answer, InferError> {
        self.engine.infer(self.models[which].key, inputs)
    }

    fn submit(
        &self,
        which: usize,
        (inputs, rows): (Vec<Value>, u32),
        timeout: Option<Duration>,
    ) -> (Receiver<Result<Answer, InferError>>, Ticket) {
        let (answer, answered) = channel();
        let reply = Box::new(move |result| drop(answer.send(result)));
        let (model, claim) = (self.models[which].key, Claim::Promised);
        let submission = Submission { model, inputs, rows, timeout, claim };
        (answered, self.engine.submit(submission, reply))
    }
}

fn inputs(name: &str, seed: u64) -> Vec<Value> {
    let options = ZooOptions { seed, ..ZooOptions::default() };
    let tensors = sample_inputs(entry(name).expect("the zoo has it"), &options, 1, 8);
    tensors.expect("it takes them").into_iter().map(Value::from).collect()
}

/// What a model says alone.
fn alone(name: &str, inputs: &[Value]) -> Vec<Value> {
    let device = CpuDevice::new().expect("there is a CPU");
    let graph = build(name, &ZooOptions::default()).expect("the zoo has it");
    let loaded = device.load(name, &graph).expect("it loads");
    let partition = device.partition(&device.units()).expect("it has units");
    let buckets = Buckets::prepare(&*partition, &*loaded, &[1], &Dimensions::batch(1));
    buckets.expect("it is prepared").run(inputs).expect("it runs")
}

fn difference(left: &[Value], right: &[Value]) -> f32 {
    let elements = |value: &Value| -> Vec<f32> {
        let tensor = value.tensor().expect("outputs are tensors");
        tensor.elements::<f32>().expect("of floats").to_vec()
    };
    let pairs = left.iter().zip(right);
    pairs
        .flat_map(|(left, right)| {
            let both: Vec<_> = elements(left).into_iter().zip(elements(right)).collect();
            both.into_iter().map(|(left, right)| (left - right).abs())
        })
        .fold(0.0, f32::max)
}

#[test]
fn many_callers_get_their_own_answers_under_every_policy() {
    let expected: Vec<Vec<Vec<Value>>> = NAMES
        .iter()
        .map(|name| (0..4).map(|seed| alone(name, &inputs(name, seed))).collect())
        .collect();
    for KnownPolicy { name: policy, .. } in ALL {
        let served = Served::by(policy, 60_000.0);
        thread::scope(|scope| {
            for caller in 0..4u64 {
                let (served, expected) = (&served, &expected);
                scope.spawn(move || {
                    for round in 0..6 {
                        let which = (caller as usize + round) % NAMES.len();
                        let answer = served.infer(which, inputs(NAMES[which], caller));
                        let answer = answer.unwrap_or_else(|error| panic!("{policy}: {error}"));
                        let off = difference(&answer.outputs, &expected[which][caller as usize]);
                        assert!(off < 1e-4, "{policy}: off by {off}");
                    }
                });
            }
        });
    }
}

#[test]
fn rows_that_came_together_are_answered_together() {
    let name = NAMES[0];
    let alone: Vec<Vec<Value>> = (0..7).map(|seed| alone(name, &inputs(name, seed))).collect();
    let tensors: Vec<Tensor> = (0..7)
        .map(|seed| inputs(name, seed).remove(0).into_tensor().expect("it is a tensor"))
        .collect();
    let together = concat(&tensors.iter().collect::<Vec<_>>(), 0).expect("they are alike");
    let expected: Vec<&Tensor> = alone.iter().map(|one| one[0].tensor().unwrap()).collect();
    let expected = concat(&expected, 0).expect("they are alike");
    for KnownPolicy { name: policy, .. } in ALL {
        let served = Served::by(policy, 60_000.0);
        let (answered, _) = served.submit(0, (vec![together.clone().into()], 7), None);
        let answer = answered.recv().unwrap().unwrap_or_else(|error| panic!("{policy}: {error}"));
        assert_eq!(answer.outputs[0].tensor().unwrap().shape(), expected.shape(), "{policy}");
        let off = difference(&answer.outputs, &[expected.clone().into()]);
        assert!(off < 1e-4, "{policy}: off by {off}");
    }
}

#[test]
fn what_cannot_be_in_time_is_refused_and_says_why() {
    let served = Served::by("weft", 60_000.0);
    served.infer(0, inputs(NAMES[0], 0)).expect("there is time");
    let hurry = Some(Duration::from_micros(5));
    let (answered, _) = served.submit(0, (inputs(NAMES[0], 0), 1), hurry);
    let refused = answered.recv().expect("an answer comes").unwrap_err();
    assert!(matches!(refused, InferError::Refused(Refusal::TooLate { .. })), "{refused}");
    let unknown = served.engine.infer(ModelKey::unused(), Vec::new()).unwrap_err();
    assert!(matches!(unknown, InferError::NotServed));
}

#[test]
fn a_full_queue_takes_in_no_more() {
    let served = Served::by("weft", 60_000.0);
    let mut models = served.models.clone();
    models[0].limits.max_queue = 3;
    served.engine.serve(models).expect("they are prepared");
    // The first one runs; whatever it leaves waiting, a burst finds the queue full before the end of it.
    let submitted: Vec<_> =
        (0..200).map(|_| served.submit(0, (inputs(NAMES[0], 0), 1), None)).collect();
    let outcomes: Vec<_> =
        submitted.iter().map(|(answered, _)| answered.recv().expect("an answer comes")).collect();
    let is_full = |outcome: &&Result<Answer, InferError>| {
        matches!(outcome, Err(InferError::Refused(Refusal::QueueFull)))
    };
    let refused = outcomes.iter().filter(is_full).count();
    assert!(refused > 0 && outcomes.iter().all(|outcome| outcome.is_ok() || is_full(&outcome)));
    served.infer(0, inputs(NAMES[0], 0)).expect("there is room again");
    served.infer(1, inputs(NAMES[1], 0)).expect("others have queues of their own");
}

#[test]
fn a_models_timeout_counts_where_a_request_names_none() {
    let served = Served::with("weft", [None; 2]);
    let mut models = served.models.clone();
    models[0].limits.timeout = Some(Duration::from_nanos(1));
    served.engine.serve(models).expect("they are prepared");
    let refused = served.infer(0, inputs(NAMES[0], 0)).unwrap_err();
    assert!(matches!(refused, InferError::Refused(Refusal::TooLate { .. })), "{refused}");
    let patient = Some(Duration::from_secs(60));
    let (answered, _) = served.submit(0, (inputs(NAMES[0], 0), 1), patient);
    answered.recv().expect("an answer comes").expect("it has time");
}

#[test]
fn who_claims_nothing_is_promised_nothing() {
    let served = Served::by("weft", 0.001);
    let submit = |claim| {
        let (answer, answered) = channel();
        let reply = Box::new(move |result| drop(answer.send(result)));
        let (model, inputs) = (served.models[0].key, inputs(NAMES[0], 0));
        let ticket = served
            .engine
            .submit(Submission { model, inputs, rows: 1, timeout: None, claim }, reply);
        (answered.recv().expect("an answer comes"), ticket.allowed())
    };
    let (refused, allowed) = submit(Claim::Promised);
    assert!(refused.is_err() && allowed.is_some(), "no model takes a microsecond");
    let (answered, allowed) = submit(Claim::BestEffort);
    answered.expect("it has time");
    assert_eq!(allowed, None);
}

#[test]
fn wrong_inputs_fail_their_caller_alone() {
    let served = Served::by("time-sharing", 60_000.0);
    let wrong = served.infer(0, Vec::new()).unwrap_err();
    assert!(matches!(wrong, InferError::Device(_)), "{wrong}");
    served.infer(0, inputs(NAMES[0], 0)).expect("others are served");
}

#[test]
fn a_cancelled_request_is_not_answered_and_holds_up_no_one() {
    let served = Served::by("weft", 60_000.0);
    let submitted: Vec<_> =
        (0..16).map(|seed| served.submit(1, (inputs(NAMES[1], seed), 1), None)).collect();
    for (_, ticket) in submitted.iter().skip(1).step_by(2) {
        ticket.cancel();
    }
    for (answered, _) in submitted.iter().step_by(2) {
        assert!(answered.recv().expect("nobody cancelled it").is_ok());
    }
    for (answered, _) in submitted.iter().skip(1).step_by(2) {
        // It may have run before it was cancelled.
        if let Ok(answer) = answered.recv() {
            assert!(answer.is_ok());
        }
    }
    served.infer(1, inputs(NAMES[1], 0)).expect("others are served");
}

#[test]
fn an_engine_that_stops_ends_what_it_accepted() {
    let served = Served::by("weft", 60_000.0);
    let submitted: Vec<_> =
        (0..8).map(|seed| served.submit(1, (inputs(NAMES[1], seed), 1), None)).collect();
    drop(served);
    for (answered, _) in submitted {
        assert!(answered.recv().expect("it was accepted").is_ok());
    }
}

#[test]
fn models_come_and_go_while_others_are_served() {
    for KnownPolicy { name: policy, .. } in ALL {
        let served = Served::by(policy, 60_000.0);
        let expected = alone(NAMES[0], &inputs(NAMES[0], 1));
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            let callers: Vec<_> = (0..3)
                .map(|_| {
                    scope.spawn(|| {
                        let mut count = 0;
                        while !is_over.load(Ordering::Relaxed) {
                            let answer = served.infer(0, inputs(NAMES[0], 1));
                            let answer = answer.unwrap_or_else(|error| panic!("{policy}: {error}"));
                            assert!(difference(&answer.outputs, &expected) < 1e-4);
                            count += 1;
                        }
                        count
                    })
                })
                .collect();
            for _ in 0..4 {
                served.engine.serve(vec![served.models[0].clone()]).expect("it is prepared");
                let gone = served.infer(1, inputs(NAMES[1], 0)).unwrap_err();
                assert!(matches!(gone, InferError::NotServed), "{policy}: {gone}");
                served.engine.serve(served.models.clone()).expect("they are prepared");
                served.infer(1, inputs(NAMES[1], 0)).expect("it is back");
            }
            is_over.store(true, Ordering::Relaxed);
            let answered: u32 = callers.into_iter().map(|caller| caller.join().unwrap()).sum();
            assert!(answered > 0, "{policy}");
        });
    }
}

#[test]
fn models_that_cannot_be_prepared_leave_those_before() {
    let served = Served::by("weft", 60_000.0);
    let mut broken = served.models[1].clone();
    broken.key = ModelKey::unused();
    broken.dimensions = Dimensions { batch: 1, named: [("N".into(), 0)].into(), otherwise: None };
    let device = CpuDevice::new().expect("there is a CPU");
    let graph = build("tiny_bert", &ZooOptions::default()).expect("the zoo has it");
    broken.loaded = device.load("tiny_bert", &graph).expect("it loads");
    let with_broken = vec![served.models[0].clone(), broken];
    assert!(matches!(served.engine.serve(with_broken), Err(StartError::Device(_))));
    served.infer(0, inputs(NAMES[0], 0)).expect("it is served as before");
    served.infer(1, inputs(NAMES[1], 0)).expect("it is served as before");
}

#[test]
fn models_without_an_objective_run_in_the_background_of_the_others() {
    let served = Served::with("weft", [Some(60_000.0), None]);
    let layers = |served: &Served| {
        let mut layers: Vec<(Vec<ModelKey>, bool)> = served
            .engine
            .status()
            .partitions
            .into_iter()
            .map(|partition| (partition.models, partition.is_background))
            .collect();
        layers.dedup();
        layers
    };
    let [promised, other] = [served.models[0].key, served.models[1].key];
    assert_eq!(layers(&served), [(vec![promised], false), (vec![other], true)]);
    for (which, name) in NAMES.iter().enumerate() {
        let answer = served.infer(which, inputs(name, 3)).expect("it is served");
        assert!(difference(&answer.outputs, &alone(name, &inputs(name, 3))) < 1e-4);
    }
    let alone = Served::with("weft", [None, None]);
    assert!(alone.engine.status().partitions.iter().all(|partition| !partition.is_background));
    served.engine.serve(vec![served.models[1].clone()]).expect("it is prepared");
    assert_eq!(layers(&served), [(vec![other], false)]);
}

/// A policy that says of which models it knows something before it starts.
struct Heir {
    policy: Box<dyn Policy>,
    knows: Arc<Mutex<Vec<Vec<bool>>>>,
}

impl Policy for Heir {
    fn name(&self) -> &'static str {
        self.policy.name()
    }

    fn learned(&self) -> Learned {
        self.policy.learned()
    }

    fn start_from(&mut self, learned: Learned) {
        let knows = learned.models.iter().map(Option::is_some).collect();
        self.knows.lock().unwrap().push(knows);
        self.policy.start_from(learned);
    }

    fn react(&mut self, event: Event, now: Time, actions: &mut Vec<Action>) {
        self.policy.react(event, now, actions);
    }
}

#[test]
fn what_was_learned_of_models_that_stay_is_handed_on() {
    let device = Arc::new(CpuDevice::new().expect("there is a CPU"));
    let model = |slo_ms| model(&device, NAMES[0], Some(slo_ms));
    let (stays, goes, comes) = (model(60_000.0), model(60_000.0), model(60_000.0));
    let mut is_other = model(60_000.0);
    let on = EngineDevice {
        units: device.units(),
        device: device.clone(),
        bandwidth_bytes_per_s: 1e10,
        memory_bytes: 1 << 30,
        uses_background: false,
        schedules: None,
    };
    let knows = Arc::<Mutex<Vec<Vec<bool>>>>::default();
    let told = knows.clone();
    let make = Box::new(move |served| -> Box<dyn Policy> {
        let policy = policies::named("weft").expect("it is there").make(served);
        Box::new(Heir { policy, knows: told.clone() })
    });
    let engine = Engine::start(on, make, Arc::new(Unobserved)).expect("threads start");
    let serve = |models: &[&EngineModel]| {
        let models = models.iter().map(|model| (*model).clone()).collect();
        engine.serve(models).expect("they are prepared");
        knows.lock().unwrap().pop().expect("it is told")
    };
    assert!(!serve(&[&goes, &stays, &is_other]).contains(&true));
    // The same model, and how long it takes is another matter.
    let half = |batch| Span::from_us(500.0 * f64::from(batch));
    is_other.served = support::model(&device, NAMES[0], Some(60_000.0), 4, half).served;
    assert_eq!(serve(&[&comes, &stays, &is_other]), [false, true, false]);
}
