//! Whether the values a caller gives are those that an executable takes.

use weft_ir::{Fact, Value};

use crate::DeviceError;

/// Checks one value per required input: their number, and the type and shape of each, as far as they are known.
pub fn check_inputs<'a>(
    model: &str,
    expected: impl ExactSizeIterator<Item = (&'a str, &'a Fact)>,
    given: &[Value],
) -> Result<(), DeviceError> {
    if given.len() != expected.len() {
        let problem =
            format!("model '{model}' takes {} inputs, {} given", expected.len(), given.len());
        return Err(DeviceError::Failed(problem));
    }
    for ((name, fact), value) in expected.zip(given) {
        check_input(fact, value)
            .map_err(|problem| DeviceError::Input { name: name.to_string(), problem })?;
    }
    Ok(())
}

fn check_input(fact: &Fact, value: &Value) -> Result<(), String> {
    let Some(expected) = fact.data_type else { return Ok(()) };
    let Some(tensor) = value.tensor() else {
        return Err("must be a tensor".into());
    };
    if tensor.data_type() != expected {
        return Err(format!("is {}, must be {expected}", tensor.data_type()));
    }
    match fact.shape() {
        Some(shape) if shape != tensor.shape() => {
            Err(format!("has shape {:?}, must be {shape:?}", tensor.shape()))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use weft_ir::{DataType, Tensor};

    use super::*;

    #[test]
    fn what_does_not_fit_is_named() {
        let facts = [Fact::new(DataType::F32, &[2]), Fact::unknown()];
        let names = ["x", "y"];
        let check = |given: &[Value]| {
            let checked = check_inputs("m", names.into_iter().zip(&facts), given);
            checked.map_err(|error| error.to_string())
        };
        let right = || Value::from(Tensor::vector(vec![1f32, 2.0]));
        let anything = || Value::Sequence(DataType::F32, vec![]);
        assert_eq!(check(&[right(), anything()]), Ok(()));
        for (given, says) in [
            (vec![right()], "takes 2 inputs, 1 given"),
            (vec![Tensor::vector(vec![1f32]).into(), anything()], "'x': has shape [1]"),
            (vec![Tensor::vector(vec![1i64, 2]).into(), anything()], "'x': is int64"),
            (vec![anything(), anything()], "'x': must be a tensor"),
        ] {
            let error = check(&given).unwrap_err();
            assert!(error.contains(says), "{error}");
        }
    }
}
