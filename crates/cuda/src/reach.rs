//! How many SMs a process really gets: blocks are launched, and say where they ran.

use std::collections::BTreeSet;
use std::sync::Arc;

use weft_device::DeviceError;

use crate::compiler::{Compiler, Kernels};
use crate::driver::{Context, CudaError, DeviceBuffer, LaunchShape, Stream, launch};
use crate::kernels::note_sm;

/// Blocks of a launch, each of which has an SM to itself: several for every SM of any GPU.
const BLOCKS: u32 = 1024;
/// How long a block keeps its SM, which is long beside what starting a block takes.
const STAY_US: u32 = 100;
const THREADS: u32 = 32;

/// What a process has of a GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reach {
    /// How many different SMs blocks ran on. Whatever bounds the process from outside is in it, and also what others keep
    /// busy meanwhile: it is never more than the process can have.
    pub sms: usize,
    /// How many SMs the driver says there are.
    pub reported_sms: usize,
}

impl Reach {
    /// That of this process, on the GPU of this number.
    pub fn of_process(ordinal: usize) -> Result<Self, DeviceError> {
        let context = Context::open(ordinal)?;
        let kernels = Kernels::new(context.clone(), Arc::new(Compiler::of_process()?));
        let sms = reached(&context, &kernels)?.len();
        Ok(Self { sms, reported_sms: context.chip().sm_count as usize })
    }
}

fn reached(context: &Arc<Context>, kernels: &Kernels) -> Result<BTreeSet<u32>, CudaError> {
    let kernel = kernels.get(&note_sm::source())?;
    let stream = Stream::new(context)?;
    let sms = DeviceBuffer::zeroed(context, size_of::<u32>() * BLOCKS as usize)?;
    let shape = LaunchShape {
        // All of it, so that an SM takes one block at a time.
        shared_bytes: context.chip().shared_bytes_per_block,
        ..LaunchShape::linear(BLOCKS, THREADS)
    };
    let (address, stay_us) = (sms.address().to_ne_bytes(), STAY_US.to_ne_bytes());
    // SAFETY: the buffer has a word for every block, and lives until the launch has ended, below.
    let launched = unsafe { launch(&stream, &kernel, &shape, &[&address, &stay_us]) };
    stream.synchronize()?;
    launched?;
    let mut words = vec![0u32; BLOCKS as usize];
    sms.read(0, bytemuck::cast_slice_mut(&mut words))?;
    Ok(words.into_iter().collect())
}
