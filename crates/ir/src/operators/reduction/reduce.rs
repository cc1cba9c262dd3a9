//! The Reduce family: sums, means, norms and extremes over axes.

use std::sync::Arc;

use super::fold::fold_axes;
use crate::axis::normalise_axes;
use crate::error::OperatorError;
use crate::fact::Fact;
use crate::operator::{InputFacts, Inputs, NodeSource, Operator};
use crate::operators::elementwise::number::{Number, narrowed, widened, with_numbers};
use crate::operators::elementwise::zip::zip_broadcast;
use crate::tensor::{Tensor, TensorData, checked_count};
use crate::value::Value;

/// One function of all elements along some axes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reduce {
    /// Which function.
    pub function: ReduceFunction,
    /// Where the axes are found.
    pub axes: ReduceAxes,
    /// Axes that were reduced stay, with size 1.
    pub keep_dimensions: bool,
    /// No axes means none rather than all.
    pub noop_with_empty_axes: bool,
}

/// Where the axes of a reduction are found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReduceAxes {
    /// Here.
    Attribute(Vec<i64>),
    /// In input 1, if there is one.
    Input,
}

/// A function of any number of elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum ReduceFunction {
    Sum,
    Mean,
    Max,
    Min,
    Prod,
    L1,
    L2,
    LogSum,
    LogSumExp,
    SumSquare,
}

/// Function, name of its operator, and the opset at which its axes became an input.
const FUNCTIONS: &[(ReduceFunction, &str, i64)] = &[
    (ReduceFunction::Sum, "ReduceSum", 13),
    (ReduceFunction::Mean, "ReduceMean", 18),
    (ReduceFunction::Max, "ReduceMax", 18),
    (ReduceFunction::Min, "ReduceMin", 18),
    (ReduceFunction::Prod, "ReduceProd", 18),
    (ReduceFunction::L1, "ReduceL1", 18),
    (ReduceFunction::L2, "ReduceL2", 18),
    (ReduceFunction::LogSum, "ReduceLogSum", 18),
    (ReduceFunction::LogSumExp, "ReduceLogSumExp", 18),
    (ReduceFunction::SumSquare, "ReduceSumSquare", 18),
];

pub(super) fn build(source: &NodeSource<'_>) -> Result<Arc<dyn Operator>, OperatorError> {
    let &(function, _, axes_input_since) = FUNCTIONS
        .iter()
        .find(|row| row.1 == source.operator)
        .ok_or_else(|| OperatorError::Unsupported(source.operator.to_string()))?;
    let axes = match source.attributes.ints("axes")? {
        Some(axes) => ReduceAxes::Attribute(axes.to_vec()),
        None if source.opset < axes_input_since => ReduceAxes::Attribute(Vec::new()),
        None => ReduceAxes::Input,
    };
    Ok(Arc::new(Reduce {
        function,
        axes,
        keep_dimensions: source.attributes.flag_or("keepdims", true)?,
        noop_with_empty_axes: source.attributes.flag_or("noop_with_empty_axes", false)?,
    }))
}

impl Reduce {
    /// The axes to reduce, sorted, given what input 1 holds.
    pub fn axes_for(
        &self,
        rank: usize,
        input: Option<&[i64]>,
    ) -> Result<Vec<usize>, OperatorError> {
        let axes = match &self.axes {
            ReduceAxes::Attribute(axes) => axes,
            ReduceAxes::Input => input.unwrap_or(&[]),
        };
        match axes {
            [] if self.noop_with_empty_axes => Ok(Vec::new()),
            [] => Ok((0..rank).collect()),
            axes => normalise_axes(axes, rank),
        }
    }

    fn reduced_shape<T: Clone>(&self, shape: &[T], axes: &[usize], one: T) -> Vec<T> {
        let sizes = shape.iter().enumerate();
        if self.keep_dimensions {
            sizes
                .map(|(axis, size)| if axes.contains(&axis) { one.clone() } else { size.clone() })
                .collect()
        } else {
            sizes.filter(|(axis, _)| !axes.contains(axis)).map(|(_, size)| size.clone()).collect()
        }
    }
}

impl Operator for Reduce {
    fn name(&self) -> &'static str {
        FUNCTIONS.iter().find(|row| row.0 == self.function).expect("every function has a name").1
    }

    fn evaluate(&self, inputs: &Inputs<'_>) -> Result<Vec<Value>, OperatorError> {
        let x = inputs.tensor(0)?;
        let given = inputs.optional_tensor(1)?.map(Tensor::to_i64s).transpose()?;
        let axes = self.axes_for(x.rank(), given.as_deref())?;
        let shape = self.reduced_shape(x.shape(), &axes, 1);
        Ok(vec![reduce(self.function, x, &axes)?.reshaped(shape)?.into()])
    }

    fn infer(&self, inputs: &InputFacts<'_>) -> Result<Vec<Fact>, OperatorError> {
        let axes_known = match self.axes {
            ReduceAxes::Attribute(_) => true,
            ReduceAxes::Input => inputs.fact(1).is_none() || inputs.constant(1).is_some(),
        };
        let dimensions = match inputs.dimensions(0) {
            Some(x) if axes_known => {
                let axes = self.axes_for(x.len(), inputs.constant_i64s(1).as_deref())?;
                Some(self.reduced_shape(x, &axes, Some(1)))
            }
            Some(x) if self.keep_dimensions => Some(vec![None; x.len()]),
            _ => None,
        };
        Ok(vec![Fact::partial(inputs.data_type(0), dimensions)])
    }

    fn flops(&self, inputs: &InputFacts<'_>, _outputs: &[Fact]) -> u64 {
        inputs.fact(0).and_then(Fact::element_count).unwrap_or(0) as u64
    }

    fn permuted(&self, permutation: &[usize]) -> Option<Arc<dyn Operator>> {
        let ReduceAxes::Attribute(axes) = &self.axes else { return None };
        if !self.keep_dimensions {
            return None;
        }
        let old = normalise_axes(axes, permutation.len()).ok()?;
        let new = (0..permutation.len()).filter(|&axis| old.contains(&permutation[axis]));
        let axes = ReduceAxes::Attribute(new.map(|axis| axis as i64).collect());
        Some(Arc::new(Reduce { axes, ..self.clone() }))
    }
}

/// The function over `axes`, with the elements that are left in order and the shape flat.
fn reduce(function: ReduceFunction, x: &Tensor, axes: &[usize]) -> Result<Tensor, OperatorError> {
    with_numbers!(x, elements => reduce_numbers(function, x.shape(), elements, axes), other => match other {
        TensorData::F16(_) | TensorData::BF16(_) => {
            narrowed(reduce(function, &widened(x)?, axes)?, x.data_type())
        }
        TensorData::Bool(truths)
            if matches!(function, ReduceFunction::Max | ReduceFunction::Min) =>
        {
            let numbers: Vec<u8> = truths.iter().map(|&truth| truth.into()).collect();
            let reduced = reduce_numbers(function, x.shape(), &numbers, axes)?;
            Ok(Tensor::vector(reduced.elements::<u8>()?.iter().map(|&number| number != 0).collect()))
        }
        _ => Err(OperatorError::WrongType { expected: "a number".into(), given: x.data_type() }),
    })
}

fn reduce_numbers<T: Number>(
    function: ReduceFunction,
    shape: &[usize],
    elements: &[T],
    axes: &[usize],
) -> Result<Tensor, OperatorError> {
    use ReduceFunction::*;
    let kept: Vec<usize> =
        (0..shape.len()).filter(|axis| !axes.contains(axis)).map(|axis| shape[axis]).collect();
    let count = checked_count(&kept, T::DATA_TYPE)?;
    let fold_native = |prepare: fn(T) -> T, initial: T, combine: fn(T, T) -> T| {
        fold_axes(shape, axes, count, elements, prepare, initial, combine)
    };
    let keep = std::convert::identity::<T>;
    let native = match function {
        Max => Some(fold_native(keep, T::LOWEST, T::greatest)),
        Min => Some(fold_native(keep, T::HIGHEST, T::least)),
        _ if !T::DATA_TYPE.is_integer() => None,
        Sum => Some(fold_native(keep, T::ZERO, T::add)),
        Prod => Some(fold_native(keep, T::ONE, T::multiply)),
        L1 => Some(fold_native(T::magnitude, T::ZERO, T::add)),
        SumSquare => Some(fold_native(|x| x.multiply(x), T::ZERO, T::add)),
        _ => None,
    };
    let reduced = match native {
        Some(reduced) => reduced,
        None => reduce_real(function, shape, elements, axes, count)?
            .into_iter()
            .map(T::from_f64)
            .collect(),
    };
    Ok(Tensor::vector(reduced))
}

/// What integers do not have, and floats want to be precise: accumulated in `f64`.
fn reduce_real<T: Number>(
    function: ReduceFunction,
    shape: &[usize],
    elements: &[T],
    axes: &[usize],
    count: usize,
) -> Result<Vec<f64>, OperatorError> {
    use ReduceFunction::*;
    fn sum<T: Copy>(
        shape: &[usize],
        axes: &[usize],
        count: usize,
        elements: &[T],
        prepare: impl Fn(T) -> f64,
    ) -> Vec<f64> {
        fold_axes(shape, axes, count, elements, prepare, 0.0, |a, b| a + b)
    }
    let finish = |sums: Vec<f64>, finish: fn(f64) -> f64| sums.into_iter().map(finish).collect();
    let square = |x: T| x.to_f64() * x.to_f64();
    Ok(match function {
        Sum => sum(shape, axes, count, elements, T::to_f64),
        Mean => {
            let along: f64 = axes.iter().map(|&axis| shape[axis] as f64).product();
            let sums = sum(shape, axes, count, elements, T::to_f64);
            sums.into_iter().map(|sum| sum / along).collect()
        }
        Prod => fold_axes(shape, axes, count, elements, T::to_f64, 1.0, |a, b| a * b),
        L1 => sum(shape, axes, count, elements, |x| x.to_f64().abs()),
        L2 => finish(sum(shape, axes, count, elements, square), f64::sqrt),
        SumSquare => sum(shape, axes, count, elements, square),
        LogSum => finish(sum(shape, axes, count, elements, T::to_f64), f64::ln),
        LogSumExp => {
            let largest = f64::NEG_INFINITY;
            let mut peaks =
                fold_axes(shape, axes, count, elements, T::to_f64, largest, f64::greatest);
            // An infinite peak would make infinity minus infinity of its own element.
            peaks.iter_mut().filter(|peak| peak.is_infinite()).for_each(|peak| *peak = 0.0);
            let kept: Vec<usize> = (0..shape.len())
                .map(|axis| if axes.contains(&axis) { 1 } else { shape[axis] })
                .collect();
            let (_, shares) = zip_broadcast((shape, elements), (&kept, &peaks), |x: T, peak| {
                (x.to_f64() - peak).exp()
            })?;
            let sums = sum(shape, axes, count, &shares, |share| share);
            sums.into_iter().zip(peaks).map(|(sum, peak)| sum.ln() + peak).collect()
        }
        Max | Min => return Err(OperatorError::Unsupported(format!("{function:?} in f64"))),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data_type::DataType;
    use crate::operators::layout::transpose;

    fn with_axes(axes: Vec<i64>, keep_dimensions: bool) -> Reduce {
        Reduce {
            function: ReduceFunction::Sum,
            axes: ReduceAxes::Attribute(axes),
            keep_dimensions,
            noop_with_empty_axes: false,
        }
    }

    fn run(reduce: &dyn Operator, x: &Tensor) -> Result<Tensor, OperatorError> {
        let outputs = reduce.evaluate(&Inputs::new(&[Some(x.clone().into())], 1))?;
        outputs[0].clone().into_tensor()
    }

    #[test]
    fn permuted_reduction_of_the_permuted_is_the_permuted_reduction() {
        let x = Tensor::from_vec(vec![2, 3, 4], (0..24i64).collect()).unwrap();
        let permutation = [2, 0, 1];
        for axes in [vec![0], vec![-1], vec![1, 2], vec![0, 2]] {
            let plain = with_axes(axes, true);
            let permuted = plain.permuted(&permutation).unwrap();
            let expected = transpose(&run(&plain, &x).unwrap(), &permutation).unwrap();
            let given = run(&*permuted, &transpose(&x, &permutation).unwrap()).unwrap();
            assert_eq!(given, expected, "{plain:?}");
        }
        assert!(with_axes(vec![0], false).permuted(&permutation).is_none());
    }

    #[test]
    fn unknown_dimensions_and_axes_stay_unknown() {
        let x = Fact::partial(Some(DataType::F32), Some(vec![None, Some(3), Some(4)]));
        let axes = Fact::new(DataType::I64, &[1]);
        let from_input = Reduce { axes: ReduceAxes::Input, ..with_axes(vec![], true) };
        for (reduce, expected) in [
            (with_axes(vec![-1], true), "float32[?,3,1]"),
            (with_axes(vec![0, 1], false), "float32[4]"),
            (with_axes(vec![], false), "float32[]"),
            (from_input.clone(), "float32[?,?,?]"),
            (Reduce { keep_dimensions: false, ..from_input }, "float32[..]"),
        ] {
            let facts = [Some(&x), Some(&axes)];
            let inferred = reduce.infer(&InputFacts::new(&facts, 1)).unwrap();
            assert_eq!(inferred[0].to_string(), expected);
        }
    }

    #[test]
    fn hostile_shapes_and_axes_are_refused() {
        let x = Tensor::from_vec(vec![1, 1 << 20, 0], Vec::<f32>::new()).unwrap();
        assert!(run(&with_axes(vec![0], true), &x).unwrap().is_empty());
        assert!(run(&with_axes(vec![3], true), &x).is_err());
        assert!(run(&with_axes(vec![0, -3], true), &x).is_err());
    }
}
