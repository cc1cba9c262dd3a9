//! Calls of NVIDIA's libraries as data: what is computed, and on what. Nothing here needs a GPU.

mod convolution;
mod product;

use weft_ir::Activation;

pub(crate) use convolution::{Algorithm, Convolution};
pub(crate) use product::{ColumnMatrix, Product};

use crate::launch::Argument;

/// Which libraries a plan may call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LibrarySet {
    pub(crate) cublas_lt: bool,
    pub(crate) cudnn: bool,
}

/// The scratch memory that every call is given.
pub(crate) const WORKSPACE_BYTES: usize = 32 << 20;

/// One call, with operands that are arguments of a candidate, places in a plan or addresses.
#[derive(Clone, Debug)]
pub(crate) struct LibraryCall<Operand = Argument> {
    pub(crate) operation: Operation,
    pub(crate) operands: CallOperands<Operand>,
}

/// What a call computes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Operation {
    /// By cuBLASLt.
    Product(Product),
    /// By cuDNN.
    Convolution(Convolution),
}

/// What a call reads and writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CallOperands<Operand> {
    /// The left matrix, or the images.
    pub(crate) left: Operand,
    /// The right matrix, or the filters.
    pub(crate) right: Operand,
    /// In the type that the output is stored in.
    pub(crate) bias: Operand,
    pub(crate) residual: Operand,
    pub(crate) output: Operand,
    /// [`WORKSPACE_BYTES`] of scratch memory.
    pub(crate) workspace: Operand,
}

impl<Operand> CallOperands<Operand> {
    pub(crate) fn all(&self) -> [&Operand; 6] {
        [&self.left, &self.right, &self.bias, &self.residual, &self.output, &self.workspace]
    }

    pub(crate) fn map<'a, To>(
        &'a self,
        mut map: impl FnMut(&'a Operand) -> To,
    ) -> CallOperands<To> {
        CallOperands {
            left: map(&self.left),
            right: map(&self.right),
            bias: map(&self.bias),
            residual: map(&self.residual),
            output: map(&self.output),
            workspace: map(&self.workspace),
        }
    }
}

/// The activations that libraries compute exactly as the operators define them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallActivation {
    None,
    Relu,
    /// By the hyperbolic tangent.
    GeluTanh,
}

impl CallActivation {
    /// `None` where no library has the activation; what they call GELU is the approximation by the hyperbolic tangent,
    /// which is not [`Activation::Gelu`].
    fn of(activation: Option<Activation>) -> Option<Self> {
        match activation {
            None => Some(Self::None),
            Some(Activation::Relu) => Some(Self::Relu),
            Some(Activation::GeluTanh) => Some(Self::GeluTanh),
            Some(_) => None,
        }
    }
}
