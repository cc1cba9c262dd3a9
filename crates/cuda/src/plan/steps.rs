//! The steps of a plan, with everything they touch in its place.

use std::sync::Arc;

use weft_ir::{DataType, Operator, Tensor};

use super::place::Place;
use crate::Storage;
use crate::launch::{Launch, TensorMap};
use crate::library_call::LibraryCall;

/// What runs in one go: consecutive device steps are one CUDA graph.
#[derive(Clone)]
pub(crate) enum Stage {
    Device(Vec<DeviceStep>),
    Host(HostStep),
}

impl Stage {
    /// Its launches in order.
    pub(crate) fn launches(&self) -> impl Iterator<Item = &PlannedLaunch> {
        let steps = match self {
            Stage::Device(steps) => steps.as_slice(),
            Stage::Host(_) => &[],
        };
        steps.iter().flat_map(|step| &step.launches)
    }

    /// The places that its launches and library calls point to.
    pub(crate) fn places(&self) -> impl Iterator<Item = &Place> {
        let steps = match self {
            Stage::Device(steps) => steps.as_slice(),
            Stage::Host(_) => &[],
        };
        let of_calls = steps.iter().flat_map(|step| &step.library_call);
        self.launches()
            .flat_map(|launch| &launch.operands)
            .flat_map(Operand::places)
            .chain(of_calls.flat_map(|call| call.operands.all()))
    }
}

/// Launches that compute one task or convert one value.
#[derive(Clone)]
pub(crate) struct DeviceStep {
    /// None where there is nothing to compute, as for tensors without elements.
    pub(crate) launches: Vec<PlannedLaunch>,
    /// What a library computes after them.
    pub(crate) library_call: Option<LibraryCall<Place>>,
}

/// A launch whose parameters have their places.
#[derive(Clone)]
pub(crate) struct PlannedLaunch {
    pub(crate) launch: Launch,
    /// One per argument of the launch.
    pub(crate) operands: Vec<Operand>,
}

/// One parameter of a planned launch.
#[derive(Clone, Debug)]
pub(crate) enum Operand {
    /// An address.
    Address(Place),
    /// Several addresses, one after the other.
    Addresses(Vec<Place>),
    /// The fault word's address, and what to write there.
    Fault {
        /// The number of the step that reports it, from 1 on.
        number: u32,
    },
    /// A value, as its bytes lie in memory.
    Bytes(Vec<u8>),
    /// A description of the tensor that starts here.
    TensorMap(Place, TensorMap),
}

impl Operand {
    /// The places that it points to.
    pub(crate) fn places(&self) -> &[Place] {
        match self {
            Operand::Address(place) | Operand::TensorMap(place, _) => std::slice::from_ref(place),
            Operand::Addresses(places) => places,
            Operand::Fault { .. } | Operand::Bytes(_) => &[],
        }
    }
}

/// What the host does between two device stages.
#[derive(Clone)]
pub(crate) enum HostStep {
    /// Evaluates a node as its operator defines itself.
    Evaluate {
        operator: Arc<dyn Operator>,
        inputs: Vec<Option<HostOperand>>,
        /// The host slots that the outputs go to.
        outputs: Vec<Option<usize>>,
    },
    /// Copies a value from the device.
    Download { from: Place, value: DeviceValue, slot: usize },
    /// Copies a value to the device.
    Upload { from: HostOperand, to: Place, value: DeviceValue },
}

/// What is known of a value that lies on the device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DeviceValue {
    /// Its type in the graph.
    pub(crate) data_type: DataType,
    pub(crate) shape: Vec<usize>,
    /// How its elements lie in device memory.
    pub(crate) storage: Storage,
}

impl DeviceValue {
    /// The value as the caller gives or gets it, in its own type.
    pub(crate) fn given(self) -> Self {
        let storage = Storage::exact(self.data_type).unwrap_or(self.storage);
        Self { storage, ..self }
    }

    pub(crate) fn element_count(&self) -> usize {
        self.shape.iter().product()
    }

    pub(crate) fn size_bytes(&self) -> usize {
        self.element_count() * self.storage.size_bytes()
    }
}

/// A value as a host step reads it.
#[derive(Clone, Debug)]
pub(crate) struct HostOperand {
    pub(crate) source: HostSource,
    /// The shape it is read under, where a view has given it another one.
    pub(crate) shape: Option<Vec<usize>>,
}

/// Where a host step finds a value.
#[derive(Clone, Debug)]
pub(crate) enum HostSource {
    /// What the caller gave.
    Input(usize),
    /// What an earlier host step left.
    Slot(usize),
    Constant(Tensor),
}
