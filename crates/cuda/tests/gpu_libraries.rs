//! What NVIDIA's libraries compute on a real GPU, beside the kernels that are in their place otherwise. Where there is no
//! GPU or no library the tests say so and pass, unless `WEFT_REQUIRE_GPU` is `1`, which asks for both a GPU and cuBLASLt.
#![allow(clippy::print_stderr)]

use std::sync::{Mutex, MutexGuard, PoisonError};

use weft_cuda::library::{CudaLibrary, Libraries};
use weft_cuda::{Chip, Choice, CudaDevice, CudaOptions, Precision, preview};
use weft_device::Executable;
use weft_ir::{Attributes, DataType, Graph, GraphBuilder, Tensor, Value, ValueId, reference};
use weft_zoo::{ZooOptions, sample_inputs};

/// SMs of the partitions that everything runs on; `None` is all of them.
const SHARES: [Option<u32>; 2] = [Some(16), None];

/// How much further off than one operator a model may be, whose operators add their roundings.
const MODEL_SLACK: f64 = 5.0;

/// A graph, what it is given, and what the reference makes of it.
struct Case {
    name: String,
    /// What the tolerance is multiplied by.
    slack: f64,
    graph: Graph,
    inputs: Vec<Value>,
    expected: Vec<Value>,
}

impl Case {
    fn new(name: String, graph: Graph, inputs: Vec<Value>) -> Self {
        let mut given = inputs.iter().cloned();
        let of_graph: Vec<Option<Value>> = graph
            .inputs()
            .iter()
            .map(|&id| graph.constant(id).is_none().then(|| given.next()).flatten())
            .collect();
        let expected = reference::evaluate(&graph, &of_graph).unwrap();
        Self { name, slack: 1.0, graph, inputs, expected }
    }

    fn of_zoo(name: &str) -> Self {
        let options = ZooOptions::default();
        let graph = weft_zoo::build(name, &options).unwrap();
        let inputs = sample_inputs(weft_zoo::entry(name).unwrap(), &options, 2, 24).unwrap();
        let inputs = inputs.into_iter().map(Value::from).collect();
        Self { slack: MODEL_SLACK, ..Self::new(name.to_string(), graph, inputs) }
    }

    fn shapes(&self) -> Vec<Vec<usize>> {
        self.inputs.iter().map(|input| input.tensor().unwrap().shape().to_vec()).collect()
    }
}

/// Numbers that every precision holds exactly, between -`scale` and `scale`.
fn numbers(shape: &[usize], scale: f32, seed: u64) -> Tensor {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x2545_f491_4f6c_dd1d;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        ((state >> 58) as f32 / 32.0 - 1.0) * scale
    };
    let elements: Vec<f32> = (0..shape.iter().product()).map(|_| next()).collect();
    Tensor::from_vec(shape.to_vec(), elements).unwrap()
}

/// A power of two that keeps sums of so many terms near 1.
fn scale(terms: usize) -> f32 {
    0.5f32.powi((terms as f32).log2().ceil() as i32 / 2)
}

/// What follows a product or a convolution.
#[derive(Clone, Copy, Debug)]
struct Ending {
    has_bias: bool,
    has_residual: bool,
    activation: Option<&'static str>,
}

const ENDINGS: [Ending; 6] = [
    Ending { has_bias: false, has_residual: false, activation: None },
    Ending { has_bias: true, has_residual: false, activation: None },
    Ending { has_bias: true, has_residual: false, activation: Some("Relu") },
    Ending { has_bias: true, has_residual: true, activation: None },
    Ending { has_bias: true, has_residual: true, activation: Some("Relu") },
    Ending { has_bias: true, has_residual: false, activation: Some("Gelu") },
];

/// A graph under construction together with what it is given.
struct Build {
    builder: GraphBuilder,
    inputs: Vec<Value>,
}

impl Build {
    fn new() -> Self {
        Self { builder: GraphBuilder::new("case", 20), inputs: Vec::new() }
    }

    fn input(&mut self, shape: &[usize]) -> ValueId {
        let name = format!("x{}", self.inputs.len());
        self.inputs.push(numbers(shape, 1.0, 7 + self.inputs.len() as u64).into());
        self.builder.input(&name, DataType::F32, shape)
    }

    fn constant(&mut self, name: &str, shape: &[usize], scale: f32) -> ValueId {
        self.builder.constant(name, numbers(shape, scale, name.len() as u64))
    }

    /// The residual and the activation.
    fn end(mut self, mut value: ValueId, shape: &[usize], ending: Ending, name: String) -> Case {
        if ending.has_residual {
            let residual = self.input(shape);
            value = self.builder.node("Add", &[value, residual], Attributes::new());
        }
        if let Some(activation) = ending.activation {
            let attributes = match activation {
                "Gelu" => Attributes::new().with("approximate", "tanh"),
                _ => Attributes::new(),
            };
            value = self.builder.node(activation, &[value], attributes);
        }
        self.builder.output("y", value);
        Case::new(name, self.builder.finish().unwrap(), self.inputs)
    }
}

/// Rows times a constant matrix.
fn linear([m, n, k]: [usize; 3], ending: Ending) -> Case {
    let mut build = Build::new();
    let x = build.input(&[m, k]);
    let matrix = build.constant("matrix", &[k, n], scale(k));
    let mut product = build.builder.node("MatMul", &[x, matrix], Attributes::new());
    if ending.has_bias {
        let bias = build.constant("bias", &[n], 1.0);
        product = build.builder.node("Add", &[product, bias], Attributes::new());
    }
    build.end(product, &[m, n], ending, format!("product {m}x{n}x{k} {ending:?}"))
}

/// Matrices that are both given.
fn stacked(left: &[usize], right: &[usize]) -> Case {
    let mut build = Build::new();
    let (x, y) = (build.input(left), build.input(right));
    let product = build.builder.node("MatMul", &[x, y], Attributes::new());
    build.end(product, &[], ENDINGS[0], format!("product of {left:?} and {right:?}"))
}

/// A convolution of images of `size` x `size` pixels.
fn convolution(
    [images, channels, size]: [usize; 3],
    [filters, kernel, stride, dilation, pad]: [usize; 5],
    ending: Ending,
) -> Case {
    let mut build = Build::new();
    let x = build.input(&[images, channels, size, size]);
    let shape = [filters, channels, kernel, kernel];
    let mut operands =
        vec![x, build.constant("filters", &shape, scale(shape[1..].iter().product()))];
    if ending.has_bias {
        operands.push(build.constant("bias", &[filters], 1.0));
    }
    let twice = |number: usize| vec![number as i64; 2];
    let attributes = Attributes::new()
        .with("strides", twice(stride))
        .with("dilations", twice(dilation))
        .with("pads", vec![pad as i64; 4]);
    let conv = build.builder.node("Conv", &operands, attributes);
    let output = (size + 2 * pad - dilation * (kernel - 1) - 1) / stride + 1;
    let name = format!(
        "convolution of {images}x{channels}x{size} by {filters}x{kernel}, stride {stride}, {ending:?}"
    );
    build.end(conv, &[images, filters, output, output], ending, name)
}

/// The GPU with candidates of a name, which no other test uses meanwhile; `None` where it or the library is absent.
struct Gpu {
    device: CudaDevice,
    _turn: MutexGuard<'static, ()>,
}

fn gpu(library: CudaLibrary, name: &'static str) -> Option<Gpu> {
    static TURN: Mutex<()> = Mutex::new(());
    let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let is_required = std::env::var("WEFT_REQUIRE_GPU").is_ok_and(|value| value == "1");
    let options = CudaOptions { choice: Choice::Named(name), ..Default::default() };
    let device = match CudaDevice::open(0, options) {
        Ok(device) => device,
        Err(why) => {
            assert!(!is_required, "a GPU is required: {why}");
            eprintln!("skipped: {why}");
            return None;
        }
    };
    if let Err(why) = Libraries::of_process().open(library) {
        assert!(!is_required || library != CudaLibrary::CublasLt, "cuBLASLt is required: {why}");
        eprintln!("skipped: {why}");
        return None;
    }
    Some(Gpu { device, _turn: turn })
}

/// How far an element may be off, relative to the largest that is expected.
fn tolerance(precision: Precision) -> f64 {
    match precision {
        Precision::F16 | Precision::Bf16 => 1e-2,
        Precision::Tf32 => 1e-3,
        Precision::F32 => 1e-5,
    }
}

impl Gpu {
    /// The names of the kernels that ran, or what went wrong.
    fn run(
        &self,
        case: &Case,
        precision: Precision,
        sms: Option<u32>,
    ) -> Result<Vec<String>, String> {
        let layout = self.device.layout();
        let units = match sms {
            Some(count) => layout.units_for_sms(count).ok_or("there are too few SMs")?,
            None => layout.all(),
        };
        let model = self.device.load_with_precision(&case.name, &case.graph, precision);
        let partition = self.device.cuda_partition(&units).map_err(|error| error.to_string())?;
        let executable =
            partition.prepare_model(&model, &case.shapes()).map_err(|error| error.to_string())?;
        for _ in 0..2 {
            executable.poison().map_err(|error| error.to_string())?;
            let outputs = executable.run(&case.inputs).map_err(|error| error.to_string())?;
            for (expected, actual) in case.expected.iter().zip(&outputs) {
                let tolerance = case.slack * tolerance(precision);
                compare(expected.tensor().unwrap(), actual.tensor().unwrap(), tolerance)?;
            }
        }
        Ok(executable.report().steps.iter().map(|step| step.kernel.clone()).collect())
    }

    /// Runs every case on every share; each must have a kernel of the name. At the precisions in `refusable` the library
    /// may say that it does not support a case, as it may wherever candidates are measured.
    fn check(&self, cases: &[Case], name: &str, precisions: &[Precision], refusable: &[Precision]) {
        let mut failures = Vec::new();
        for case in cases {
            for &precision in precisions {
                for sms in SHARES {
                    let what = format!("{} at {precision} on {sms:?} SMs", case.name);
                    match self.run(case, precision, sms) {
                        Ok(kernels) if kernels.iter().any(|kernel| kernel.starts_with(name)) => {}
                        Ok(kernels) => failures.push(format!("{what}: ran {kernels:?}")),
                        Err(problem)
                            if refusable.contains(&precision)
                                && problem.contains("NOT_SUPPORTED") =>
                        {
                            eprintln!("not supported: {what}: {problem}");
                        }
                        Err(problem) => failures.push(format!("{what}: {problem}")),
                    }
                }
            }
        }
        assert!(failures.is_empty(), "{} fail:\n{}", failures.len(), failures.join("\n"));
    }
}

fn compare(expected: &Tensor, actual: &Tensor, tolerance: f64) -> Result<(), String> {
    assert_eq!(expected.shape(), actual.shape());
    let (expected, actual) = (expected.to_f64s().unwrap(), actual.to_f64s().unwrap());
    let scale = expected.iter().fold(0f64, |scale, x| scale.max(x.abs()));
    for (index, (expected, actual)) in expected.iter().zip(&actual).enumerate() {
        let is_close = (expected - actual).abs() <= tolerance * scale;
        if !is_close {
            return Err(format!("element {index} is {actual}, not {expected}; of up to {scale}"));
        }
    }
    Ok(())
}

fn products() -> Vec<Case> {
    let sizes = [[1, 1000, 512], [128, 768, 768], [49, 72, 130], [7, 24, 15], [300, 64, 2048]];
    let mut cases: Vec<Case> =
        ENDINGS.into_iter().flat_map(|end| sizes.map(|size| linear(size, end))).collect();
    cases.push(stacked(&[4, 33, 24], &[4, 24, 40]));
    cases.push(stacked(&[2, 3, 16, 8], &[8, 12]));
    cases.push(stacked(&[20, 13], &[5, 13, 9]));
    // A convolution with windows of one pixel is a product.
    cases.push(convolution([2, 64, 14], [96, 1, 1, 1, 0], ENDINGS[4]));
    cases
}

fn convolutions() -> Vec<Case> {
    let mut cases = Vec::new();
    for ending in &ENDINGS[..5] {
        cases.push(convolution([2, 64, 14], [64, 3, 1, 1, 1], *ending));
        cases.push(convolution([1, 32, 15], [48, 3, 2, 1, 1], *ending));
        cases.push(convolution([3, 64, 7], [128, 1, 1, 1, 0], *ending));
        cases.push(convolution([1, 16, 12], [16, 3, 1, 2, 2], *ending));
    }
    // Few channels, as the first layer of a network has.
    cases.push(convolution([1, 3, 32], [16, 7, 2, 1, 3], ENDINGS[2]));
    cases
}

/// So that the library is given all of the ending, and not a kernel after it.
#[test]
fn every_case_is_one_product() {
    for case in products().into_iter().chain(convolutions()) {
        let (chip, precision) = (Chip::H200, Precision::F32);
        let report = preview(&case.name, &case.graph, &case.shapes(), chip, precision).unwrap();
        let computing = report.steps.iter().filter(|step| step.operator != "Transpose");
        assert_eq!(computing.count(), 1, "{}", case.name);
    }
}

#[test]
fn products_by_cublaslt_agree_with_the_reference() {
    let Some(gpu) = gpu(CudaLibrary::CublasLt, "cublaslt") else { return };
    gpu.check(&products(), "cublaslt", &Precision::ALL, &[]);
}

#[test]
fn products_by_our_kernel_agree_with_the_reference() {
    let Some(gpu) = gpu(CudaLibrary::CublasLt, "gemm") else { return };
    gpu.check(&products(), "gemm", &Precision::ALL, &[]);
}

#[test]
fn convolutions_by_cudnn_agree_with_the_reference() {
    let Some(gpu) = gpu(CudaLibrary::Cudnn, "cudnn") else { return };
    let refusable = [Precision::Bf16, Precision::Tf32, Precision::F32];
    gpu.check(&convolutions(), "cudnn", &Precision::ALL, &refusable);
}

#[test]
fn the_other_algorithm_of_cudnn_agrees_with_the_reference() {
    let Some(gpu) = gpu(CudaLibrary::Cudnn, "cudnn implicit_gemm") else { return };
    let cases = [convolution([2, 64, 14], [64, 3, 1, 1, 1], ENDINGS[4])];
    gpu.check(&cases, "cudnn implicit_gemm", &Precision::ALL, &Precision::ALL);
}

#[test]
fn models_run_with_libraries_between_kernels() {
    for (library, name) in [(CudaLibrary::CublasLt, "cublaslt"), (CudaLibrary::Cudnn, "cudnn")] {
        let Some(gpu) = gpu(library, name) else { continue };
        let models: &[&str] = match library {
            CudaLibrary::Cudnn => &["tiny_resnet", "tiny_vgg"],
            _ => &["tiny_bert", "tiny_resnet"],
        };
        let cases: Vec<Case> = models.iter().map(|model| Case::of_zoo(model)).collect();
        gpu.check(&cases, name, &[Precision::F16], &[]);
    }
}
