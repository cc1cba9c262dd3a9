//! When a computed value counts as the expected one.

use weft_ir::{DataType, Tensor, TensorData, Value};

/// How far a float may be off, relative to the larger of the two values compared.
fn relative_tolerance(data_type: DataType) -> f64 {
    match data_type {
        DataType::F16 => 4e-3,
        DataType::BF16 => 2e-2,
        _ => 1e-3,
    }
}

/// How far a float may be off, relative to the largest expected value: what cancellation leaves of rounding.
fn absolute_tolerance(data_type: DataType) -> f64 {
    match data_type {
        DataType::F16 => 1e-3,
        DataType::BF16 => 8e-3,
        _ => 1e-7,
    }
}

/// Whether `actual` is `expected`: floats up to rounding, everything else exactly.
pub fn compare(expected: &Value, actual: &Value) -> Result<(), String> {
    pairwise(expected, actual, &|expected, actual| {
        compare_tensor_types(expected, actual)?;
        compare_elements(expected, actual)
    })
}

/// Whether `actual` has the type and shape of `expected`: all that can be asked of random values.
pub fn compare_type(expected: &Value, actual: &Value) -> Result<(), String> {
    pairwise(expected, actual, &compare_tensor_types)
}

type CompareTensors = dyn Fn(&Tensor, &Tensor) -> Result<(), String>;

fn pairwise(expected: &Value, actual: &Value, tensors: &CompareTensors) -> Result<(), String> {
    match (expected, actual) {
        (Value::Tensor(expected), Value::Tensor(actual)) => tensors(expected, actual),
        (Value::Sequence(expected_type, expected), Value::Sequence(actual_type, actual)) => {
            if expected_type != actual_type || expected.len() != actual.len() {
                return Err(format!(
                    "expected a sequence of {} {expected_type} tensors, got {} {actual_type}",
                    expected.len(),
                    actual.len()
                ));
            }
            for (index, (expected, actual)) in expected.iter().zip(actual).enumerate() {
                tensors(expected, actual).map_err(|why| format!("tensor {index}: {why}"))?;
            }
            Ok(())
        }
        (Value::Optional(None), Value::Optional(None)) => Ok(()),
        (Value::Optional(Some(expected)), Value::Optional(Some(actual))) => {
            pairwise(expected, actual, tensors)
        }
        // The test data do not always say that a value stands in an optional.
        (Value::Optional(Some(expected)), actual) => pairwise(expected, actual, tensors),
        (expected, Value::Optional(Some(actual))) => pairwise(expected, actual, tensors),
        _ => Err(format!("expected {}, got {}", kind(expected), kind(actual))),
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Tensor(_) => "a tensor",
        Value::Sequence(..) => "a sequence",
        Value::Optional(None) => "an empty optional",
        Value::Optional(Some(_)) => "an optional",
    }
}

fn compare_tensor_types(expected: &Tensor, actual: &Tensor) -> Result<(), String> {
    if expected.data_type() != actual.data_type() || expected.shape() != actual.shape() {
        return Err(format!(
            "expected {}{:?}, got {}{:?}",
            expected.data_type(),
            expected.shape(),
            actual.data_type(),
            actual.shape()
        ));
    }
    Ok(())
}

fn compare_elements(expected: &Tensor, actual: &Tensor) -> Result<(), String> {
    if let (Some(expected_floats), Some(actual_floats)) = (floats(expected), floats(actual)) {
        return compare_floats(expected.data_type(), &expected_floats, &actual_floats);
    }
    if expected.data() == actual.data() {
        return Ok(());
    }
    let position =
        weft_ir::with_elements!(expected, elements => first_difference(elements, actual));
    Err(match position {
        Some(text) => text,
        None => "the elements differ".into(),
    })
}

fn first_difference<T: std::fmt::Debug>(expected: &[T], actual: &Tensor) -> Option<String> {
    weft_ir::with_elements!(actual, elements => {
        let pairs = expected.iter().map(|e| format!("{e:?}")).zip(elements.iter().map(|e| format!("{e:?}")));
        let differing: Vec<_> = pairs.enumerate().filter(|(_, (e, a))| e != a).collect();
        let (index, (expected, actual)) = differing.first()?;
        Some(format!(
            "element {index}: expected {expected}, got {actual} ({} of {} differ)",
            differing.len(), elements.len()
        ))
    })
}

/// The elements where they are compared up to rounding, complex numbers as twice as many.
fn floats(tensor: &Tensor) -> Option<Vec<f64>> {
    Some(match tensor.data() {
        TensorData::Complex64(elements) => {
            elements.iter().flatten().map(|&part| part.into()).collect()
        }
        TensorData::Complex128(elements) => elements.iter().flatten().copied().collect(),
        _ => tensor.to_f64s().ok()?,
    })
}

fn compare_floats(data_type: DataType, expected: &[f64], actual: &[f64]) -> Result<(), String> {
    let finite = expected.iter().copied().filter(|value| value.is_finite());
    let largest = finite.map(f64::abs).fold(0.0, f64::max);
    let absolute = absolute_tolerance(data_type) * largest;
    let relative = relative_tolerance(data_type);
    let differs = |&(_, (&expected, &actual)): &(usize, (&f64, &f64))| {
        let is_same = expected == actual || (expected.is_nan() && actual.is_nan());
        let limit = relative * expected.abs().max(actual.abs()) + absolute;
        let is_near = (expected - actual).abs() <= limit && limit.is_finite();
        !is_same && !is_near
    };
    let mut differing = expected.iter().zip(actual).enumerate().filter(differs);
    match differing.next() {
        None => Ok(()),
        Some((index, (expected_value, actual_value))) => Err(format!(
            "element {index}: expected {expected_value}, got {actual_value} ({} of {} differ)",
            differing.count() + 1,
            expected.len()
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(expected: f32, actual: f32) -> bool {
        // The second element sets the scale of the absolute tolerance.
        let tensor = |value| Value::Tensor(Tensor::vector(vec![value, 1.0]));
        compare(&tensor(expected), &tensor(actual)).is_ok()
    }

    #[test]
    fn floats_are_compared_relative_to_their_size() {
        let infinity = f32::INFINITY;
        for (expected, actual, same) in [
            (1.0, 1.0005, true),
            (1.0, 1.002, false),
            (1e-5, 1.0005e-5, true),
            (1e-5, 1.1e-5, false),
            (0.0, 5e-8, true),
            (0.0, 1e-6, false),
            (f32::NAN, f32::NAN, true),
            (f32::NAN, 1.0, false),
            (1.0, f32::NAN, false),
            (infinity, infinity, true),
            (infinity, -infinity, false),
            (1.0, infinity, false),
            (infinity, 1.0, false),
        ] {
            assert_eq!(matches(expected, actual), same, "{expected} and {actual}");
        }
    }

    #[test]
    fn everything_else_is_compared_exactly() {
        let integers = |values: &[i64]| Value::Tensor(Tensor::vector(values.to_vec()));
        assert!(compare(&integers(&[1, 2]), &integers(&[1, 2])).is_ok());
        let why = compare(&integers(&[1, 2_000_000]), &integers(&[1, 2_000_001])).unwrap_err();
        assert_eq!(why, "element 1: expected 2000000, got 2000001 (1 of 2 differ)");
        let float = Value::Tensor(Tensor::vector(vec![1f32]));
        assert!(compare(&integers(&[1]), &float).is_err());
        assert!(compare(&float, &Value::Tensor(Tensor::scalar(1f32))).is_err());
    }
}
