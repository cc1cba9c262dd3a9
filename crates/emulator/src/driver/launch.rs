//! Launches: which of them the driver takes, and running them.

use std::ffi::{c_uint, c_void};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::capture::captures;
use super::context::Context;
use super::device::{MAX_BLOCK, MAX_GRID, MAX_SHARED_BYTES, MAX_THREADS};
use super::error::{Code, answer};
use super::handles::Handle;
use super::module::{KERNELS, LoadedKernel};
use super::operation::Operation;
use super::places::{list, take};
use super::stream::Stream;
use crate::machine::Launch;
use crate::memory::Memory;

/// Blocks of a cluster, at most.
const MAX_CLUSTER: u32 = 8;

/// What a program asks for, as it lies in memory.
#[derive(Clone, Copy)]
#[repr(C)]
pub(super) struct Configuration {
    grid: [c_uint; 3],
    block: [c_uint; 3],
    shared_bytes: c_uint,
    stream: Handle,
    attributes: *const Attribute,
    attribute_count: c_uint,
}

#[derive(Clone, Copy)]
#[repr(C)]
struct Attribute {
    id: c_uint,
    padding: [u8; 4],
    /// The first numbers of a value, whose meaning depends on what it is of, and the rest.
    value: [c_uint; 16],
}

/// Attributes, by their numbers: nothing, clusters, an early start, a priority.
mod attribute {
    pub(super) const IGNORE: u32 = 0;
    pub(super) const CLUSTER_DIMENSION: u32 = 4;
    pub(super) const PROGRAMMATIC_STREAM_SERIALIZATION: u32 = 6;
    pub(super) const PRIORITY: u32 = 8;
}

/// How a kernel is spread over threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Shape {
    grid: [u32; 3],
    block: [u32; 3],
    cluster: [u32; 3],
    shared_bytes: u32,
}

/// What a kernel bears.
#[derive(Clone, Copy, Debug)]
struct Limits {
    max_threads: u32,
    static_shared_bytes: u32,
    max_dynamic_bytes: u32,
}

impl Shape {
    fn check(&self, limits: Limits) -> Result<(), Code> {
        let is_within = |sizes: [u32; 3], most: [u32; 3]| {
            sizes.iter().zip(most).all(|(&size, most)| (1..=most).contains(&size))
        };
        if !is_within(self.grid, MAX_GRID) || !is_within(self.block, MAX_BLOCK) {
            return Err(Code::InvalidValue);
        }
        let threads: u32 = self.block.iter().product();
        if threads > MAX_THREADS {
            return Err(Code::InvalidValue);
        }
        if threads > limits.max_threads {
            return Err(Code::LaunchOutOfResources);
        }
        let Limits { static_shared_bytes, max_dynamic_bytes, .. } = limits;
        if self.shared_bytes > max_dynamic_bytes
            || self.shared_bytes > MAX_SHARED_BYTES.saturating_sub(static_shared_bytes)
        {
            return Err(Code::InvalidValue);
        }
        let blocks = self.cluster.iter().map(|&blocks| u64::from(blocks)).product::<u64>();
        if !(1..=u64::from(MAX_CLUSTER)).contains(&blocks) {
            return Err(Code::InvalidClusterSize);
        }
        let divides = |(&grid, cluster): (&u32, u32)| grid.is_multiple_of(cluster);
        match self.grid.iter().zip(self.cluster).all(divides) {
            true => Ok(()),
            false => Err(Code::InvalidClusterSize),
        }
    }
}

/// A launch with the values of its parameters.
pub(super) struct KernelLaunch {
    kernel: Arc<LoadedKernel>,
    context: Arc<Context>,
    shape: Shape,
    parameters: Vec<u8>,
}

impl KernelLaunch {
    /// Runs it; what went wrong in words.
    pub(super) fn run(&self, memory: &Memory) -> Result<(), String> {
        let Shape { grid, block, cluster, shared_bytes } = self.shape;
        let launch = Launch {
            kernel: self.kernel.kernel(),
            grid,
            threads: block,
            cluster,
            shared_bytes,
            parameters: &self.parameters,
            sms: &self.context.sm_numbers,
        };
        launch.run(memory).map_err(|fault| fault.to_string())
    }
}

/// The values of a kernel's parameters, each at its place.
///
/// # Safety
/// `values` is null or has an address for every parameter, which is null or that of a value.
unsafe fn parameters(kernel: &LoadedKernel, values: *const *const c_void) -> Result<Vec<u8>, Code> {
    let kernel = kernel.kernel();
    // SAFETY: the caller vouches for the list.
    let values = unsafe { list(values, kernel.parameters.len()) }?;
    let ends = kernel.parameters.iter().map(|one| one.offset_bytes + one.size_bytes);
    let mut bytes = vec![0; ends.max().unwrap_or(0)];
    for (parameter, value) in kernel.parameters.iter().zip(values) {
        let place = &mut bytes[parameter.offset_bytes..][..parameter.size_bytes];
        // SAFETY: the caller vouches for the value.
        place.copy_from_slice(&unsafe { list(value.cast::<u8>(), parameter.size_bytes) }?);
    }
    Ok(bytes)
}

fn cluster_of(attributes: &[Attribute]) -> Result<[u32; 3], Code> {
    let mut cluster = [1, 1, 1];
    for Attribute { id, value, .. } in attributes {
        match *id {
            attribute::CLUSTER_DIMENSION => cluster = [value[0], value[1], value[2]],
            // Work that is done in order waits for what is before it.
            attribute::IGNORE
            | attribute::PROGRAMMATIC_STREAM_SERIALIZATION
            | attribute::PRIORITY => {}
            _ => return Err(Code::NotSupported),
        }
    }
    Ok(cluster)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuLaunchKernelEx(
    configuration: *const Configuration,
    function: Handle,
    values: *mut *mut c_void,
    extra: *mut *mut c_void,
) -> Code {
    answer(|| {
        if !extra.is_null() {
            return Err(Code::NotSupported);
        }
        // SAFETY: the caller gives null or a configuration.
        let asked = unsafe { take(configuration) }?;
        let stream = Stream::of(asked.stream)?;
        let kernel = KERNELS.get(function)?;
        // SAFETY: the configuration has as many attributes as it says.
        let attributes = unsafe { list(asked.attributes, asked.attribute_count as usize) }?;
        let shape = Shape {
            grid: asked.grid,
            block: asked.block,
            cluster: cluster_of(&attributes)?,
            shared_bytes: asked.shared_bytes,
        };
        shape.check(Limits {
            max_threads: kernel.kernel().max_threads.unwrap_or(MAX_THREADS),
            static_shared_bytes: kernel.kernel().static_shared_bytes,
            max_dynamic_bytes: kernel.max_dynamic_bytes.load(Ordering::Relaxed),
        })?;
        let context = stream.context.clone();
        // Loading waits for the device, which no recording stands.
        if !context.family.has(function) && captures().fail(stream.handle) {
            return Err(Code::CaptureUnsupported);
        }
        context.family.load(function);
        // SAFETY: the caller gives a value for every parameter.
        let parameters = unsafe { parameters(&kernel, values.cast_const().cast()) }?;
        stream.add(Operation::Launch(Arc::new(KernelLaunch { kernel, context, shape, parameters })))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits =
        Limits { max_threads: 256, static_shared_bytes: 1024, max_dynamic_bytes: 226 << 10 };

    const PLAIN: Shape =
        Shape { grid: [8, 4, 1], block: [256, 1, 1], cluster: [1, 1, 1], shared_bytes: 0 };

    #[test]
    fn a_launch_lies_in_memory_as_programs_have_it() {
        assert_eq!(size_of::<Configuration>(), 56);
        assert_eq!(std::mem::offset_of!(Configuration, stream), 32);
        assert_eq!(size_of::<Attribute>(), 72);
    }

    #[test]
    fn launches_that_the_device_can_run_are_taken() {
        for shape in [
            PLAIN,
            Shape { grid: [i32::MAX as u32, 65_535, 65_535], ..PLAIN },
            Shape { block: [2, 2, 64], ..PLAIN },
            Shape { cluster: [2, 4, 1], ..PLAIN },
            Shape { shared_bytes: 226 << 10, ..PLAIN },
        ] {
            assert_eq!(shape.check(LIMITS), Ok(()), "{shape:?}");
        }
    }

    #[test]
    fn what_a_launch_asks_for_and_does_not_get_is_refused() {
        let one =
            |id, blocks| cluster_of(&[Attribute { id, padding: [0; 4], value: [blocks; 16] }]);
        assert_eq!(one(attribute::CLUSTER_DIMENSION, 2), Ok([2; 3]));
        assert_eq!(one(attribute::PROGRAMMATIC_STREAM_SERIALIZATION, 1), Ok([1; 3]));
        // All blocks at once.
        assert_eq!(one(2, 1), Err(Code::NotSupported));
    }

    #[test]
    fn launches_past_a_limit_are_refused() {
        for (shape, code) in [
            (Shape { grid: [0, 1, 1], ..PLAIN }, Code::InvalidValue),
            (Shape { grid: [1, 65_536, 1], ..PLAIN }, Code::InvalidValue),
            (Shape { block: [1025, 1, 1], ..PLAIN }, Code::InvalidValue),
            (Shape { block: [1, 1, 65], ..PLAIN }, Code::InvalidValue),
            (Shape { block: [64, 32, 1], ..PLAIN }, Code::InvalidValue),
            (Shape { block: [257, 1, 1], ..PLAIN }, Code::LaunchOutOfResources),
            (Shape { shared_bytes: (226 << 10) + 1, ..PLAIN }, Code::InvalidValue),
            (Shape { cluster: [3, 1, 1], ..PLAIN }, Code::InvalidClusterSize),
            (Shape { cluster: [0, 1, 1], ..PLAIN }, Code::InvalidClusterSize),
            (Shape { cluster: [8, 2, 1], ..PLAIN }, Code::InvalidClusterSize),
            (Shape { cluster: [1, 1, 2], ..PLAIN }, Code::InvalidClusterSize),
        ] {
            assert_eq!(shape.check(LIMITS), Err(code), "{shape:?}");
        }
        let usual = Limits { max_dynamic_bytes: 47 << 10, ..LIMITS };
        let much = Shape { shared_bytes: 48 << 10, ..PLAIN };
        assert_eq!(much.check(usual), Err(Code::InvalidValue));
    }
}
