//! GlobalAveragePool, GlobalMaxPool and GlobalLpPool: each channel of each image reduced to one element.

use std::sync::Arc;

use super::image::{ImageShape, channels_last_after};
use super::lp_pool::exponent;
use crate::error::OperatorError;
use crate::fact::Fact;
use crate::operator::{InputFacts, Inputs, NodeSource, Operator};
use crate::tensor::Tensor;
use crate::value::Value;

/// How a channel is reduced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GlobalPoolKind {
    /// To its mean.
    Average,
    /// To its maximum.
    Max,
    /// To its norm with this exponent.
    Norm(i64),
}

/// A pool whose window is the whole image; the spatial axes stay, with size 1.
#[derive(Clone, Debug)]
pub struct GlobalPool {
    /// How a channel is reduced.
    pub kind: GlobalPoolKind,
    /// Images, in and out, are `[N, spatial..., C]`. Never read from a model.
    pub channels_last: bool,
}

pub(super) fn build(source: &NodeSource<'_>) -> Result<Arc<dyn Operator>, OperatorError> {
    let kind = match source.operator {
        "GlobalAveragePool" => GlobalPoolKind::Average,
        "GlobalMaxPool" => GlobalPoolKind::Max,
        _ => GlobalPoolKind::Norm(exponent(source)?),
    };
    Ok(Arc::new(GlobalPool { kind, channels_last: false }))
}

impl GlobalPool {
    fn reduce(&self, elements: impl Iterator<Item = f64>, count: usize) -> f64 {
        match self.kind {
            GlobalPoolKind::Average => elements.sum::<f64>() / count as f64,
            GlobalPoolKind::Max => elements.fold(f64::NEG_INFINITY, f64::max),
            GlobalPoolKind::Norm(p) => {
                let p = p as f64;
                elements.map(|element| element.abs().powf(p)).sum::<f64>().powf(1.0 / p)
            }
        }
    }
}

impl Operator for GlobalPool {
    fn name(&self) -> &'static str {
        match self.kind {
            GlobalPoolKind::Average => "GlobalAveragePool",
            GlobalPoolKind::Max => "GlobalMaxPool",
            GlobalPoolKind::Norm(_) => "GlobalLpPool",
        }
    }

    fn evaluate(&self, inputs: &Inputs<'_>) -> Result<Vec<Value>, OperatorError> {
        let x = inputs.tensor(0)?;
        let input = ImageShape::split(x.shape(), self.channels_last)?;
        let spatial = vec![1; input.spatial.len()];
        let output = ImageShape { spatial, ..input.clone() };
        let positions = input.positions();
        if positions == 0 {
            return Err(OperatorError::Invalid("a pool over images without elements".into()));
        }
        let elements = x.to_f64s()?;
        let y = input
            .planes()
            .map(|plane| self.reduce((0..positions).map(|p| elements[plane.at(p)]), positions))
            .collect();
        Ok(vec![Tensor::from_f64s(output.joined(), x.data_type(), y)?.into()])
    }

    fn infer(&self, inputs: &InputFacts<'_>) -> Result<Vec<Fact>, OperatorError> {
        let dimensions = match inputs.dimensions(0) {
            None => None,
            Some(x) => {
                let input = ImageShape::split(x, self.channels_last)?;
                let spatial = vec![Some(1); input.spatial.len()];
                Some(ImageShape { spatial, ..input }.joined())
            }
        };
        Ok(vec![Fact::partial(inputs.data_type(0), dimensions)])
    }

    fn flops(&self, inputs: &InputFacts<'_>, _outputs: &[Fact]) -> u64 {
        inputs.fact(0).and_then(Fact::element_count).unwrap_or(0) as u64
    }

    fn permuted(&self, permutation: &[usize]) -> Option<Arc<dyn Operator>> {
        let channels_last = channels_last_after(self.channels_last, permutation)?;
        Some(Arc::new(GlobalPool { channels_last, ..self.clone() }))
    }
}
