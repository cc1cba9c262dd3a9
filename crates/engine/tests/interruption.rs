//! A request that is due soon does not wait for a long batch: on the CPU device, the batch pauses.

mod support;

use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use weft_cpu::CpuDevice;
use weft_engine::{Claim, Engine, EngineDevice, LaunchRecord, ModelKey, Observer, Submission};
use weft_ir::Value;
use weft_scheduler::Span;
use weft_scheduler::policies::ALL;
use weft_zoo::{ZooOptions, entry, sample_inputs};

const LONG: &str = "resnet18";
const SHORT: &str = "tiny_mobilenet_v2";
/// Of the long one at once: no machine is done with them before the short one comes.
const ROWS: u32 = 8;

#[derive(Default)]
struct Seen(Mutex<Vec<LaunchRecord>>);

impl Observer for Seen {
    fn launch_ended(&self, launch: &LaunchRecord) {
        self.0.lock().unwrap().push(*launch);
    }
}

fn inputs(name: &str, rows: usize) -> Vec<Value> {
    let tensors = sample_inputs(entry(name).unwrap(), &ZooOptions::default(), rows, 8);
    tensors.expect("it takes them").into_iter().map(Value::from).collect()
}

/// Which of the two was answered first, and what was launched, under a policy.
fn order(policy: &str) -> (Vec<&'static str>, Vec<LaunchRecord>, [ModelKey; 2]) {
    let known = ALL.iter().find(|known| known.name == policy).expect("it is there");
    let device = Arc::new(CpuDevice::new().expect("there is a CPU"));
    let model = |name, alone_ms: f64, slo_ms| {
        support::model(&device, name, Some(slo_ms), ROWS, |_| Span::from_us(alone_ms * 1e3))
    };
    let models = [model(LONG, 200.0, 60_000.0), model(SHORT, 2.0, 20_000.0)];
    let keys = models.each_ref().map(|model| model.key);
    let on = EngineDevice {
        // One unit, so that there is one partition.
        units: device.units().iter().take(1).collect(),
        device,
        bandwidth_bytes_per_s: 1e10,
        memory_bytes: 1 << 30,
        uses_background: true,
        schedules: None,
    };
    let seen = Arc::new(Seen::default());
    let make = Box::new(|served| known.make(served));
    let engine = Engine::start(on, make, seen.clone()).expect("threads start");
    engine.serve(models.to_vec()).expect("they are prepared");
    let (answered, answers) = channel();
    let submit = |which: usize, name: &'static str, rows: u32| {
        let answered = answered.clone();
        let reply = Box::new(move |result: Result<_, _>| {
            result.expect("there is time");
            let _ = answered.send(name);
        });
        let inputs = inputs(name, rows as usize);
        let (model, claim) = (keys[which], Claim::Promised);
        engine.submit(Submission { model, inputs, rows, timeout: None, claim }, reply)
    };
    submit(0, LONG, ROWS);
    submit(1, SHORT, 1);
    let answer = || answers.recv_timeout(Duration::from_secs(60)).expect("it is answered");
    let order = vec![answer(), answer()];
    drop(engine);
    (order, seen.0.lock().unwrap().clone(), keys)
}

#[test]
fn what_is_due_soon_interrupts_what_runs() {
    let (order, launches, [long, short]) = order("weft");
    assert_eq!(order, [SHORT, LONG]);
    let of = |key| launches.iter().find(|launch| launch.model == key).expect("it ran");
    assert!(of(long).paused > Duration::ZERO && of(short).paused == Duration::ZERO);
    assert!(of(long).paused < of(long).took, "{launches:?}");
}

#[test]
fn baselines_take_turns() {
    let (order, launches, _) = order("time-sharing");
    assert_eq!(order, [LONG, SHORT]);
    assert!(launches.iter().all(|launch| launch.paused == Duration::ZERO), "{launches:?}");
}
