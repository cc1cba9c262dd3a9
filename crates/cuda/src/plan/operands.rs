//! From a launch's arguments to its operands: what each parameter refers to gets its place.

use super::place::Place;
use super::steps::{Operand, PlannedLaunch};
use crate::launch::{Argument, Launch};
use crate::library_call::LibraryCall;

/// Where one step's values lie.
pub(crate) struct StepPlaces {
    /// As the arguments number them; `None` for inputs that the kernels do not read.
    pub(crate) inputs: Vec<Option<Place>>,
    pub(crate) outputs: Vec<Option<Place>>,
    /// The start of the scratch memory in the arena.
    pub(crate) workspace_bytes: usize,
    /// The step's number in the report.
    pub(crate) step: usize,
}

impl StepPlaces {
    fn input(&self, index: usize) -> Place {
        let place = self.inputs.get(index).cloned().flatten();
        place.expect("a selector names the inputs that its launches read")
    }

    fn output(&self, index: usize) -> Place {
        let place = self.outputs.get(index).cloned().flatten();
        place.expect("launches write only outputs that the node asks for")
    }
}

/// Gives operands their places, and every launch counters of its own.
#[derive(Default)]
pub(crate) struct OperandBinder {
    /// Counters given away so far.
    pub(crate) counter_count: usize,
}

impl OperandBinder {
    pub(crate) fn bind(&mut self, launch: Launch, places: &StepPlaces) -> PlannedLaunch {
        let operands = launch.arguments.iter().map(|argument| self.operand(argument, places));
        let operands = operands.collect();
        PlannedLaunch { launch, operands }
    }

    pub(crate) fn bind_call(
        &mut self,
        call: &LibraryCall,
        places: &StepPlaces,
    ) -> LibraryCall<Place> {
        LibraryCall {
            operation: call.operation,
            operands: call.operands.map(|argument| self.place(argument, places)),
        }
    }

    fn operand(&mut self, argument: &Argument, places: &StepPlaces) -> Operand {
        match argument {
            Argument::Bytes(bytes) => Operand::Bytes(bytes.clone()),
            Argument::Fault => Operand::Fault {
                number: u32::try_from(places.step + 1).expect("a plan has fewer than 2^32 steps"),
            },
            Argument::TensorMap(map) => {
                Operand::TensorMap(self.place(&map.base, places), map.clone())
            }
            Argument::Addresses(all) => {
                Operand::Addresses(all.iter().map(|address| self.place(address, places)).collect())
            }
            address => Operand::Address(self.place(address, places)),
        }
    }

    fn place(&mut self, argument: &Argument, places: &StepPlaces) -> Place {
        match argument {
            Argument::Input(index) | Argument::Given(index) => places.input(*index),
            Argument::Output(index) => places.output(*index),
            Argument::Weights(weights) => Place::Weights(weights.clone()),
            Argument::Workspace { offset_bytes } => {
                Place::Arena { offset_bytes: places.workspace_bytes + offset_bytes }
            }
            Argument::Counters { count } => {
                let first = self.counter_count;
                self.counter_count += count;
                Place::Counters { first }
            }
            Argument::Null => Place::Null,
            Argument::Bytes(_)
            | Argument::Fault
            | Argument::TensorMap(_)
            | Argument::Addresses(_) => unreachable!("{argument:?} is no address"),
        }
    }
}
