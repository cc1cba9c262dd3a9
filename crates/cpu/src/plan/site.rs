//! One node as kernel selection sees it.

use std::sync::Arc;

use weft_device::KernelChoices;
use weft_ir::operators::elementwise::BoundInput;
use weft_ir::{Activation, Fact, Facts, Node, Operator, OptimizedGraph, Tensor};

use super::kernel::Kernel;
use super::slot::is_dense;
use crate::Isa;
use crate::tuning::FusedOperator;
use crate::weights::WeightStore;

/// A node with what is known of its values, and the partition it will run on.
pub(crate) struct Site<'a> {
    pub(crate) node: &'a Node,
    pub(crate) graph: &'a OptimizedGraph,
    /// What is known of the values: of the whole batch, or of one chunk of it.
    pub(crate) facts: &'a Facts,
    /// By these a candidate is chosen, so that the sums of a part of a batch are cut as those of the whole are.
    pub(crate) deciding: &'a Facts,
    pub(crate) weights: &'a WeightStore,
    pub(crate) isa: Isa,
    pub(crate) workers: usize,
    /// Which kernels were found to be fastest, where any were tried.
    pub(crate) choices: Option<&'a dyn KernelChoices>,
}

/// The kernel for a node, and which of the node's inputs it reads when it runs, in its own order.
pub(crate) struct Selected {
    pub(crate) kernel: Box<dyn Kernel>,
    pub(crate) reads: Vec<usize>,
}

impl Selected {
    pub(crate) fn new(kernel: impl Kernel + 'static, reads: Vec<usize>) -> Option<Self> {
        Some(Self { kernel: Box::new(kernel), reads })
    }
}

impl<'a> Site<'a> {
    /// The operator, where it is of type `T`.
    pub(crate) fn operator<T: Operator>(&self) -> Option<&'a T> {
        self.node.is::<T>()
    }

    /// What is known of an input; `None` where it is absent.
    pub(crate) fn input_fact(&self, index: usize) -> Option<&'a Fact> {
        Some(self.facts.of(self.node.input(index)?))
    }

    /// The shape of an input that lies densely in memory as `f32`.
    pub(crate) fn dense_input(&self, index: usize) -> Option<Vec<usize>> {
        let fact = self.input_fact(index)?;
        if is_dense(fact) { fact.shape() } else { None }
    }

    /// The shape of the first output, where it lies densely in memory as `f32` and is the only one asked for.
    pub(crate) fn dense_output(&self) -> Option<Vec<usize>> {
        let fact = self.facts.of(self.node.output()?);
        let is_only = self.node.outputs.iter().skip(1).all(Option::is_none);
        if is_only && is_dense(fact) { fact.shape() } else { None }
    }

    /// An input that is a constant.
    pub(crate) fn constant(&self, index: usize) -> Option<&'a Tensor> {
        self.graph.graph().constant(self.node.input(index)?)
    }

    /// An input that is a constant of `f32`.
    pub(crate) fn constant_f32s(&self, index: usize) -> Option<&'a [f32]> {
        self.constant(index)?.elements::<f32>().ok()
    }

    /// The activation that the node is, where it is one.
    pub(crate) fn activation(&self) -> Option<Activation> {
        Activation::of(&*self.node.operator, |index| match self.node.input(index) {
            None => BoundInput::Absent,
            Some(_) => self.constant(index).map_or(BoundInput::Computed, BoundInput::Constant),
        })
    }

    /// The same node as candidates are chosen for it.
    pub(crate) fn as_decided(&self) -> Self {
        Self { facts: self.deciding, ..*self }
    }

    /// The name of the candidate that was found to be fastest.
    pub(crate) fn chosen(&self, operator: &FusedOperator) -> Option<Arc<str>> {
        self.choices?.choice(&operator.key(), self.workers)
    }

    /// True where the node lists the input.
    pub(crate) fn has_input(&self, index: usize) -> bool {
        self.node.input(index).is_some()
    }
}
