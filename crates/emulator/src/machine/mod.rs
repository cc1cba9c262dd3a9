//! Kernels run from PTX: threads in warps, whose lanes go through the program side by side.
//!
//! What a GPU leaves open is done in more than one way: in every second cluster copies arrive as late and in an order as strange as they
//! may, and warps begin with the last. What must not be done shows: memory that is nobody's, operands of the tensor cores or the
//! copy engine that change before these are waited for, shared memory that was never written, and threads that wait for ever.

mod access;
mod arithmetic;
mod cluster;
mod copy_engine;
mod lanes;
mod phase;
mod ptx;
mod step;
mod tensor_core;
mod warp;
mod warpgroup;

#[cfg(test)]
mod tests;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use thiserror::Error;

use crate::memory::Memory;
use access::DeviceMemory;
use cluster::Cluster;
pub(crate) use ptx::{Kernel, Program};

/// One launch of a kernel.
pub(crate) struct Launch<'a> {
    pub(crate) kernel: &'a Kernel,
    /// Blocks, and threads of a block, along x, y and z.
    pub(crate) grid: [u32; 3],
    pub(crate) threads: [u32; 3],
    /// Neighbouring blocks that run together.
    pub(crate) cluster: [u32; 3],
    /// Shared memory of a block besides what the kernel has anyhow.
    pub(crate) shared_bytes: u32,
    /// The parameters, each at its place.
    pub(crate) parameters: &'a [u8],
    /// The SMs that blocks may run on.
    pub(crate) sms: &'a [u32],
}

/// What went wrong in a launch, and where.
#[derive(Clone, Debug, Error)]
#[error("kernel {kernel}, {problem}")]
pub(crate) struct Fault {
    kernel: String,
    problem: Problem,
}

/// What went wrong, without the kernel.
#[derive(Clone, Debug)]
struct Problem {
    what: String,
    /// The line of the program, or nothing.
    line: u32,
    /// The block, and the thread in it.
    thread: Option<([u32; 3], u32)>,
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if let Some((block, thread)) = self.thread {
            write!(f, "line {} of its PTX, block {block:?}, thread {thread}: ", self.line)?;
        }
        f.write_str(&self.what)
    }
}

impl Launch<'_> {
    /// Runs all blocks to their end, those of a cluster together and clusters on the host's cores.
    pub(crate) fn run(&self, memory: &Memory) -> Result<(), Fault> {
        let clusters: u64 =
            (0..3).map(|axis| u64::from(self.grid[axis]) / u64::from(self.cluster[axis])).product();
        let next = AtomicU64::new(0);
        let has_failed = AtomicBool::new(false);
        let problem = Mutex::new(None);
        let work = || {
            while !has_failed.load(Ordering::Relaxed) {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= clusters {
                    break;
                }
                // The last one is, also where it is the only one.
                let is_late = (clusters - number) % 2 == 1;
                let run = Cluster::new(self, DeviceMemory::new(memory), number, is_late).run();
                if let Err(found) = run {
                    has_failed.store(true, Ordering::Relaxed);
                    problem.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(found);
                }
            }
        };
        let cores = thread::available_parallelism().map_or(1, usize::from) as u64;
        match clusters.min(cores) {
            0 | 1 => work(),
            workers => thread::scope(|scope| {
                (1..workers).for_each(|_| {
                    scope.spawn(work);
                });
                work();
            }),
        }
        let problem = problem.into_inner().unwrap_or_else(PoisonError::into_inner);
        problem.map_or(Ok(()), |problem| Err(Fault { kernel: self.kernel.name.clone(), problem }))
    }
}
