//! Inputs are held against the model at the door, and put into the order in which it takes them.

use weft_ir::{Tensor, Value};
use weft_protocol::{InputTensor, TensorSource};

use crate::error::ServeError;
use crate::models::{ModelEntry, TensorSpec};
use crate::shared_memory::{CallerRegions, Reading};

/// The inputs of a request, checked but for what lies in shared memory, which is still to be read.
#[derive(Debug)]
pub(crate) struct CheckedInputs {
    sources: Vec<Source>,
    rows: usize,
}

#[derive(Debug)]
enum Source {
    Given(Tensor),
    Shared(Reading),
}

impl CheckedInputs {
    /// How much is to be read.
    pub(crate) fn shared_bytes(&self) -> usize {
        let shared = self.sources.iter().map(|source| match source {
            Source::Given(_) => 0,
            Source::Shared(reading) => reading.size_bytes(),
        });
        shared.sum()
    }

    pub(crate) fn read(self) -> Result<BoundInputs, ServeError> {
        let read = |source: Source| match source {
            Source::Given(tensor) => Ok(Value::Tensor(tensor)),
            Source::Shared(reading) => reading.run().map(Value::Tensor),
        };
        let values = self.sources.into_iter().map(read).collect::<Result<_, ServeError>>()?;
        Ok(BoundInputs { values, rows: self.rows })
    }
}

/// The inputs of a request, checked.
#[derive(Debug)]
pub(crate) struct BoundInputs {
    /// One for each input that the model takes, in its order.
    pub(crate) values: Vec<Value>,
    /// Entries of the batch; 1 where the model has none.
    pub(crate) rows: usize,
}

/// Checks names, types and shapes, and the size of what lies in shared memory.
pub(crate) fn bind(
    model: &ModelEntry,
    inputs: Vec<InputTensor>,
    regions: &CallerRegions<'_>,
) -> Result<CheckedInputs, ServeError> {
    let specs = &model.signature.inputs;
    let mut places: Vec<Option<InputTensor>> = specs.iter().map(|_| None).collect();
    for input in inputs {
        let Some(place) = specs.iter().position(|spec| spec.name == input.name) else {
            return Err(model.mismatch(format!("it has no input '{}'", input.name)));
        };
        if places[place].is_some() {
            return Err(model.mismatch(format!("input '{}' is given twice", input.name)));
        }
        places[place] = Some(input);
    }
    let mut rows = None;
    let mut sources = Vec::with_capacity(specs.len());
    for (spec, place) in specs.iter().zip(places) {
        let input =
            place.ok_or_else(|| model.mismatch(format!("input '{}' is missing", spec.name)))?;
        check(model, spec, &input, &mut rows)?;
        sources.push(match input.data {
            TensorSource::Tensor(tensor) => Source::Given(tensor),
            TensorSource::SharedMemory(range) => {
                Source::Shared(regions.read(&range, &input.name, input.data_type, input.shape)?)
            }
        });
    }
    Ok(CheckedInputs { sources, rows: rows.unwrap_or(1) })
}

/// Holds one input against what the model takes; `rows` is what inputs before it said of the batch.
fn check(
    model: &ModelEntry,
    spec: &TensorSpec,
    input: &InputTensor,
    rows: &mut Option<usize>,
) -> Result<(), ServeError> {
    if input.data_type != spec.data_type {
        return Err(model.mismatch(format!(
            "input '{}' is of {}, {} is given",
            spec.name, spec.data_type, input.data_type
        )));
    }
    let fits = input.shape.len() == spec.shape.len()
        && spec.shape.iter().zip(&input.shape).all(|(expected, given)| match expected {
            Some(size) => size == given,
            None => *given > 0,
        });
    if !fits {
        return Err(model.mismatch(format!(
            "input '{}' has shape {:?}, {:?} is given",
            spec.name,
            spec.wire_shape(),
            input.shape
        )));
    }
    let most = model.signature.max_batch_size;
    if most == 0 {
        return Ok(());
    }
    let given = input.shape[0];
    if given > most {
        let problem = format!("input '{}' has a batch of {given}, {most} is the most", spec.name);
        return Err(model.mismatch(problem));
    }
    match rows.replace(given) {
        Some(other) if other != given => Err(model.mismatch(format!(
            "input '{}' has a batch of {given}, another one of {other}",
            spec.name
        ))),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use weft_engine::ModelKey;
    use weft_ir::{DataType, Tensor};

    use super::*;
    use crate::models::Signature;
    use crate::shared_memory::Regions;
    use crate::tenants::anybody;

    fn model() -> ModelEntry {
        let input = |name: &str, columns| TensorSpec {
            name: name.into(),
            data_type: DataType::F32,
            shape: vec![None, Some(columns)],
        };
        let signature = Signature {
            inputs: vec![input("a", 2), input("b", 1)],
            outputs: vec![],
            max_batch_size: 4,
        };
        ModelEntry::new("m".into(), 1, signature, ModelKey::unused())
    }

    fn input(name: &str, shape: &[usize]) -> InputTensor {
        let tensor = Tensor::filled(shape.to_vec(), 1f32).unwrap();
        InputTensor {
            name: name.into(),
            data_type: DataType::F32,
            shape: shape.to_vec(),
            data: TensorSource::Tensor(tensor),
        }
    }

    #[test]
    fn inputs_are_put_in_the_models_order() {
        let given = vec![input("b", &[3, 1]), input("a", &[3, 2])];
        let bound = bind(&model(), given, &Regions::new(1).of(&anybody())).unwrap();
        let bound = bound.read().unwrap();
        assert_eq!(bound.rows, 3);
        let shapes: Vec<_> =
            bound.values.iter().map(|value| value.tensor().unwrap().shape().to_vec()).collect();
        assert_eq!(shapes, [vec![3, 2], vec![3, 1]]);
    }

    #[test]
    fn what_does_not_fit_is_named() {
        let mut wrong_type = input("b", &[1, 1]);
        wrong_type.data_type = DataType::I64;
        let a = || input("a", &[1, 2]);
        for (given, says) in [
            (vec![a()], "'b' is missing"),
            (vec![a(), a()], "'a' is given twice"),
            (vec![a(), input("c", &[1, 1])], "no input 'c'"),
            (vec![a(), wrong_type], "int64"),
            (vec![a(), input("b", &[1, 2])], "[-1, 1]"),
            (vec![a(), input("b", &[1])], "[-1, 1]"),
            (vec![a(), input("b", &[0, 1])], "[-1, 1]"),
            (vec![a(), input("b", &[2, 1])], "another one of 1"),
            (vec![input("a", &[5, 2]), input("b", &[5, 1])], "4 is the most"),
        ] {
            let bound = bind(&model(), given, &Regions::new(1).of(&anybody()));
            let error = bound.unwrap_err().to_string();
            assert!(error.contains(says), "{error}: {says}");
        }
    }
}
