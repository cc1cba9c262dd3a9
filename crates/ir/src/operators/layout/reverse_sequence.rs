//! ReverseSequence: the first part of each sequence in a batch, turned round.

use std::sync::Arc;

use crate::error::OperatorError;
use crate::fact::Fact;
use crate::operator::{InputFacts, Inputs, NodeSource, Operator};
use crate::tensor::strides;
use crate::value::Value;

/// Reverses the first `sequence_lens[b]` steps of batch `b`.
#[derive(Clone, Debug)]
struct ReverseSequence {
    batch_axis: usize,
    time_axis: usize,
}

pub(super) fn build(source: &NodeSource<'_>) -> Result<Arc<dyn Operator>, OperatorError> {
    let axis = |name: &str, default| match source.attributes.int_or(name, default)? {
        0 => Ok(0),
        1 => Ok(1),
        other => Err(OperatorError::Attribute {
            name: name.into(),
            problem: format!("{other} is neither 0 nor 1"),
        }),
    };
    let (batch_axis, time_axis) = (axis("batch_axis", 1)?, axis("time_axis", 0)?);
    if batch_axis == time_axis {
        let problem = "is the time axis too".into();
        return Err(OperatorError::Attribute { name: "batch_axis".into(), problem });
    }
    Ok(Arc::new(ReverseSequence { batch_axis, time_axis }))
}

impl Operator for ReverseSequence {
    fn name(&self) -> &'static str {
        "ReverseSequence"
    }

    fn evaluate(&self, inputs: &Inputs<'_>) -> Result<Vec<Value>, OperatorError> {
        let (x, lengths) = (inputs.tensor(0)?, inputs.tensor(1)?.to_i64s()?);
        if x.rank() < 2 {
            return Err(OperatorError::Axis { axis: 1, rank: x.rank() });
        }
        let (batch, time) = (x.shape()[self.batch_axis], x.shape()[self.time_axis]);
        let lengths: Option<Vec<usize>> = lengths
            .iter()
            .map(|&length| usize::try_from(length).ok().filter(|&length| length <= time))
            .collect();
        let lengths = lengths.filter(|lengths| lengths.len() == batch).ok_or_else(|| {
            OperatorError::Invalid(format!("no lengths for {batch} sequences of up to {time}"))
        })?;
        let steps = strides(x.shape());
        let (batch_step, time_step) = (steps[self.batch_axis], steps[self.time_axis]);
        let sources: Vec<usize> = (0..x.len())
            .map(|offset| {
                let length = lengths[offset / batch_step % batch];
                let at = offset / time_step % time;
                let from = if at < length { length - 1 - at } else { at };
                offset - at * time_step + from * time_step
            })
            .collect();
        Ok(vec![x.gathered(x.shape().to_vec(), &sources)?.into()])
    }

    fn infer(&self, inputs: &InputFacts<'_>) -> Result<Vec<Fact>, OperatorError> {
        let dimensions = inputs.dimensions(0).map(<[_]>::to_vec);
        Ok(vec![Fact::partial(inputs.data_type(0), dimensions)])
    }

    fn flops(&self, _inputs: &InputFacts<'_>, _outputs: &[Fact]) -> u64 {
        0
    }
}
