//! Values in files of their own, as the standard's test data have them, and what kinds of value a model takes and gives.

use bytes::Bytes;
use prost::Message;
use weft_ir::{DataType, Tensor, Value};

use crate::declared::tensor_type;
use crate::error::LoadError;
use crate::proto::{
    ModelProto, OptionalProto, SequenceProto, TensorProto, TypeProto, TypeValue, ValueInfoProto,
};
use crate::tensor::TensorReader;

/// What a model declares an input or output to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ValueKind {
    /// A tensor.
    Tensor,
    /// A list of tensors of a type, where that is declared.
    Sequence(Option<DataType>),
    /// A value that may be absent.
    Optional(Box<ValueKind>),
}

/// The inputs and outputs of a model by name, in the file's order.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Interface {
    pub inputs: Vec<(String, ValueKind)>,
    pub outputs: Vec<(String, ValueKind)>,
}

/// What a model takes and gives, without building its graph.
pub fn read_interface(model: Bytes) -> Result<Interface, LoadError> {
    crate::scan::check(&model)?;
    let graph = ModelProto::decode(model)?.graph.unwrap_or_default();
    let list = |infos: &[ValueInfoProto]| {
        infos.iter().map(|info| (info.name.clone(), kind(info.r#type.as_ref()))).collect()
    };
    Ok(Interface { inputs: list(&graph.input), outputs: list(&graph.output) })
}

/// A tensor from a file that holds nothing else.
pub fn read_tensor(bytes: Bytes) -> Result<Tensor, LoadError> {
    TensorReader::default().read(&TensorProto::decode(bytes)?)
}

/// A value of the given kind from a file that holds nothing else.
pub fn read_value(bytes: Bytes, kind: &ValueKind) -> Result<Value, LoadError> {
    match kind {
        ValueKind::Tensor => Ok(Value::Tensor(read_tensor(bytes)?)),
        ValueKind::Sequence(data_type) => sequence(&SequenceProto::decode(bytes)?, *data_type),
        ValueKind::Optional(inner) => {
            let proto = OptionalProto::decode(bytes)?;
            let value = match (&proto.tensor_value, &proto.sequence_value) {
                (Some(value), _) => Some(Value::Tensor(TensorReader::default().read(value)?)),
                (None, Some(value)) => {
                    let data_type = match &**inner {
                        ValueKind::Sequence(data_type) => *data_type,
                        _ => None,
                    };
                    Some(sequence(value, data_type)?)
                }
                (None, None) => None,
            };
            Ok(Value::Optional(value.map(Box::new)))
        }
    }
}

fn sequence(proto: &SequenceProto, declared: Option<DataType>) -> Result<Value, LoadError> {
    let mut reader = TensorReader::default();
    let tensors: Vec<Tensor> =
        proto.tensor_values.iter().map(|value| reader.read(value)).collect::<Result<_, _>>()?;
    let data_type = tensors.first().map(Tensor::data_type).or(declared).unwrap_or(DataType::F32);
    Ok(Value::Sequence(data_type, tensors))
}

fn kind(proto: Option<&TypeProto>) -> ValueKind {
    match proto.and_then(|proto| proto.value.as_ref()) {
        None | Some(TypeValue::Tensor(_)) => ValueKind::Tensor,
        Some(TypeValue::Sequence(nested)) => {
            let element = tensor_type(nested.elem_type.as_deref());
            ValueKind::Sequence(element.map(|element| element.data_type))
        }
        Some(TypeValue::Optional(nested)) => {
            ValueKind::Optional(Box::new(kind(nested.elem_type.as_deref())))
        }
    }
}
