//! MaxPool: the greatest element of each window, and where it was.

use std::sync::Arc;

use super::pooling::Pooling;
use crate::data_type::DataType;
use crate::error::OperatorError;
use crate::fact::Fact;
use crate::operator::{InputFacts, Inputs, NodeSource, Operator};
use crate::operators::linear::scalar::{Scalar, in_scalars};
use crate::tensor::Tensor;
use crate::value::Value;

/// The maximum over each window; padding never wins.
#[derive(Clone, Debug)]
pub struct MaxPool {
    /// The window.
    pub pooling: Pooling,
    /// The second output, the flat index of each maximum in the input, is asked for.
    pub with_indices: bool,
    /// Indices count the spatial axes column by column.
    pub column_major: bool,
}

pub(super) fn build(source: &NodeSource<'_>) -> Result<Arc<dyn Operator>, OperatorError> {
    Ok(Arc::new(MaxPool {
        pooling: Pooling::from_source(source)?,
        with_indices: source.output_count > 1,
        column_major: source.attributes.int_or("storage_order", 0)? != 0,
    }))
}

/// A row-major position counted with the first axis fastest instead.
fn column_major(position: usize, spatial: &[usize]) -> usize {
    let (mut rest, mut below) = (position, spatial.iter().product::<usize>());
    let mut turned = 0;
    let mut stride = 1;
    for &size in spatial {
        below /= size.max(1);
        turned += rest / below.max(1) * stride;
        rest %= below.max(1);
        stride *= size;
    }
    turned
}

impl MaxPool {
    fn pool<T: Scalar>(&self, x: &Tensor) -> Result<Vec<Value>, OperatorError> {
        let elements = T::read(x)?;
        let (shape, best) = self.pooling.fold(
            x.shape(),
            &elements,
            None,
            |best: &mut Option<(T, usize, usize)>, element, place, position| {
                if best.is_none_or(|(greatest, ..)| element > greatest) {
                    *best = Some((element, place, position));
                }
            },
            |&best, _| best,
        )?;
        let greatest = best.iter().map(|best| best.map_or(T::LOWEST, |(element, ..)| element));
        let y = T::write(shape.clone(), x.data_type(), greatest.collect())?;
        let mut outputs = vec![y.into()];
        if self.with_indices {
            let spatial = x.shape().get(2..).unwrap_or_default();
            let index = |best: &Option<(T, usize, usize)>| match *best {
                None => -1,
                Some((_, place, position)) if self.column_major => {
                    (place - position + column_major(position, spatial)) as i64
                }
                Some((_, place, _)) => place as i64,
            };
            outputs.push(Tensor::from_vec(shape, best.iter().map(index).collect())?.into());
        }
        Ok(outputs)
    }
}

impl Operator for MaxPool {
    fn name(&self) -> &'static str {
        "MaxPool"
    }

    fn evaluate(&self, inputs: &Inputs<'_>) -> Result<Vec<Value>, OperatorError> {
        let x = inputs.tensor(0)?;
        in_scalars!(x.data_type(), T => self.pool::<T>(x))
    }

    fn infer(&self, inputs: &InputFacts<'_>) -> Result<Vec<Fact>, OperatorError> {
        let dimensions =
            inputs.dimensions(0).map(|x| self.pooling.output_dimensions(x)).transpose()?;
        let y = Fact::partial(inputs.data_type(0), dimensions.clone());
        let indices = Fact::partial(Some(DataType::I64), dimensions);
        Ok(if self.with_indices { vec![y, indices] } else { vec![y] })
    }

    fn flops(&self, _inputs: &InputFacts<'_>, outputs: &[Fact]) -> u64 {
        self.pooling.flops(outputs)
    }

    /// Indices are of elements in the model's own order, which permuting would change.
    fn permuted(&self, permutation: &[usize]) -> Option<Arc<dyn Operator>> {
        let pooling = self.pooling.permuted(permutation).filter(|_| !self.with_indices)?;
        Some(Arc::new(MaxPool { pooling, ..self.clone() }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attribute::Attributes;
    use crate::builder::standard_operator;
    use crate::operators::layout::transpose;

    #[test]
    fn channels_last_computes_the_same() {
        let attributes = Attributes::new()
            .with("kernel_shape", vec![3, 2])
            .with("strides", vec![2, 1])
            .with("ceil_mode", 1)
            .with("pads", vec![1, 0, 1, 1]);
        let elements = (0..2 * 3 * 6 * 5).map(|i| (i * 37 % 101) as f32).collect();
        let x = Tensor::from_vec(vec![2, 3, 6, 5], elements).unwrap();
        let turned = transpose(&x, &[0, 2, 3, 1]).unwrap();
        for name in ["MaxPool", "AveragePool", "LpPool", "GlobalAveragePool", "GlobalMaxPool"] {
            let pool = standard_operator(name, 19, &attributes).unwrap();
            let run = |operator: &dyn Operator, x: &Tensor| {
                let values = [Some(Value::from(x.clone()))];
                let made = operator.evaluate(&Inputs::new(&values, 1)).unwrap().remove(0);
                let fact = Fact::new(DataType::F32, x.shape());
                let inferred = operator.infer(&InputFacts::new(&[Some(&fact)], 1)).unwrap();
                assert_eq!(inferred[0].shape().unwrap(), made.tensor().unwrap().shape());
                made.into_tensor().unwrap()
            };
            let expected = transpose(&run(&*pool, &x), &[0, 2, 3, 1]).unwrap();
            let last = pool.permuted(&[0, 2, 3, 1]).unwrap();
            assert_eq!(run(&*last, &turned), expected, "{name}");
            assert_eq!(run(&*last.permuted(&[0, 3, 1, 2]).unwrap(), &x), run(&*pool, &x));
        }
    }

    #[test]
    fn columns_count_first_in_column_major_order() {
        let turned: Vec<_> = (0..6).map(|position| column_major(position, &[2, 3])).collect();
        assert_eq!(turned, [0, 2, 4, 1, 3, 5]);
    }
}
