//! An engine on the CPU device, with every policy: answers are those of the model alone, whatever they were batched with.

use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use weft_cpu::CpuDevice;
use weft_device::{Buckets, Device};
use weft_engine::{Engine, EngineDevice, EngineModel, InferError};
use weft_ir::{Dimensions, Value};
use weft_scheduler::plan::Slo;
use weft_scheduler::policies::{ALL, KnownPolicy};
use weft_scheduler::{Profile, ProfilePoint, Refusal, ServedModel, Span};
use weft_zoo::{ZooOptions, build, entry, sample_inputs};

const NAMES: [&str; 2] = ["tiny_resnet", "tiny_mobilenet_v2"];

fn model(device: &CpuDevice, name: &str, slo_ms: f64) -> EngineModel {
    let graph = build(name, &ZooOptions::default()).expect("the zoo has it");
    // What it says hardly matters here, but for the largest batch.
    let point = |batch| ProfilePoint {
        batch,
        units: 1,
        latency: Span::from_us(1000.0 * f64::from(batch)),
        dram_bytes: 0.0,
    };
    EngineModel {
        loaded: device.load(name, &graph).expect("it loads"),
        dimensions: Dimensions::batch(1),
        served: ServedModel {
            profile: Arc::new(Profile::new(&[point(1), point(4)], 1 << 20).expect("a full grid")),
            slo: Some(Slo { percentile: 0.99, latency: Span::from_us(slo_ms * 1e3) }),
            expected_per_s: 100.0,
            weight: 1.0,
            priority: 0,
        },
    }
}

fn engine(known: &'static KnownPolicy, slo_ms: f64) -> Engine {
    let device = Arc::new(CpuDevice::new().expect("there is a CPU"));
    let models = NAMES.map(|name| model(&device, name, slo_ms)).to_vec();
    let on = EngineDevice {
        units: device.units(),
        device,
        bandwidth_bytes_per_s: 1e10,
        memory_bytes: 1 << 30,
    };
    Engine::start(on, models, |served| known.make(served)).expect("threads start")
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
    for known in ALL {
        let engine = engine(known, 60_000.0);
        thread::scope(|scope| {
            for caller in 0..4u64 {
                let (engine, expected) = (&engine, &expected);
                scope.spawn(move || {
                    for round in 0..6 {
                        let which = (caller as usize + round) % NAMES.len();
                        let answer = engine.infer(NAMES[which], inputs(NAMES[which], caller));
                        let answer =
                            answer.unwrap_or_else(|error| panic!("{}: {error}", known.name));
                        let off = difference(&answer, &expected[which][caller as usize]);
                        assert!(off < 1e-4, "{}: off by {off}", known.name);
                    }
                });
            }
        });
    }
}

#[test]
fn what_cannot_be_in_time_is_refused_and_says_why() {
    let known = ALL.iter().find(|known| known.name == "weft").expect("it is there");
    let engine = engine(known, 60_000.0);
    engine.infer(NAMES[0], inputs(NAMES[0], 0)).expect("there is time");
    let (answer, answered) = channel();
    let reply = Box::new(move |result| answer.send(result).expect("somebody waits"));
    let id = engine.model(NAMES[0]).expect("it is served");
    engine.submit(id, inputs(NAMES[0], 0), Some(Duration::from_micros(5)), reply);
    let refused = answered.recv().expect("an answer comes").unwrap_err();
    assert!(matches!(refused, InferError::Refused(Refusal::TooLate { .. })), "{refused}");
    let unknown = engine.infer("unheard", Vec::new()).unwrap_err();
    assert!(matches!(unknown, InferError::UnknownModel(_)));
}

#[test]
fn wrong_inputs_fail_their_caller_alone() {
    let known = ALL.iter().find(|known| known.name == "time-sharing").expect("it is there");
    let engine = engine(known, 60_000.0);
    let wrong = engine.infer(NAMES[0], Vec::new()).unwrap_err();
    assert!(matches!(wrong, InferError::Device(_)), "{wrong}");
    engine.infer(NAMES[0], inputs(NAMES[0], 0)).expect("others are served");
}

#[test]
fn an_engine_that_stops_ends_what_it_accepted() {
    let known = ALL.iter().find(|known| known.name == "weft").expect("it is there");
    let engine = engine(known, 60_000.0);
    let (answer, answered) = channel();
    for seed in 0..8 {
        let answer = answer.clone();
        let id = engine.model(NAMES[1]).expect("it is served");
        let reply = Box::new(move |result| drop(answer.send(result)));
        engine.submit(id, inputs(NAMES[1], seed), None, reply);
    }
    drop((engine, answer));
    let results: Vec<_> = answered.iter().collect();
    assert_eq!(results.len(), 8);
    assert!(results.iter().all(Result::is_ok));
}
