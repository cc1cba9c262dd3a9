//! Models whose kernels were chosen: what is chosen is taken, what makes no sense is not, and results stay the same.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use weft_cpu::CpuDevice;
use weft_device::{
    Device, Executable, KernelChoices, OperatorKey, Trial, TunableDevice, TunableOperator, UnitSet,
};
use weft_ir::{Tensor, Value};
use weft_zoo::{ZooOptions, build, entry, sample_inputs};

struct Model {
    device: CpuDevice,
    loaded: Arc<dyn weft_device::LoadedModel>,
    inputs: Vec<Value>,
    shapes: Vec<Vec<usize>>,
}

impl Model {
    fn new(name: &str, batch: usize) -> Self {
        let options = ZooOptions::default();
        let graph = build(name, &options).expect("the zoo has it");
        let inputs = sample_inputs(entry(name).expect("the zoo has it"), &options, batch, 16);
        let inputs: Vec<Tensor> = inputs.expect("it takes them");
        let shapes = inputs.iter().map(|input| input.shape().to_vec()).collect();
        let device = CpuDevice::new().expect("a CPU");
        let loaded = device.load(name, &graph).expect("it loads");
        let inputs = inputs.into_iter().map(Value::from).collect();
        Self { device, loaded, inputs, shapes }
    }

    fn prepare(&self) -> Box<dyn Executable> {
        let first: UnitSet = self.device.units().iter().take(1).collect();
        let partition = self.device.partition(&first).expect("a core");
        partition.prepare(&*self.loaded, &self.shapes).expect("it is prepared")
    }

    fn operators(&self) -> Vec<Arc<dyn TunableOperator>> {
        self.device.operators(&*self.loaded, &self.shapes, 1).expect("it has operators")
    }

    fn outputs(&self, executable: &dyn Executable) -> Vec<f32> {
        let outputs = executable.run(&self.inputs).expect("it runs");
        let tensors = outputs.iter().filter_map(Value::tensor);
        tensors.flat_map(|tensor| tensor.elements::<f32>().expect("values").to_vec()).collect()
    }
}

fn kernels(executable: &dyn Executable) -> Vec<String> {
    executable.report().steps.iter().map(|step| step.kernel.clone()).collect()
}

/// Choices by a function, which count how often they are asked.
struct Chosen<F> {
    choose: F,
    asked: AtomicUsize,
}

impl<F: Fn(&OperatorKey) -> Option<String> + Send + Sync> KernelChoices for Chosen<F> {
    fn choice(&self, operator: &OperatorKey, partition_size: usize) -> Option<Arc<str>> {
        assert_eq!(partition_size, 1);
        self.asked.fetch_add(1, Ordering::Relaxed);
        (self.choose)(operator).map(Arc::from)
    }
}

fn choices<F: Fn(&OperatorKey) -> Option<String> + Send + Sync>(choose: F) -> Arc<Chosen<F>> {
    Arc::new(Chosen { choose, asked: AtomicUsize::new(0) })
}

#[test]
fn every_operator_of_a_model_is_there_once() {
    for (name, batch) in [("tiny_resnet", 1), ("tiny_mobilenet_v2", 1), ("tiny_bert", 3)] {
        let model = Model::new(name, batch);
        let operators = model.operators();
        let steps = kernels(&*model.prepare());
        let names = ["depthwise", "implicit_gemm", "winograd_2x2", "winograd_4x4", "gemm"];
        let tunable = steps.iter().filter(|kernel| names.contains(&kernel.as_str())).count();
        let occurrences: usize = operators.iter().map(|operator| operator.occurrences()).sum();
        assert!(occurrences > 0 && occurrences <= tunable, "{name}: {occurrences} of {tunable}");
        for (index, operator) in operators.iter().enumerate() {
            let is_new = operators[..index].iter().all(|other| other.key() != operator.key());
            assert!(is_new, "{name}: {:?} twice", operator.key());
            assert!(operator.candidates().len() > 1);
            let lengths = |candidate: &weft_device::CandidateDescription| {
                (candidate.parameters.len(), candidate.features.len())
            };
            let first = lengths(&operators[0].candidates()[0]);
            for candidate in operator.candidates() {
                assert_eq!(lengths(candidate), first);
                let is_number = |feature: &f32| feature.is_finite();
                assert!(candidate.features.iter().all(is_number), "{candidate:?}");
            }
        }
    }
}

#[test]
fn a_choice_is_taken_and_the_results_stay() {
    for name in ["tiny_resnet", "tiny_mobilenet_v2", "tiny_bert"] {
        let model = Model::new(name, 1);
        let usual = model.prepare();
        let expected = model.outputs(&*usual);
        for operator in model.operators() {
            let candidates = operator.candidates();
            // The last one is far from the usual one.
            let chosen = candidates.last().expect("there are several").name.clone();
            let key = operator.key().clone();
            let choices = choices({
                let (key, chosen) = (key.clone(), chosen.clone());
                move |asked| (*asked == key).then(|| chosen.clone())
            });
            model.device.use_choices(choices.clone());
            let tuned = model.prepare();
            assert!(choices.asked.load(Ordering::Relaxed) > 0);
            let changed = kernels(&*usual)
                .iter()
                .zip(kernels(&*tuned))
                .filter(|(before, after)| {
                    assert!(*before == after || *after == chosen, "{before} became {after}");
                    *before != after
                })
                .count();
            assert_eq!(changed, operator.occurrences(), "{name}: {key:?} with {chosen}");
            for (a, b) in expected.iter().zip(model.outputs(&*tuned)) {
                assert!((a - b).abs() <= 1e-3 * (1.0 + a.abs()), "{name} {chosen}: {a} and {b}");
            }
        }
    }
}

#[test]
fn what_is_no_candidate_of_the_operator_is_ignored() {
    let model = Model::new("tiny_resnet", 1);
    let usual = model.prepare();
    let expected = model.outputs(&*usual);
    let senseless = [
        "",
        "implicit_gemm",
        "implicit_gemm depth 0 rows 0 panels 0k tiles 0",
        "depthwise rows auto channels auto",
        "implicit_gemm depth 512 rows 240 panels 128k tiles 4\n",
        "winograd_4x4 tiles 99999999999999999999 channels 64",
    ];
    for name in senseless {
        model.device.use_choices(choices(move |_| Some(name.to_string())));
        let tuned = model.prepare();
        assert_eq!(kernels(&*tuned), kernels(&*usual), "{name}");
        assert_eq!(model.outputs(&*tuned), expected, "{name}");
    }
    model.device.use_choices(choices(|_| None));
    assert_eq!(kernels(&*model.prepare()), kernels(&*usual));
}

#[test]
fn a_bench_tries_what_a_model_has() {
    let model = Model::new("tiny_mobilenet_v2", 1);
    let parts = model.device.disjoint_partitions(1);
    assert_eq!(parts.len(), model.device.size());
    let mut bench = model.device.bench(&parts[0]).expect("a bench");
    for operator in model.operators() {
        let last = operator.candidates().len() - 1;
        for candidate in [0, last] {
            operator.compile(candidate).expect("there is nothing to compile");
            let trial = bench.try_candidate(&*operator, candidate, Duration::ZERO);
            assert!(matches!(trial, Ok(Trial::Measured(_))), "{:?}: {trial:?}", operator.key());
        }
    }
}

#[test]
fn a_machine_is_the_same_platform_every_time() {
    let (one, other) = (CpuDevice::new().expect("a CPU"), CpuDevice::new().expect("a CPU"));
    assert_eq!(one.platform(), other.platform());
    assert!(one.platform().chip.contains(one.isa().name()));
    assert!(one.disjoint_partitions(one.size() + 1).is_empty());
    assert!(one.bench(&UnitSet::default()).is_err());
}
