//! Where a value lies while a plan runs.

use weft_ir::{DataType, Fact, Tensor};

/// The place of one value.
#[derive(Clone, Debug)]
pub(crate) enum Slot {
    /// In the partition's arena, from this byte on.
    Arena {
        /// The start of the value.
        offset_bytes: usize,
    },
    /// The caller's tensor.
    Input(usize),
    /// The tensor that is given back to the caller.
    Output(usize),
    /// A constant that a kernel reads as it is.
    Constant(Tensor),
    /// A value of its own, made anew in each run: where type or shape are not those of the fast kernels.
    Heap(usize),
}

/// A value as a step sees it.
#[derive(Clone, Debug)]
pub(crate) struct Operand {
    /// Where it lies.
    pub(crate) slot: Slot,
    /// What is known of it, or of one chunk of it.
    pub(crate) fact: Fact,
    /// From one chunk to the next, in elements; 0 where every chunk uses the same memory.
    pub(crate) chunk_stride: usize,
}

impl Operand {
    /// True where it lies in the arena, in an output, or in a dense input or constant.
    pub(crate) fn is_dense(&self) -> bool {
        is_dense(&self.fact)
    }

    /// The number of elements, for values of known shape.
    pub(crate) fn len(&self) -> usize {
        self.fact.element_count().unwrap_or(0)
    }
}

/// True where a value can lie in the arena: `f32` of known shape, as nearly all activations are.
pub(crate) fn is_dense(fact: &Fact) -> bool {
    fact.data_type == Some(DataType::F32) && fact.shape().is_some()
}
