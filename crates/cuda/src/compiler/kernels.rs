//! The kernels that are loaded on one GPU.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use super::Compiler;
use super::load_gate::{LoadGate, Timing};
use crate::driver::{Context, CudaError, Kernel};
use crate::launch::KernelSource;

/// How many kernels are kept loaded at once; past it, those that no plan uses are unloaded.
const MAX_LOADED_KERNELS: usize = 16_384;

/// Loaded kernels by their source; plans, models and partitions share them.
pub struct Kernels {
    context: Arc<Context>,
    compiler: Arc<Compiler>,
    loaded: Mutex<HashMap<KernelSource, Arc<Kernel>>>,
    in_work: InWork,
    gate: LoadGate,
}

/// The kernels that threads are compiling by themselves.
#[derive(Default)]
struct InWork {
    sources: Mutex<HashSet<KernelSource>>,
    one_ended: Condvar,
}

/// The turn to compile a kernel, which ends when it is dropped.
struct Turn<'a> {
    in_work: &'a InWork,
    source: &'a KernelSource,
}

impl<'a> Turn<'a> {
    /// `None` where another thread had the turn, after it has ended.
    fn take(in_work: &'a InWork, source: &'a KernelSource) -> Option<Self> {
        let mut sources = in_work.sources.lock().unwrap_or_else(PoisonError::into_inner);
        if sources.insert(source.clone()) {
            return Some(Self { in_work, source });
        }
        while sources.contains(source) {
            let waited = in_work.one_ended.wait(sources);
            sources = waited.unwrap_or_else(PoisonError::into_inner);
        }
        None
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut sources = self.in_work.sources.lock().unwrap_or_else(PoisonError::into_inner);
        sources.remove(self.source);
        self.in_work.one_ended.notify_all();
    }
}

impl Kernels {
    /// None yet; they are compiled by `compiler` and loaded onto the GPU of `context`.
    pub fn new(context: Arc<Context>, compiler: Arc<Compiler>) -> Self {
        Self {
            context,
            compiler,
            loaded: Mutex::default(),
            in_work: InWork::default(),
            gate: LoadGate::default(),
        }
    }

    /// The compiler.
    pub fn compiler(&self) -> &Compiler {
        &self.compiler
    }

    /// Keeps kernels from being loaded while something is timed; whoever holds it must ask for none that is not loaded.
    pub(crate) fn time(&self) -> Timing<'_> {
        self.gate.time()
    }

    /// Compiles and loads all that are not loaded yet, on many threads; the first error in the order asked for ends
    /// it.
    pub fn prepare_all(&self, sources: &[&KernelSource]) -> Result<(), CudaError> {
        let mut missing: Vec<&KernelSource> =
            sources.iter().copied().filter(|source| self.loaded(source).is_none()).collect();
        let mut seen = std::collections::HashSet::new();
        missing.retain(|source| seen.insert(*source));
        let codes = self.compiler.compile_all(&missing, |source| self.architecture(source));
        for (source, code) in missing.into_iter().zip(codes) {
            self.load(source, &code?)?;
        }
        Ok(())
    }

    /// A kernel, compiled and loaded unless it is there already. Where another thread is at it, this one waits.
    pub fn get(&self, source: &KernelSource) -> Result<Arc<Kernel>, CudaError> {
        let _turn = loop {
            if let Some(kernel) = self.loaded(source) {
                return Ok(kernel);
            }
            if let Some(turn) = Turn::take(&self.in_work, source) {
                break turn;
            }
        };
        let code = self.compiler.compile(source, &self.architecture(source))?;
        self.load(source, &code)
    }

    fn architecture(&self, source: &KernelSource) -> String {
        self.context.chip().architecture(source.is_exact)
    }

    fn loaded(&self, source: &KernelSource) -> Option<Arc<Kernel>> {
        self.loaded.lock().unwrap_or_else(PoisonError::into_inner).get(source).cloned()
    }

    fn load(&self, source: &KernelSource, code: &[u8]) -> Result<Arc<Kernel>, CudaError> {
        let load = || Kernel::load(&self.context, code, source.entry_point());
        let kernel = self.gate.load(load).map_err(|error| self.explain_mismatch(error))?;
        let kernel = Arc::new(kernel);
        let mut loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        if loaded.len() >= MAX_LOADED_KERNELS {
            loaded.retain(|_, kernel| Arc::strong_count(kernel) > 1);
        }
        if loaded.len() >= MAX_LOADED_KERNELS {
            return Err(CudaError::Refused(format!(
                "{MAX_LOADED_KERNELS} kernels are in use, and no more are kept loaded"
            )));
        }
        Ok(loaded.entry(source.clone()).or_insert(kernel).clone())
    }
    /// Machine code of a newer CUDA than the driver's is the usual reason for not being loaded.
    fn explain_mismatch(&self, error: CudaError) -> CudaError {
        let (compiler, driver) = (self.compiler.version(), self.context.driver_version());
        match error {
            CudaError::Call(failed) if compiler > driver => CudaError::Refused(format!(
                "{failed}; the compiler is of CUDA {compiler} and the driver of {driver}: \
                 a compiler that is no newer than the driver may help"
            )),
            other => other,
        }
    }
}
