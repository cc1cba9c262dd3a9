//! One node as kernel selection sees it.

use weft_device::DeviceError;
use weft_ir::{DataType, Fact, Node, Operator, OptimizedGraph, Tensor};

use crate::choosing::{Choosing, LibraryAccess, Wanted};
use crate::launch::{Candidate, Launch};
use crate::weights::WeightStore;
use crate::{Chip, Precision, Storage};

/// A node with what is known of its values, and the chip and precision it is planned for.
#[derive(Clone, Copy)]
pub(crate) struct Site<'a> {
    pub(crate) node: &'a Node,
    pub(crate) graph: &'a OptimizedGraph,
    pub(crate) weights: &'a WeightStore,
    pub(crate) chip: Chip,
    pub(crate) precision: Precision,
    pub(crate) libraries: LibraryAccess<'a>,
    pub(crate) choosing: Choosing<'a>,
}

/// The ways to compute a node, the one expected to be fastest first.
pub(crate) struct Selected {
    /// At least one.
    pub(crate) candidates: Vec<Candidate>,
    /// Which of the node's inputs the launches read through [`crate::Argument::Input`]; other inputs are not needed
    /// on the device.
    pub(crate) reads: Vec<usize>,
    /// What is computed, as choices know it; `None` where there is nothing to choose.
    pub(crate) operator: Option<String>,
    /// A slow way that is right, for holding the others to it.
    pub(crate) reference: Option<Candidate>,
}

impl Selected {
    /// One way alone, without scratch memory.
    pub(crate) fn single(name: &str, launches: Vec<Launch>, reads: Vec<usize>) -> Self {
        let candidate = Candidate::new(name, launches, 0);
        Self::only(candidate, reads)
    }

    /// One way alone.
    pub(crate) fn only(candidate: Candidate, reads: Vec<usize>) -> Self {
        Self { candidates: vec![candidate], reads, operator: None, reference: None }
    }

    /// Several ways to compute an operator, of which the first is known to be right; `None` where there is none.
    pub(crate) fn among(
        operator: String,
        candidates: Vec<Candidate>,
        reads: Vec<usize>,
    ) -> Option<Self> {
        let operator = Some(operator);
        (!candidates.is_empty()).then_some(Self { candidates, reads, operator, reference: None })
    }
}

/// What a selector answers: `None` where it has no kernel for the node.
pub(crate) type Selection = Result<Option<Selected>, DeviceError>;

impl<'a> Site<'a> {
    /// The operator, where it is of type `T`.
    pub(crate) fn operator<T: Operator>(&self) -> Option<&'a T> {
        self.node.is::<T>()
    }

    /// What is known of an input; `None` where it is absent.
    pub(crate) fn input_fact(&self, index: usize) -> Option<&'a Fact> {
        Some(self.graph.fact(self.node.input(index)?))
    }

    /// What is known of an output; `None` where nobody asked for it.
    pub(crate) fn output_fact(&self, index: usize) -> Option<&'a Fact> {
        Some(self.graph.fact(self.node.outputs.get(index).copied().flatten()?))
    }

    /// The shape and storage of a value that can lie in device memory.
    pub(crate) fn resident(&self, fact: &Fact) -> Option<(Vec<usize>, Storage)> {
        Some((fact.shape()?, self.precision.storage_of(fact.data_type?)?))
    }

    /// How an input lies in device memory as the caller gives it, where it is one of the graph's.
    pub(crate) fn given_storage(&self, index: usize) -> Option<Storage> {
        let id = self.node.input(index)?;
        let is_given = self.graph.graph().required_inputs().any(|input| input == id);
        Storage::exact(self.graph.fact(id).data_type?).filter(|_| is_given)
    }

    /// The shape of an input of floating-point numbers in device memory.
    pub(crate) fn float_input(&self, index: usize) -> Option<Vec<usize>> {
        let (shape, storage) = self.resident(self.input_fact(index)?)?;
        storage.is_float().then_some(shape)
    }

    /// The shape of the first output, where it is of floating-point numbers and the only one asked for.
    pub(crate) fn float_output(&self) -> Option<Vec<usize>> {
        let is_only = self.node.outputs.iter().skip(1).all(Option::is_none);
        let (shape, storage) = self.resident(self.output_fact(0)?)?;
        (is_only && storage.is_float()).then_some(shape)
    }

    /// What is wanted of an operator's candidates.
    pub(crate) fn wanted(&self, operator: &str) -> Wanted {
        self.choosing.wanted(operator, self.precision)
    }

    /// An input that is a constant.
    pub(crate) fn constant(&self, index: usize) -> Option<&'a Tensor> {
        self.graph.graph().constant(self.node.input(index)?)
    }

    /// An input that is a constant of `f32`.
    pub(crate) fn f32_constant(&self, index: usize) -> Option<&'a Tensor> {
        self.constant(index).filter(|tensor| tensor.data_type() == DataType::F32)
    }

    /// True where the node lists the input.
    pub(crate) fn has_input(&self, index: usize) -> bool {
        self.node.input(index).is_some()
    }
}
