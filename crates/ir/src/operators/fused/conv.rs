//! FusedConv: a convolution with its epilogue.

use std::sync::Arc;

use super::epilogue::Epilogue;
use crate::error::OperatorError;
use crate::fact::Fact;
use crate::operator::{InputFacts, Inputs, Operator};
use crate::operators::convolution::Conv;
use crate::value::Value;

/// A convolution of `f32` whose inputs are images, weights, a bias or none, and a residual where the epilogue has one.
#[derive(Clone, Debug)]
pub struct FusedConv {
    /// The convolution.
    pub conv: Conv,
    /// What follows it.
    pub epilogue: Epilogue,
}

impl Operator for FusedConv {
    fn name(&self) -> &'static str {
        "FusedConv"
    }

    fn evaluate(&self, inputs: &Inputs<'_>) -> Result<Vec<Value>, OperatorError> {
        let own = &inputs.values()[..inputs.len().min(3)];
        let product = self.conv.evaluate(&Inputs::new(own, 1))?.remove(0).into_tensor()?;
        Ok(vec![self.epilogue.apply(product, inputs.optional_tensor(3)?)?.into()])
    }

    fn infer(&self, inputs: &InputFacts<'_>) -> Result<Vec<Fact>, OperatorError> {
        self.conv.infer(inputs)
    }

    fn flops(&self, inputs: &InputFacts<'_>, outputs: &[Fact]) -> u64 {
        self.conv.flops(inputs, outputs)
    }

    fn permuted(&self, permutation: &[usize]) -> Option<Arc<dyn Operator>> {
        let conv = self.conv.permuted(permutation)?.downcast::<Conv>()?.clone();
        Some(Arc::new(FusedConv { conv, epilogue: self.epilogue }))
    }
}
