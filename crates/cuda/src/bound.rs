//! Launches bound to memory: all that is left to do is to give them to a stream.

use std::sync::Arc;

use crate::compiler::Kernels;
use crate::driver::{
    CudaError, Kernel, LaunchShape, Stream, StreamPriority, encode_tensor_map, launch,
};
use crate::launch::KernelSource;
use crate::plan::place::Bases;
use crate::plan::steps::{Operand, PlannedLaunch};
use crate::shared_launch::{DESCRIPTION_ALIGNMENT, Parameter, Problem, SharedLaunch};

/// A launch with its kernel and the bytes of its parameters.
pub(crate) struct BoundLaunch {
    kernel: Arc<Kernel>,
    source: KernelSource,
    shape: LaunchShape,
    parameters: Vec<Parameter>,
    /// It may start while the launch before it still runs, and waits for it by itself.
    can_overlap: bool,
}

impl BoundLaunch {
    /// Compiles and loads the kernel unless it is loaded already, and fills in the addresses.
    pub(crate) fn new(
        planned: &PlannedLaunch,
        kernels: &Kernels,
        bases: &Bases,
        can_overlap: bool,
    ) -> Result<Self, CudaError> {
        let launch = &planned.launch;
        let shape = LaunchShape {
            grid: launch.grid,
            threads: launch.threads,
            shared_bytes: launch.shared_bytes,
            cluster: launch.cluster,
            is_dependent: false,
        };
        let kernel = kernels.get(&launch.source)?;
        // Under MPS, tensor maps are encoded for the context that is current.
        kernel.context().bind_to_thread()?;
        let parameters = planned.operands.iter().map(|operand| parameter(operand, bases));
        let parameters = parameters.collect::<Result<_, _>>()?;
        Ok(Self { kernel, source: launch.source.clone(), shape, parameters, can_overlap })
    }

    /// A launch that several share.
    pub(crate) fn of_shared(
        shared: SharedLaunch,
        kernels: &Kernels,
        can_overlap: bool,
    ) -> Result<Self, CudaError> {
        let SharedLaunch { source, blocks, threads, shared_bytes, parameters } = shared;
        let shape = LaunchShape { shared_bytes, ..LaunchShape::linear(blocks, threads) };
        let kernel = kernels.get(&source)?;
        let parameters = vec![Parameter { bytes: parameters, alignment: DESCRIPTION_ALIGNMENT }];
        Ok(Self { kernel, source, shape, parameters, can_overlap })
    }

    /// What it computes, for a launch that it shares with others.
    pub(crate) fn problem(&self) -> Problem<'_> {
        Problem {
            source: &self.source,
            grid: self.shape.grid,
            threads: self.shape.threads,
            cluster: self.shape.cluster,
            shared_bytes: self.shape.shared_bytes,
            static_shared_bytes: self.kernel.static_shared_bytes(),
            registers: self.kernel.registers(),
            parameters: &self.parameters,
        }
    }

    /// The kernel that is launched.
    pub(crate) fn kernel(&self) -> &Kernel {
        &self.kernel
    }

    /// Adds it to a stream, after another launch or not.
    ///
    /// # Safety
    /// The memory at its addresses lives until it has ended; where the stream is being captured, that memory and the
    /// launch live as long as the graph.
    pub(crate) unsafe fn add_to(
        &self,
        stream: &Stream,
        follows_launch: bool,
    ) -> Result<(), CudaError> {
        let shape = LaunchShape {
            is_dependent: follows_launch && self.can_overlap,
            grid: match self.source.stays {
                true => staying(self.shape.grid, stream.priority(), stream.sm_count()),
                false => self.shape.grid,
            },
            ..self.shape
        };
        let arguments: Vec<&[u8]> =
            self.parameters.iter().map(|parameter| parameter.bytes.as_slice()).collect();
        // SAFETY: the caller vouches for the addresses, and holds `self`, which holds the kernel.
        unsafe { launch(stream, &self.kernel, &shape, &arguments) }
    }
}

/// How many blocks that stay there are on a stream of so many SMs. In the background they leave after each tile, so that others
/// find room.
fn staying([x, y, z]: [u32; 3], priority: StreamPriority, sms: u32) -> [u32; 3] {
    match priority {
        StreamPriority::Foreground => [x.min(sms), y, z],
        StreamPriority::Background => [x, y, z],
    }
}

/// A parameter as its bytes lie in memory.
fn parameter(operand: &Operand, bases: &Bases) -> Result<Parameter, CudaError> {
    let alignment = match operand {
        Operand::TensorMap(..) => DESCRIPTION_ALIGNMENT,
        _ => size_of::<u64>(),
    };
    let bytes = match operand {
        Operand::Address(place) => bases.address(place).to_ne_bytes().to_vec(),
        Operand::Addresses(places) => {
            places.iter().flat_map(|place| bases.address(place).to_ne_bytes()).collect()
        }
        Operand::Bytes(bytes) => bytes.clone(),
        Operand::Fault { number } => {
            let mut bytes = bases.fault.to_ne_bytes().to_vec();
            bytes.extend(number.to_ne_bytes());
            bytes.extend([0; 4]);
            bytes
        }
        Operand::TensorMap(place, map) => encode_tensor_map(map, bases.address(place))?.to_vec(),
    };
    Ok(Parameter { bytes, alignment })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::launch::{Argument, Launch};
    use crate::plan::place::Place;

    #[test]
    fn blocks_that_stay_are_tried_as_they_are_in_the_foreground() {
        let source = KernelSource { stays: true, ..KernelSource::new("k.cu", "", "k", Vec::new()) };
        let arguments = vec![Argument::i32(0)];
        let (threads, shared_bytes, cluster) = (32, 0, [1; 3]);
        let launch =
            Launch { source, grid: [200, 1, 1], threads, shared_bytes, cluster, arguments };
        let blocks = |launch: &Launch| {
            [StreamPriority::Foreground, StreamPriority::Background]
                .map(|priority| staying(launch.grid, priority, 32)[0])
        };
        assert_eq!(blocks(&launch), [32, 200]);
        for (sms, expected) in [(32, 32), (8, 8)] {
            let tried = launch.staying_on(sms);
            assert_eq!(blocks(&tried), [expected; 2]);
            // They have all tiles among them.
            let said = tried.arguments.last();
            assert!(matches!(said, Some(Argument::Bytes(of)) if *of == expected.to_ne_bytes()));
        }
        // Those of a launch for several requests have all of these among them.
        let of_entries = launch.for_entries(4);
        assert_eq!((of_entries.grid, of_entries.source.entry_point()), (launch.grid, "entries"));
        assert_eq!(blocks(&of_entries), [32, 200]);
        assert_eq!(launch.staying_on(8).for_entries(4).grid, [8, 1, 1]);
    }

    #[test]
    fn parameters_are_the_bytes_that_kernels_read() {
        let bases = Bases { arena: 0x1_0000_0000, fault: 0x2_0000_0000, ..Default::default() };
        let bytes = |operand| parameter(&operand, &bases).unwrap().bytes;
        assert_eq!(
            bytes(Operand::Address(Place::Arena { offset_bytes: 512 })),
            0x1_0000_0200u64.to_ne_bytes()
        );
        let both = [Place::Arena { offset_bytes: 0 }, Place::Null];
        assert_eq!(bytes(Operand::Addresses(both.to_vec())).len(), 16);
        assert_eq!(bytes(Operand::Bytes(vec![1, 2, 3])), [1, 2, 3]);
        let fault = bytes(Operand::Fault { number: 7 });
        assert_eq!(fault.len(), 16);
        assert_eq!(fault[..8], 0x2_0000_0000u64.to_ne_bytes());
        assert_eq!(fault[8..12], 7u32.to_ne_bytes());
    }
}
