//! NonZero: where a tensor's non-zero elements stand.

use std::sync::Arc;

use crate::data_type::DataType;
use crate::error::OperatorError;
use crate::fact::Fact;
use crate::operator::{InputFacts, Inputs, NodeSource, Operator};
use crate::tensor::{Tensor, checked_count, strides};
use crate::value::Value;
use crate::with_elements;

/// One column of indices per non-zero element, one row per axis.
#[derive(Clone, Debug)]
struct NonZero;

pub(super) fn build(_source: &NodeSource<'_>) -> Result<Arc<dyn Operator>, OperatorError> {
    Ok(Arc::new(NonZero))
}

fn is_nonzero<T: PartialEq + Default>(element: &T) -> bool {
    *element != T::default()
}

impl Operator for NonZero {
    fn name(&self) -> &'static str {
        "NonZero"
    }

    fn evaluate(&self, inputs: &Inputs<'_>) -> Result<Vec<Value>, OperatorError> {
        let x = inputs.tensor(0)?;
        let found: Vec<usize> = with_elements!(x, elements => {
            let numbered = elements.iter().enumerate();
            numbered.filter(|(_, element)| is_nonzero(*element)).map(|(offset, _)| offset).collect()
        });
        let shape = vec![x.rank(), found.len()];
        checked_count(&shape, DataType::I64)?;
        let axes = strides(x.shape()).into_iter().zip(x.shape());
        let rows = axes.flat_map(|(step, &size)| {
            found.iter().map(move |&offset| ((offset / step) % size) as i64)
        });
        let indices = rows.collect();
        Ok(vec![Tensor::from_vec(shape, indices)?.into()])
    }

    fn infer(&self, inputs: &InputFacts<'_>) -> Result<Vec<Fact>, OperatorError> {
        let rank = inputs.dimensions(0).map(<[_]>::len);
        Ok(vec![Fact::partial(Some(DataType::I64), Some(vec![rank, None]))])
    }
}
