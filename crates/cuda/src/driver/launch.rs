//! Launching kernels.

use std::ffi::c_void;

use cudarc::driver::sys::{self, CUlaunchAttributeID};

use super::error::{CudaError, checked};
use super::module::Kernel;
use super::stream::Stream;

/// How a kernel is spread over threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaunchShape {
    /// Blocks along x, y and z.
    pub grid: [u32; 3],
    /// Threads of a block.
    pub threads: u32,
    /// Dynamic shared memory of a block.
    pub shared_bytes: u32,
    /// Neighbouring blocks along x, y and z that run together; `[1, 1, 1]` where they need not.
    pub cluster: [u32; 3],
    /// It may start while its predecessor in the stream still runs, and waits for it by itself.
    pub is_dependent: bool,
}

impl LaunchShape {
    /// Blocks along x with so many threads each.
    pub fn linear(blocks: u32, threads: u32) -> Self {
        Self {
            grid: [blocks, 1, 1],
            threads,
            shared_bytes: 0,
            cluster: [1, 1, 1],
            is_dependent: false,
        }
    }

    fn attributes(&self) -> Vec<sys::CUlaunchAttribute> {
        let mut attributes = Vec::new();
        if self.cluster != [1, 1, 1] {
            let mut attribute =
                attribute(CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION);
            let [x, y, z] = self.cluster;
            attribute.value.clusterDim =
                sys::CUlaunchAttributeValue_union__bindgen_ty_1 { x, y, z };
            attributes.push(attribute);
        }
        if self.is_dependent {
            let id = CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
            let mut attribute = attribute(id);
            attribute.value.programmaticStreamSerializationAllowed = 1;
            attributes.push(attribute);
        }
        attributes
    }
}

fn attribute(id: CUlaunchAttributeID) -> sys::CUlaunchAttribute {
    // SAFETY: the value is a union of numbers and of pointers, for all of which zero is valid.
    let value = unsafe { std::mem::zeroed() };
    sys::CUlaunchAttribute { id, pad: [0; 4], value }
}

/// Adds a launch to a stream. `arguments` are the bytes of the kernel's parameters, in order; a launch whose arguments
/// differ from them in number or size is refused.
///
/// # Safety
/// The addresses among the arguments are those of memory that the kernel may use as it does, and that memory and the
/// kernel live until the launch has ended, or, where the stream is being captured, as long as the graph lives.
pub unsafe fn launch(
    stream: &Stream,
    kernel: &Kernel,
    shape: &LaunchShape,
    arguments: &[&[u8]],
) -> Result<(), CudaError> {
    check_arguments(kernel.name(), kernel.parameter_sizes(), arguments)?;
    stream.context().bind_to_thread()?;
    let mut pointers: Vec<*mut c_void> =
        arguments.iter().map(|bytes| bytes.as_ptr().cast_mut().cast()).collect();
    let mut attributes = shape.attributes();
    let [x, y, z] = shape.grid;
    let configuration = sys::CUlaunchConfig {
        gridDimX: x,
        gridDimY: y,
        gridDimZ: z,
        blockDimX: shape.threads,
        blockDimY: 1,
        blockDimZ: 1,
        sharedMemBytes: shape.shared_bytes,
        hStream: stream.raw(),
        attrs: attributes.as_mut_ptr(),
        numAttrs: attributes.len() as u32,
    };
    // SAFETY: the driver copies the configuration and the arguments, which have the sizes it reads, before it returns;
    // the caller vouches for what they point to.
    unsafe {
        checked!(cuLaunchKernelEx(
            &configuration,
            kernel.as_function(),
            pointers.as_mut_ptr(),
            std::ptr::null_mut(),
        ))
    }
}

fn check_arguments(kernel: &str, sizes: &[usize], arguments: &[&[u8]]) -> Result<(), CudaError> {
    if sizes.len() == arguments.len()
        && sizes.iter().zip(arguments).all(|(&size, bytes)| size == bytes.len())
    {
        return Ok(());
    }
    let given: Vec<usize> = arguments.iter().map(|bytes| bytes.len()).collect();
    Err(CudaError::Refused(format!(
        "kernel {kernel} takes parameters of {sizes:?} bytes and was given {given:?}"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_of_other_sizes_are_refused() {
        let (four, eight) = ([0u8; 4], [0u8; 8]);
        assert!(check_arguments("k", &[8, 4], &[&eight, &four]).is_ok());
        for arguments in [vec![&eight[..]], vec![&four[..], &eight[..]], vec![]] {
            let error = check_arguments("k", &[8, 4], &arguments).unwrap_err();
            assert!(error.to_string().contains("[8, 4]"), "{error}");
        }
    }

    #[test]
    fn a_launch_has_the_attributes_it_asks_for() {
        let plain = LaunchShape::linear(1, 32);
        assert_eq!(plain.attributes().len(), 0);
        let shape = LaunchShape { cluster: [2, 1, 1], is_dependent: true, ..plain };
        let ids: Vec<_> = shape.attributes().iter().map(|attribute| attribute.id as u32).collect();
        assert_eq!(ids, [4, 6]);
    }
}
