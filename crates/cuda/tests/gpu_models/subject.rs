//! The GPU that tests run on, one at a time, and models with what the reference makes of them.

use std::sync::{Mutex, MutexGuard, PoisonError};

use weft_cuda::{Choice, CudaDevice, CudaExecutable, CudaOptions, Precision};
use weft_device::UnitSet;
use weft_ir::{Graph, Value, reference};
use weft_zoo::{Entry, ZooOptions, sample_inputs};

/// A GPU that no other test uses meanwhile.
pub(crate) struct Gpu {
    pub(crate) device: CudaDevice,
    _turn: MutexGuard<'static, ()>,
}

/// The GPU, or `None` where there is none and none is required.
pub(crate) fn gpu(choice: Choice) -> Option<Gpu> {
    static TURN: Mutex<()> = Mutex::new(());
    let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    match CudaDevice::open(0, CudaOptions { choice, ..Default::default() }) {
        Ok(device) => Some(Gpu { device, _turn: turn }),
        Err(why) => {
            let is_required = std::env::var("WEFT_REQUIRE_GPU").is_ok_and(|value| value == "1");
            assert!(!is_required, "a GPU is required: {why}");
            eprintln!("skipped: {why}");
            None
        }
    }
}

impl Gpu {
    pub(crate) fn units(&self, sms: Option<u32>) -> UnitSet {
        let layout = self.device.layout();
        sms.map_or_else(|| layout.all(), |count| layout.units_for_sms(count).unwrap())
    }

    pub(crate) fn prepare(
        &self,
        subject: &Subject,
        sms: Option<u32>,
        precision: Precision,
    ) -> CudaExecutable {
        let model = self.device.load_with_precision(subject.name, &subject.graph, precision);
        let partition = self.device.cuda_partition(&self.units(sms)).unwrap();
        partition.prepare_model(&model, &subject.shapes()).unwrap()
    }
}

/// A model of the zoo with inputs and what the reference makes of them.
pub(crate) struct Subject {
    pub(crate) name: &'static str,
    pub(crate) graph: Graph,
    pub(crate) inputs: Vec<Value>,
    pub(crate) expected: Vec<Value>,
}

impl Subject {
    pub(crate) fn new(entry: &Entry, seed: u64) -> Self {
        Self::of_batch(entry, seed, 2)
    }

    pub(crate) fn of_batch(entry: &Entry, seed: u64, batch: usize) -> Self {
        let graph = weft_zoo::build(entry.name, &ZooOptions::default()).unwrap();
        let options = ZooOptions { seed, ..Default::default() };
        let inputs = sample_inputs(entry, &options, batch, 8).unwrap();
        let inputs: Vec<Value> = inputs.into_iter().map(Value::Tensor).collect();
        let expected = evaluate(&graph, &inputs);
        Self { name: entry.name, graph, inputs, expected }
    }

    pub(crate) fn named(name: &str, seed: u64) -> Self {
        Self::new(weft_zoo::entry(name).unwrap(), seed)
    }

    pub(crate) fn shapes(&self) -> Vec<Vec<usize>> {
        self.inputs.iter().map(|input| input.tensor().unwrap().shape().to_vec()).collect()
    }

    pub(crate) fn check(&self, outputs: &[Value], precision: Precision, what: &str) {
        assert_eq!(outputs.len(), self.expected.len(), "{} {what}", self.name);
        for (index, (expected, actual)) in self.expected.iter().zip(outputs).enumerate() {
            let what = format!("{}, {what}, output {index}", self.name);
            check_close(expected, actual, tolerance(precision), &what);
        }
    }
}

pub(crate) fn evaluate(graph: &Graph, inputs: &[Value]) -> Vec<Value> {
    let mut given = inputs.iter().cloned();
    let inputs: Vec<Option<Value>> = graph
        .inputs()
        .iter()
        .map(|&id| graph.constant(id).is_none().then(|| given.next().unwrap()))
        .collect();
    reference::evaluate(graph, &inputs).unwrap()
}

/// How far outputs may be off, relative to the norm of what is expected.
pub(crate) fn tolerance(precision: Precision) -> f64 {
    match precision {
        Precision::F16 => 1e-2,
        Precision::Bf16 => 8e-2,
        Precision::Tf32 => 1e-3,
        Precision::F32 => 1e-4,
    }
}

pub(crate) fn check_close(expected: &Value, actual: &Value, tolerance: f64, what: &str) {
    let (expected, actual) = (expected.tensor().unwrap(), actual.tensor().unwrap());
    assert_eq!(expected.shape(), actual.shape(), "{what}");
    assert_eq!(expected.data_type(), actual.data_type(), "{what}");
    if !expected.data_type().is_float() {
        assert_eq!(expected, actual, "{what}");
        return;
    }
    let (expected, actual) = (expected.to_f64s().unwrap(), actual.to_f64s().unwrap());
    let unwritten = actual.iter().filter(|element| element.is_nan()).count();
    assert_eq!(unwritten, 0, "{what}: elements that are not a number, of {}", actual.len());
    let norm = |values: &[f64]| values.iter().map(|x| x * x).sum::<f64>().sqrt();
    let difference: Vec<f64> = expected.iter().zip(&actual).map(|(a, b)| a - b).collect();
    let error = norm(&difference) / norm(&expected).max(f64::MIN_POSITIVE);
    assert!(error <= tolerance, "{what}: relative error {error:.1e} is over {tolerance:.0e}");
}
