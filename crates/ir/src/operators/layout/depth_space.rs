//! DepthToSpace and SpaceToDepth: blocks of channels become blocks of pixels, and back.

use std::sync::Arc;

use super::transpose;
use crate::error::OperatorError;
use crate::fact::Fact;
use crate::operator::{InputFacts, Inputs, NodeSource, Operator};
use crate::value::Value;

/// Which way the blocks go, and which channels belong to one block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Direction {
    /// The block is the outer part of the channels.
    DepthToSpaceOuter,
    /// The block is the inner part of the channels.
    DepthToSpaceInner,
    SpaceToDepth,
}

/// Moves square blocks between the channels and the two spatial axes.
#[derive(Clone, Debug)]
struct DepthSpace {
    direction: Direction,
    block: usize,
}

fn block(source: &NodeSource<'_>) -> Result<usize, OperatorError> {
    let given = source.attributes.int_or("blocksize", 0)?;
    let block = usize::try_from(given).ok().filter(|&block| (1..1 << 31).contains(&block));
    block.ok_or_else(|| OperatorError::Attribute {
        name: "blocksize".into(),
        problem: format!("{given} is no size of a block"),
    })
}

pub(super) fn build_depth_to_space(
    source: &NodeSource<'_>,
) -> Result<Arc<dyn Operator>, OperatorError> {
    let direction = match source.attributes.string_or("mode", "DCR")? {
        "DCR" => Direction::DepthToSpaceOuter,
        "CRD" => Direction::DepthToSpaceInner,
        other => {
            let problem = format!("'{other}' is neither DCR nor CRD");
            return Err(OperatorError::Attribute { name: "mode".into(), problem });
        }
    };
    Ok(Arc::new(DepthSpace { direction, block: block(source)? }))
}

pub(super) fn build_space_to_depth(
    source: &NodeSource<'_>,
) -> Result<Arc<dyn Operator>, OperatorError> {
    Ok(Arc::new(DepthSpace { direction: Direction::SpaceToDepth, block: block(source)? }))
}

impl DepthSpace {
    fn target(&self, from: &[Option<usize>]) -> Result<[Option<usize>; 4], OperatorError> {
        let invalid = || {
            OperatorError::Invalid(format!(
                "{from:?} does not divide into blocks of {}",
                self.block
            ))
        };
        let &[batch, channels, height, width] = from else {
            return Err(invalid());
        };
        let area = self.block * self.block;
        let divide = |size: Option<usize>, by: usize| match size {
            Some(size) if size % by != 0 => Err(invalid()),
            size => Ok(size.map(|size| size / by)),
        };
        let multiply = |size: Option<usize>, by: usize| match size {
            None => Ok(None),
            Some(size) => size.checked_mul(by).map(Some).ok_or_else(invalid),
        };
        Ok(match self.direction {
            Direction::SpaceToDepth => [
                batch,
                multiply(channels, area)?,
                divide(height, self.block)?,
                divide(width, self.block)?,
            ],
            _ => [
                batch,
                divide(channels, area)?,
                multiply(height, self.block)?,
                multiply(width, self.block)?,
            ],
        })
    }
}

impl Operator for DepthSpace {
    fn name(&self) -> &'static str {
        match self.direction {
            Direction::SpaceToDepth => "SpaceToDepth",
            _ => "DepthToSpace",
        }
    }

    fn evaluate(&self, inputs: &Inputs<'_>) -> Result<Vec<Value>, OperatorError> {
        let x = inputs.tensor(0)?;
        let from: Vec<Option<usize>> = x.shape().iter().copied().map(Some).collect();
        let target: Vec<usize> = self.target(&from)?.into_iter().flatten().collect();
        let (batch, height, width) = (x.shape()[0], x.shape()[2], x.shape()[3]);
        let (block, channels) = (self.block, target[1]);
        let (split, permutation) = match self.direction {
            Direction::DepthToSpaceOuter => {
                ([batch, block, block, channels, height, width], [0, 3, 4, 1, 5, 2])
            }
            Direction::DepthToSpaceInner => {
                ([batch, channels, block, block, height, width], [0, 1, 4, 2, 5, 3])
            }
            Direction::SpaceToDepth => {
                ([batch, x.shape()[1], target[2], block, target[3], block], [0, 3, 5, 1, 2, 4])
            }
        };
        let moved = transpose(&x.reshaped(split.to_vec())?, &permutation)?;
        Ok(vec![moved.reshaped(target)?.into()])
    }

    fn infer(&self, inputs: &InputFacts<'_>) -> Result<Vec<Fact>, OperatorError> {
        let dimensions = match inputs.dimensions(0) {
            None => vec![None; 4],
            Some(from) => self.target(from)?.to_vec(),
        };
        Ok(vec![Fact::partial(inputs.data_type(0), Some(dimensions))])
    }

    fn flops(&self, _inputs: &InputFacts<'_>, _outputs: &[Fact]) -> u64 {
        0
    }
}
