//! Library calls bound to memory: all that is left to do is to give them to a stream.

use super::convolution::BoundConvolution;
use super::product::BoundProduct;
use crate::driver::{CudaError, Stream};
use crate::gpu::Gpu;
use crate::library_call::{LibraryCall, Operation};
use crate::plan::place::{Bases, Place};

/// A call that is described to its library and has its operands.
pub(crate) enum BoundCall {
    Product(BoundProduct),
    Convolution(BoundConvolution),
}

impl BoundCall {
    /// Describes the call to its library and lets it choose an algorithm, which it cannot while a stream is captured.
    pub(crate) fn new(
        call: &LibraryCall<Place>,
        gpu: &Gpu,
        bases: &Bases,
    ) -> Result<Self, CudaError> {
        let addresses = call.operands.map(|place| bases.address(place));
        Ok(match &call.operation {
            Operation::Product(product) => {
                let library = gpu.libraries.cublas_lt(&gpu.context)?;
                Self::Product(BoundProduct::new(library, product, addresses)?)
            }
            Operation::Convolution(convolution) => {
                let library = gpu.libraries.cudnn(&gpu.context)?;
                Self::Convolution(BoundConvolution::new(library, convolution, addresses)?)
            }
        })
    }

    /// Runs it once on whatever its operands hold, so that the library loads its kernels now: while a stream is captured
    /// it must not.
    ///
    /// # Safety
    /// The memory at its addresses lives, and nothing else uses it meanwhile but what is in the same stream.
    pub(crate) unsafe fn warm_up(&self, stream: &Stream) -> Result<(), CudaError> {
        {
            let _entered = stream.enter()?;
            // SAFETY: the caller vouches for the memory.
            unsafe { self.add_to(stream) }?;
        }
        stream.synchronize()
    }

    /// Adds it to a stream whose context is current.
    ///
    /// # Safety
    /// The memory at its addresses lives until it has ended; where the stream is being captured, that memory and the
    /// call live as long as the graph.
    pub(crate) unsafe fn add_to(&self, stream: &Stream) -> Result<(), CudaError> {
        match self {
            // SAFETY: the caller vouches for the memory.
            Self::Product(product) => unsafe { product.add_to(stream) },
            // SAFETY: as above.
            Self::Convolution(convolution) => unsafe { convolution.add_to(stream) },
        }
    }
}
