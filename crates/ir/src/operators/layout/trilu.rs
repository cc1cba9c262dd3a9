//! Trilu: the upper or lower triangle of matrices, zeros elsewhere.

use std::sync::Arc;

use super::selection::zero;
use crate::error::OperatorError;
use crate::fact::Fact;
use crate::operator::{InputFacts, Inputs, NodeSource, Operator};
use crate::tensor::Tensor;
use crate::value::Value;

/// What lies on and above, or on and below, a diagonal of the last two axes.
#[derive(Clone, Debug)]
struct Trilu {
    upper: bool,
}

pub(super) fn build(source: &NodeSource<'_>) -> Result<Arc<dyn Operator>, OperatorError> {
    Ok(Arc::new(Trilu { upper: source.attributes.flag_or("upper", true)? }))
}

impl Operator for Trilu {
    fn name(&self) -> &'static str {
        "Trilu"
    }

    fn evaluate(&self, inputs: &Inputs<'_>) -> Result<Vec<Value>, OperatorError> {
        let x = inputs.tensor(0)?;
        let &[.., rows, columns] = x.shape() else {
            return Err(OperatorError::Axis { axis: -2, rank: x.rank() });
        };
        let diagonal = match inputs.optional_tensor(1)? {
            None => 0,
            Some(diagonal) => diagonal.only::<i64>()?,
        };
        let filler = x.len();
        let sources: Vec<usize> = (0..x.len())
            .map(|offset| {
                let (row, column) = (offset / columns % rows, offset % columns);
                let right_of_main = column as i64 - row as i64;
                let stays = match self.upper {
                    true => right_of_main >= diagonal,
                    false => right_of_main <= diagonal,
                };
                if stays { offset } else { filler }
            })
            .collect();
        let filled = Tensor::chained(&[x, &zero(x.data_type())])?;
        Ok(vec![filled.gathered(x.shape().to_vec(), &sources)?.into()])
    }

    fn infer(&self, inputs: &InputFacts<'_>) -> Result<Vec<Fact>, OperatorError> {
        let dimensions = inputs.dimensions(0).map(<[_]>::to_vec);
        Ok(vec![Fact::partial(inputs.data_type(0), dimensions)])
    }

    fn flops(&self, _inputs: &InputFacts<'_>, _outputs: &[Fact]) -> u64 {
        0
    }
}
