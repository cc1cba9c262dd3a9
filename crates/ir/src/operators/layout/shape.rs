//! Shape and Size: a tensor's dimensions, and how many elements it has, as tensors.

use std::sync::Arc;

use crate::data_type::DataType;
use crate::error::OperatorError;
use crate::fact::Fact;
use crate::operator::{InputFacts, Inputs, NodeSource, Operator};
use crate::tensor::{Tensor, element_count};
use crate::value::Value;

/// The dimensions `start..end` of the input.
#[derive(Clone, Debug)]
struct Shape {
    start: i64,
    end: Option<i64>,
}

pub(super) fn build_shape(source: &NodeSource<'_>) -> Result<Arc<dyn Operator>, OperatorError> {
    let attributes = source.attributes;
    Ok(Arc::new(Shape { start: attributes.int_or("start", 0)?, end: attributes.int("end")? }))
}

impl Shape {
    fn part<'a, T>(&self, dimensions: &'a [T]) -> &'a [T] {
        let rank = dimensions.len() as i64;
        let clamp = |at: i64| {
            let at = if at < 0 { at.saturating_add(rank) } else { at };
            at.clamp(0, rank) as usize
        };
        let (start, end) = (clamp(self.start), self.end.map_or(dimensions.len(), clamp));
        dimensions.get(start..end).unwrap_or(&[])
    }
}

fn sizes(dimensions: &[usize]) -> Tensor {
    Tensor::vector(dimensions.iter().map(|&dimension| dimension as i64).collect())
}

impl Operator for Shape {
    fn name(&self) -> &'static str {
        "Shape"
    }

    fn evaluate(&self, inputs: &Inputs<'_>) -> Result<Vec<Value>, OperatorError> {
        Ok(vec![sizes(self.part(inputs.tensor(0)?.shape())).into()])
    }

    fn infer(&self, inputs: &InputFacts<'_>) -> Result<Vec<Fact>, OperatorError> {
        let part = inputs.dimensions(0).map(|dimensions| self.part(dimensions));
        let known = part.and_then(|part| part.iter().copied().collect::<Option<Vec<usize>>>());
        Ok(vec![match known {
            Some(known) => Fact::constant(sizes(&known)),
            None => Fact::partial(Some(DataType::I64), Some(vec![part.map(<[_]>::len)])),
        }])
    }

    fn flops(&self, _inputs: &InputFacts<'_>, _outputs: &[Fact]) -> u64 {
        0
    }
}

/// The number of elements of the input.
#[derive(Clone, Debug)]
struct Size;

pub(super) fn build_size(_source: &NodeSource<'_>) -> Result<Arc<dyn Operator>, OperatorError> {
    Ok(Arc::new(Size))
}

impl Operator for Size {
    fn name(&self) -> &'static str {
        "Size"
    }

    fn evaluate(&self, inputs: &Inputs<'_>) -> Result<Vec<Value>, OperatorError> {
        Ok(vec![Tensor::scalar(inputs.tensor(0)?.len() as i64).into()])
    }

    fn infer(&self, inputs: &InputFacts<'_>) -> Result<Vec<Fact>, OperatorError> {
        let count = inputs.shape(0).and_then(|shape| element_count(&shape));
        Ok(vec![match count {
            Some(count) => Fact::constant(Tensor::scalar(count as i64)),
            None => Fact::new(DataType::I64, &[]),
        }])
    }

    fn flops(&self, _inputs: &InputFacts<'_>, _outputs: &[Fact]) -> u64 {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_dimensions_make_a_constant_even_beside_unknown_ones() {
        let input = Fact::partial(None, Some(vec![None, Some(3), Some(4)]));
        let facts = [Some(&input)];
        let infer =
            |start, end| Shape { start, end }.infer(&InputFacts::new(&facts, 1)).unwrap().remove(0);
        assert_eq!(infer(1, None).constant_i64s(), Some(vec![3, 4]));
        assert_eq!(infer(-2, Some(-1)).constant_i64s(), Some(vec![3]));
        assert_eq!(infer(2, Some(1)).constant_i64s(), Some(vec![]));
        assert_eq!(infer(0, None), Fact::partial(Some(DataType::I64), Some(vec![Some(3)])));
    }
}
