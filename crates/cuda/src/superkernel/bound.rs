//! A kernel for products, loaded and ready to be launched on any table of operands.

use std::sync::Arc;

use crate::compiler::Kernels;
use crate::driver::{CudaError, Kernel, LaunchShape, Stream, launch};
use crate::kernels::sgemm::ProductKernel;
use crate::launch::Argument;

/// A loaded kernel.
pub(super) struct BoundProduct {
    pub(super) name: String,
    kernel: Arc<Kernel>,
    /// For one tenant.
    shape: LaunchShape,
    /// The parameters after the table.
    sizes: Vec<Vec<u8>>,
}

impl BoundProduct {
    pub(super) fn new(product: &ProductKernel, kernels: &Kernels) -> Result<Self, CudaError> {
        let launch = product.launch(1);
        let sizes = launch.arguments.iter().filter_map(|argument| match argument {
            Argument::Bytes(bytes) => Some(bytes.clone()),
            _ => None,
        });
        Ok(Self {
            name: product.name.clone(),
            kernel: kernels.get(&launch.source)?,
            shape: LaunchShape {
                grid: launch.grid,
                threads: launch.threads,
                shared_bytes: launch.shared_bytes,
                cluster: launch.cluster,
                is_dependent: false,
            },
            sizes: sizes.collect(),
        })
    }

    /// Adds the products of a table's first entries to a stream.
    ///
    /// # Safety
    /// The table and the memory that it names are those of the stream's context, have the sizes of the products that this
    /// was made for, and live, as `self` does, until the launch has ended or as long as a graph of it.
    pub(super) unsafe fn launch(
        &self,
        stream: &Stream,
        table: u64,
        tenants: usize,
    ) -> Result<(), CudaError> {
        let [x, _, z] = self.shape.grid;
        let shape = LaunchShape { grid: [x, tenants as u32, z], ..self.shape };
        let table = table.to_ne_bytes();
        let sizes = self.sizes.iter().map(|bytes| &bytes[..]);
        let arguments: Vec<&[u8]> = [&table[..]].into_iter().chain(sizes).collect();
        // SAFETY: the caller vouches for the addresses.
        unsafe { launch(stream, &self.kernel, &shape, &arguments) }
    }
}
