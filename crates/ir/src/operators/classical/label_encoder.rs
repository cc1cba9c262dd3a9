//! LabelEncoder: elements replaced by what a table holds for them.

use std::collections::HashMap;
use std::sync::Arc;

use crate::attribute::Attributes;
use crate::error::OperatorError;
use crate::fact::Fact;
use crate::operator::{InputFacts, Inputs, NodeSource, Operator};
use crate::operators::text::key::{Key, keys};
use crate::tensor::Tensor;
use crate::value::Value;

/// Looks each element up, and gives a default for those that the table does not have.
#[derive(Clone, Debug)]
struct LabelEncoder {
    /// The place of each key's value.
    places: HashMap<Key, usize>,
    /// The values, and the default after the last.
    values: Tensor,
}

pub(super) fn build(source: &NodeSource<'_>) -> Result<Arc<dyn Operator>, OperatorError> {
    let attributes = source.attributes;
    let (keys_given, values) = (list(attributes, "keys")?, list(attributes, "values")?);
    if keys_given.len() != values.len() {
        return Err(OperatorError::Attribute {
            name: "values_*".into(),
            problem: format!("{} values for {} keys", values.len(), keys_given.len()),
        });
    }
    let default = default(attributes, &values)?;
    let mut places = HashMap::new();
    for (place, key) in keys(&keys_given)?.into_iter().enumerate() {
        places.entry(key).or_insert(place);
    }
    let default = Tensor::new(vec![1], default.data().clone())?;
    Ok(Arc::new(LabelEncoder { places, values: Tensor::chained(&[&values, &default])? }))
}

/// A list in any of the forms that an attribute can have.
fn list(attributes: &Attributes, kind: &str) -> Result<Tensor, OperatorError> {
    if let Some(strings) = attributes.strings(&format!("{kind}_strings"))? {
        return Ok(Tensor::vector(strings.to_vec()));
    }
    if let Some(integers) = attributes.ints(&format!("{kind}_int64s"))? {
        return Ok(Tensor::vector(integers.to_vec()));
    }
    if let Some(floats) = attributes.floats(&format!("{kind}_floats"))? {
        return Ok(Tensor::vector(floats.to_vec()));
    }
    attributes.tensor(&format!("{kind}_tensor"))?.cloned().ok_or_else(|| OperatorError::Attribute {
        name: format!("{kind}_*"),
        problem: "is missing".into(),
    })
}

/// The default for values of the same type.
fn default(attributes: &Attributes, values: &Tensor) -> Result<Tensor, OperatorError> {
    use crate::data_type::DataType;
    if let Some(default) = attributes.tensor("default_tensor")? {
        return Ok(default.clone());
    }
    match values.data_type() {
        DataType::String => {
            Ok(Tensor::scalar(attributes.string_or("default_string", "_Unused")?.to_string()))
        }
        DataType::I64 => Ok(Tensor::scalar(attributes.int_or("default_int64", -1)?)),
        DataType::I32 => Ok(Tensor::scalar(-1i32)),
        DataType::I16 => Ok(Tensor::scalar(-1i16)),
        float => {
            let default = attributes.float_or("default_float", -0.0)?;
            Tensor::from_f32s(vec![], float, vec![default])
        }
    }
}

impl Operator for LabelEncoder {
    fn name(&self) -> &'static str {
        "LabelEncoder"
    }

    fn evaluate(&self, inputs: &Inputs<'_>) -> Result<Vec<Value>, OperatorError> {
        let x = inputs.tensor(0)?;
        let default = self.values.len() - 1;
        let places: Vec<usize> =
            keys(x)?.iter().map(|key| self.places.get(key).copied().unwrap_or(default)).collect();
        Ok(vec![self.values.gathered(x.shape().to_vec(), &places)?.into()])
    }

    fn infer(&self, inputs: &InputFacts<'_>) -> Result<Vec<Fact>, OperatorError> {
        let dimensions = inputs.dimensions(0).map(<[_]>::to_vec);
        Ok(vec![Fact::partial(Some(self.values.data_type()), dimensions)])
    }
}
