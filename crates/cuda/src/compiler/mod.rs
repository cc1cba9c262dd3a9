//! Kernel templates become machine code: compiled for the chip at hand, on many threads, once per content.

mod cache;
mod frame;
mod helpers;
mod kernels;
mod load_gate;
mod nvrtc;
mod program;
mod shared_program;

use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

pub use cache::KernelCache;
pub use helpers::{Helpers, help};
pub use kernels::Kernels;
pub use program::Program;

use crate::driver::{CompileFailure, CudaError, Version};
use crate::launch::KernelSource;
use crate::library::Libraries;
use nvrtc::Nvrtc;

/// How many kernels are compiled at once, on however many cores.
const MAX_THREADS: usize = 64;

/// CUDA's run-time compiler with a memory on disk.
pub struct Compiler {
    nvrtc: Nvrtc,
    include_folder: PathBuf,
    cache: Option<KernelCache>,
    helpers: OnceLock<Helpers>,
}

impl Compiler {
    /// The compiler of the libraries that this process finds, with the cache that its environment names.
    pub fn of_process() -> Result<Self, CudaError> {
        Self::new(Libraries::of_process(), KernelCache::of_process())
    }

    /// A compiler that keeps what it makes in `cache`, where there is one.
    pub fn new(
        libraries: &'static Libraries,
        cache: Option<KernelCache>,
    ) -> Result<Self, CudaError> {
        let nvrtc = Nvrtc::load(libraries)?;
        let include_folder = libraries.include_folder()?;
        Ok(Self { nvrtc, include_folder, cache, helpers: OnceLock::new() })
    }

    /// The compiler's version.
    pub fn version(&self) -> Version {
        self.nvrtc.version()
    }

    /// Has further processes compile from now on, unless it has some already. One that ends is not missed.
    pub fn use_helpers(&self, helpers: Helpers) {
        let _ = self.helpers.set(helpers);
    }

    /// The machine code of a kernel for an architecture such as `sm_90`.
    pub fn compile(&self, source: &KernelSource, architecture: &str) -> Result<Vec<u8>, CudaError> {
        let program = Program::new(source, architecture, &self.include_folder);
        let key = program.key(self.nvrtc.version());
        if let Some(code) = self.cache.as_ref().and_then(|cache| cache.read(key)) {
            return Ok(code);
        }
        let helped = self.helpers.get().and_then(|helpers| helpers.compile(&program));
        let compiled = helped.unwrap_or_else(|| self.nvrtc.compile(&program));
        let code = compiled.map_err(|log| failure(source, architecture, log))?;
        if let Some(cache) = &self.cache {
            cache.write(key, &code);
        }
        Ok(code)
    }

    /// The machine code of each kernel, compiled on as many threads as there are cores, in the order asked for.
    pub fn compile_all(
        &self,
        sources: &[&KernelSource],
        architecture: impl Fn(&KernelSource) -> String + Sync,
    ) -> Vec<Result<Vec<u8>, CudaError>> {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let threads = cores.min(MAX_THREADS).min(sources.len());
        let next = AtomicUsize::new(0);
        let results: Vec<OnceLock<_>> = sources.iter().map(|_| OnceLock::new()).collect();
        thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    loop {
                        let index = next.fetch_add(1, Ordering::Relaxed);
                        let Some(&source) = sources.get(index) else { break };
                        let _ = results[index].set(self.compile(source, &architecture(source)));
                    }
                });
            }
        });
        let compiled = results.into_iter().map(OnceLock::into_inner);
        compiled.map(|result| result.expect("a thread took every index")).collect()
    }
}

fn failure(source: &KernelSource, architecture: &str, log: String) -> CudaError {
    let owned = |(name, value): &(&str, String)| (name.to_string(), value.clone());
    CudaError::Compile(Box::new(CompileFailure {
        template: source.template.to_string(),
        entry: source.entry.to_string(),
        defines: source.defines.iter().map(owned).collect(),
        architecture: architecture.to_string(),
        log,
    }))
}
