//! The GPU that tests run on, one at a time.

use std::env;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use weft_cuda::KernelSource;
use weft_cuda::compiler::{Compiler, Kernels};
use weft_cuda::driver::{Context, CudaError, Kernel, LaunchShape, Stream, launch};

/// The kernels of these tests.
const TEXT: &str = include_str!("kernels.cu");

/// A GPU that no other test uses meanwhile.
pub(crate) struct Gpu {
    pub(crate) context: Arc<Context>,
    pub(crate) kernels: Kernels,
    _turn: MutexGuard<'static, ()>,
}

/// The GPU, or `None` where there is none and none is required.
pub(crate) fn gpu() -> Option<Gpu> {
    static TURN: Mutex<()> = Mutex::new(());
    let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let open = || -> Result<_, CudaError> {
        let context = Context::open(0)?;
        let kernels = Kernels::new(context.clone(), Arc::new(Compiler::of_process()?));
        Ok((context, kernels))
    };
    match open() {
        Ok((context, kernels)) => Some(Gpu { context, kernels, _turn: turn }),
        Err(why) => {
            let is_required = env::var("WEFT_REQUIRE_GPU").is_ok_and(|value| value == "1");
            assert!(!is_required, "a GPU is required: {why}");
            eprintln!("skipped: {why}");
            None
        }
    }
}

/// The source of one of these tests' kernels.
pub(crate) fn source(entry: &'static str) -> KernelSource {
    KernelSource::new("kernels.cu", TEXT, entry, Vec::new())
}

impl Gpu {
    pub(crate) fn kernel(&self, entry: &'static str) -> Arc<Kernel> {
        self.kernels.get(&source(entry)).unwrap()
    }
}

/// Launches a kernel of these tests, whose first parameter is an address.
pub(crate) fn start(
    stream: &Stream,
    kernel: &Kernel,
    shape: &LaunchShape,
    address: u64,
    others: &[u32],
) -> Result<(), CudaError> {
    let address = address.to_ne_bytes();
    let others: Vec<[u8; 4]> = others.iter().map(|value| value.to_ne_bytes()).collect();
    let arguments: Vec<&[u8]> =
        [&address[..]].into_iter().chain(others.iter().map(|value| &value[..])).collect();
    // SAFETY: every test gives memory of the size that its kernel writes, and keeps it until it has waited.
    unsafe { launch(stream, kernel, shape, &arguments) }
}

/// Memory as the numbers that are in it.
pub(crate) fn words(bytes: &[u8]) -> Vec<u32> {
    bytes.chunks_exact(4).map(|word| u32::from_ne_bytes(word.try_into().unwrap())).collect()
}
