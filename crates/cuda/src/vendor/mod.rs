//! NVIDIA's own libraries, where they are installed: further ways to compute what kernels here compute too.

mod call;
mod convolution;
mod cublas_lt;
mod cudnn;
mod descriptor;
mod functions;
mod product;

use std::sync::{Arc, OnceLock};
use std::thread;

pub(crate) use call::BoundCall;

use crate::driver::{Context, CudaError};
use crate::library_call::LibrarySet;
use cublas_lt::CublasLt;
use cudnn::Cudnn;

/// The libraries of one GPU; each is opened when it is first asked for.
#[derive(Default)]
pub(crate) struct VendorLibraries {
    cublas_lt: OnceLock<Result<Arc<CublasLt>, CudaError>>,
    cudnn: OnceLock<Result<Arc<Cudnn>, CudaError>>,
}

impl VendorLibraries {
    /// Those that can be called.
    pub(crate) fn available(&self, context: &Arc<Context>) -> LibrarySet {
        // Each takes long to open, the first time.
        thread::scope(|scope| {
            let cudnn = scope.spawn(|| self.cudnn(context).is_ok());
            let cublas_lt = self.cublas_lt(context).is_ok();
            LibrarySet { cublas_lt, cudnn: cudnn.join().unwrap_or(false) }
        })
    }

    fn cublas_lt(&self, context: &Arc<Context>) -> Result<Arc<CublasLt>, CudaError> {
        self.cublas_lt.get_or_init(|| CublasLt::open(context).map(Arc::new)).clone()
    }

    fn cudnn(&self, context: &Arc<Context>) -> Result<Arc<Cudnn>, CudaError> {
        self.cudnn.get_or_init(|| Cudnn::open(context).map(Arc::new)).clone()
    }
}
