//! Einsum: sums of products over named axes, done as one matrix product per further input.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::einsum_equation::{Equation, Label, label_sizes};
use super::mat_mul::product_of_stacks;
use super::scalar::{Scalar, in_scalars, same_type};
use crate::broadcast::strided_indices;
use crate::data_type::DataType;
use crate::error::OperatorError;
use crate::fact::Fact;
use crate::operator::{InputFacts, Inputs, NodeSource, Operator};
use crate::tensor::{Tensor, strides};
use crate::value::Value;

#[derive(Clone, Debug)]
struct Einsum {
    equation: Equation,
}

pub(super) fn build(source: &NodeSource<'_>) -> Result<Arc<dyn Operator>, OperatorError> {
    let text = source.attributes.string("equation")?.ok_or_else(|| OperatorError::Attribute {
        name: "equation".into(),
        problem: "is missing".into(),
    })?;
    Ok(Arc::new(Einsum { equation: Equation::parse(text)? }))
}

/// A tensor whose axes have names, each name once.
struct Named<T> {
    labels: Vec<Label>,
    shape: Vec<usize>,
    elements: Vec<T>,
}

impl<T: Scalar> Named<T> {
    /// An input: of axes with one name the diagonal, and without axes that broadcast.
    fn new(
        tensor: &Tensor,
        labels: &[Label],
        sizes: &BTreeMap<Label, Option<usize>>,
    ) -> Result<Self, OperatorError> {
        let steps = strides(tensor.shape());
        let mut named: Vec<(Label, usize, usize)> = Vec::new();
        for ((&label, &size), &step) in labels.iter().zip(tensor.shape()).zip(&steps) {
            if size == 1 && sizes.get(&label).copied().flatten() != Some(1) {
                continue;
            }
            match named.iter_mut().find(|axis| axis.0 == label) {
                Some(axis) => axis.2 += step,
                None => named.push((label, size, step)),
            }
        }
        let shape: Vec<usize> = named.iter().map(|axis| axis.1).collect();
        let steps: Vec<usize> = named.iter().map(|axis| axis.2).collect();
        let elements = T::read(tensor)?;
        let indices = strided_indices(&shape, &steps, 0);
        Ok(Self {
            labels: named.iter().map(|axis| axis.0).collect(),
            shape,
            elements: indices.into_iter().map(|index| elements[index]).collect(),
        })
    }

    /// The size of the axes of the given names together.
    fn size_of(&self, labels: &[Label]) -> usize {
        let axes = self.labels.iter().zip(&self.shape);
        axes.filter(|(label, _)| labels.contains(label)).map(|(_, &size)| size).product()
    }

    /// The same with its axes in the given order, which must name all of them.
    fn ordered(&self, labels: Vec<Label>) -> Self {
        let steps = strides(&self.shape);
        let axis = |label: &Label| self.labels.iter().position(|own| own == label);
        let axes: Vec<usize> = labels.iter().filter_map(axis).collect();
        let shape: Vec<usize> = axes.iter().map(|&axis| self.shape[axis]).collect();
        let steps: Vec<usize> = axes.iter().map(|&axis| steps[axis]).collect();
        let indices = strided_indices(&shape, &steps, 0);
        let elements = indices.into_iter().map(|index| self.elements[index]).collect();
        Self { labels, shape, elements }
    }

    /// Sums over the axes whose names are not wanted.
    fn summed(self, wanted: &[Label]) -> Self {
        let (kept, dropped): (Vec<Label>, Vec<Label>) =
            self.labels.iter().partition(|label| wanted.contains(label));
        if dropped.is_empty() {
            return self;
        }
        let width = self.size_of(&dropped);
        let ordered = self.ordered([&kept[..], &dropped].concat());
        let shape = ordered.shape[..kept.len()].to_vec();
        let add = |sum: T, &element: &T| sum.multiply_add(T::ONE, element);
        let count = shape.iter().product::<usize>();
        let elements = (0..count)
            .map(|row| ordered.elements[row * width..][..width].iter().fold(T::default(), add))
            .collect();
        Self { labels: kept, shape, elements }
    }

    /// The product with another, summed over the axes of both whose names are not wanted.
    fn contracted(
        self,
        other: Self,
        wanted: &[Label],
        data_type: DataType,
    ) -> Result<Self, OperatorError> {
        let left = {
            let wanted = [wanted, &other.labels].concat();
            self.summed(&wanted)
        };
        let right = {
            let wanted = [wanted, &left.labels].concat();
            other.summed(&wanted)
        };
        let pick = |from: &Self, test: &dyn Fn(&Label) -> bool| -> Vec<Label> {
            from.labels.iter().copied().filter(|label| test(label)).collect()
        };
        let both = |label: &Label| right.labels.contains(label);
        let stack = pick(&left, &|label| both(label) && wanted.contains(label));
        let depth = pick(&left, &|label| both(label) && !wanted.contains(label));
        let rows = pick(&left, &|label| !both(label));
        let columns = pick(&right, &|label| !left.labels.contains(label));
        let left = left.ordered([&stack[..], &rows, &depth].concat());
        let right = right.ordered([&stack[..], &depth, &columns].concat());
        let (_, elements) = product_of_stacks(
            &left.elements,
            &[left.size_of(&stack), left.size_of(&rows), left.size_of(&depth)],
            &right.elements,
            &[right.size_of(&stack), right.size_of(&depth), right.size_of(&columns)],
            data_type,
        )?;
        let mut shape = left.shape[..stack.len() + rows.len()].to_vec();
        shape.extend_from_slice(&right.shape[stack.len() + depth.len()..]);
        Ok(Self { labels: [stack, rows, columns].concat(), shape, elements })
    }
}

impl Einsum {
    fn sum<T: Scalar>(
        &self,
        tensors: &[&Tensor],
        data_type: DataType,
    ) -> Result<Tensor, OperatorError> {
        let ranks: Vec<usize> = tensors.iter().map(|tensor| tensor.rank()).collect();
        let labels = self.equation.input_labels(&ranks)?;
        let shapes: Vec<Vec<Option<usize>>> = tensors
            .iter()
            .map(|tensor| tensor.shape().iter().map(|&size| Some(size)).collect())
            .collect();
        let sizes = label_sizes(&labels, &shapes)?;
        let output = self.equation.output_labels(&labels);
        let mut result: Option<Named<T>> = None;
        for (index, tensor) in tensors.iter().enumerate() {
            let next = Named::new(tensor, &labels[index], &sizes)?;
            let later = labels[index + 1..].iter().flatten().copied();
            let wanted: Vec<Label> = output.iter().copied().chain(later).collect();
            result = Some(match result {
                None => next.summed(&wanted),
                Some(result) => result.contracted(next, &wanted, data_type)?,
            });
        }
        let result = result.ok_or(OperatorError::MissingInput(0))?.summed(&output).ordered(output);
        T::write(result.shape, data_type, result.elements)
    }
}

impl Operator for Einsum {
    fn name(&self) -> &'static str {
        "Einsum"
    }

    fn evaluate(&self, inputs: &Inputs<'_>) -> Result<Vec<Value>, OperatorError> {
        let tensors =
            (0..inputs.len()).map(|index| inputs.tensor(index)).collect::<Result<Vec<_>, _>>()?;
        let data_type = same_type(&tensors)?;
        let sum = in_scalars!(data_type, T => self.sum::<T>(&tensors, data_type))?;
        Ok(vec![sum.into()])
    }

    fn infer(&self, inputs: &InputFacts<'_>) -> Result<Vec<Fact>, OperatorError> {
        let shapes: Option<Vec<Vec<Option<usize>>>> =
            (0..inputs.len()).map(|index| inputs.dimensions(index).map(<[_]>::to_vec)).collect();
        let dimensions = match shapes {
            None => None,
            Some(shapes) => {
                let ranks: Vec<usize> = shapes.iter().map(Vec::len).collect();
                let labels = self.equation.input_labels(&ranks)?;
                let sizes = label_sizes(&labels, &shapes)?;
                let output = self.equation.output_labels(&labels);
                Some(output.iter().map(|label| sizes.get(label).copied().flatten()).collect())
            }
        };
        Ok(vec![Fact::partial(inputs.data_type(0), dimensions)])
    }

    fn flops(&self, inputs: &InputFacts<'_>, _outputs: &[Fact]) -> u64 {
        let shapes: Option<Vec<Vec<Option<usize>>>> =
            (0..inputs.len()).map(|index| inputs.dimensions(index).map(<[_]>::to_vec)).collect();
        let products = shapes.and_then(|shapes| {
            let ranks: Vec<usize> = shapes.iter().map(Vec::len).collect();
            let labels = self.equation.input_labels(&ranks).ok()?;
            let sizes = label_sizes(&labels, &shapes).ok()?;
            sizes.values().try_fold(1u64, |product, size| product.checked_mul((*size)? as u64))
        });
        let multiplications = self.equation.input_count().saturating_sub(1) as u64;
        products.unwrap_or(0).saturating_mul(2 * multiplications)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attribute::Attributes;
    use crate::builder::standard_operator;

    fn einsum(
        equation: &str,
        shapes: &[&[usize]],
    ) -> Result<(Vec<usize>, Vec<i64>), OperatorError> {
        let attributes = Attributes::new().with("equation", equation);
        let operator = standard_operator("Einsum", 12, &attributes)?;
        let ramp = |shape: &&[usize]| {
            let count = shape.iter().product::<usize>() as i64;
            let elements = (1..=count).collect();
            Tensor::from_vec(shape.to_vec(), elements).map(Value::from).map(Some)
        };
        let values = shapes.iter().map(ramp).collect::<Result<Vec<_>, _>>()?;
        let made = operator.evaluate(&Inputs::new(&values, 1))?.remove(0).into_tensor()?;
        Ok((made.shape().to_vec(), made.into_elements()?))
    }

    #[test]
    fn axes_are_summed_kept_and_broadcast() {
        type Case<'a> = (&'a str, &'a [&'a [usize]], &'a [usize], &'a [i64]);
        let cases: [Case<'_>; 7] = [
            ("ij,jk->ki", &[&[2, 2], &[2, 2]], &[2, 2], &[7, 15, 10, 22]),
            ("i,j,k->ik", &[&[2], &[2], &[2]], &[2, 2], &[3, 6, 6, 12]),
            ("ii->i", &[&[2, 2]], &[2], &[1, 4]),
            ("ii", &[&[2, 2]], &[], &[5]),
            ("i...,j...->...", &[&[2, 1], &[1, 3]], &[3], &[3, 6, 9]),
            ("bij,bj->bi", &[&[2, 1, 2], &[2, 2]], &[2, 1], &[5, 25]),
            ("ij,ij->", &[&[0, 2], &[0, 2]], &[], &[0]),
        ];
        for (equation, shapes, shape, elements) in cases {
            let (made_shape, made) = einsum(equation, shapes).unwrap();
            assert_eq!((&made_shape[..], &made[..]), (shape, elements), "{equation}");
        }
        assert!(einsum("ij,jk", &[&[2, 3], &[2, 3]]).is_err());
        assert!(einsum("ij,jk", &[&[2, 3]]).is_err());
    }
}
