//! Attributes in a file, and the constants that `Constant` nodes spell with them.

use bytes::Bytes;
use weft_ir::{Attribute, Tensor};

use crate::declared::type_name;
use crate::error::NodeProblem;
use crate::proto::{AttributeProto, attribute_type};
use crate::tensor::TensorReader;

/// An attribute of any kind but a body, which needs its surroundings to be built.
pub(crate) fn read(
    proto: &AttributeProto,
    reader: &mut TensorReader,
) -> Result<Attribute, NodeProblem> {
    let fail = |problem: &str| NodeProblem::Attribute {
        name: proto.name.clone(),
        problem: problem.to_string(),
    };
    let text = |bytes: &Bytes| {
        String::from_utf8(bytes.to_vec()).map_err(|_| fail("a string is not UTF-8"))
    };
    Ok(match kind(proto) {
        attribute_type::FLOAT => Attribute::Float(proto.f.unwrap_or_default()),
        attribute_type::INT => Attribute::Int(proto.i.unwrap_or_default()),
        attribute_type::STRING => {
            Attribute::String(text(proto.s.as_ref().unwrap_or(&Bytes::new()))?)
        }
        attribute_type::TENSOR => {
            let value = proto.t.as_ref().ok_or_else(|| fail("the tensor is missing"))?;
            Attribute::Tensor(reader.read(value).map_err(boxed)?)
        }
        attribute_type::FLOATS => Attribute::Floats(proto.floats.clone()),
        attribute_type::INTS => Attribute::Ints(proto.ints.clone()),
        attribute_type::STRINGS => {
            Attribute::Strings(proto.strings.iter().map(text).collect::<Result<_, _>>()?)
        }
        attribute_type::SPARSE_TENSOR => {
            let value = proto.sparse_tensor.as_ref();
            let value = value.ok_or_else(|| fail("the sparse tensor is missing"))?;
            Attribute::Tensor(reader.read_sparse(value).map_err(boxed)?)
        }
        attribute_type::TYPE_PROTO => Attribute::String(type_name(proto.tp.as_ref())),
        other => return Err(fail(&format!("attributes of kind {other} are not supported"))),
    })
}

fn boxed(error: crate::LoadError) -> NodeProblem {
    NodeProblem::Body(Box::new(error))
}

/// What a `Constant` node holds, whichever of its attributes it uses.
pub(crate) fn constant(
    attributes: &[(&str, &AttributeProto)],
    reader: &mut TensorReader,
) -> Result<Tensor, NodeProblem> {
    const FORMS: [&str; 8] = [
        "value",
        "sparse_value",
        "value_int",
        "value_ints",
        "value_float",
        "value_floats",
        "value_string",
        "value_strings",
    ];
    let mut forms = attributes.iter().filter(|(name, _)| FORMS.contains(name));
    let (Some((_, proto)), None) = (forms.next(), forms.next()) else {
        return Err(NodeProblem::Other("a constant must have exactly one value".into()));
    };
    Ok(match read(proto, reader)? {
        Attribute::Tensor(tensor) => tensor,
        Attribute::Int(value) => Tensor::scalar(value),
        Attribute::Float(value) => Tensor::scalar(value),
        Attribute::String(value) => Tensor::scalar(value),
        Attribute::Ints(values) => Tensor::vector(values),
        Attribute::Floats(values) => Tensor::vector(values),
        Attribute::Strings(values) => Tensor::vector(values),
        Attribute::Graph(_) => {
            return Err(NodeProblem::Other("a body is not a constant".into()));
        }
    })
}

/// The attribute's kind; files of old writers leave it to the reader to see which field is set.
pub(crate) fn kind(proto: &AttributeProto) -> i32 {
    if proto.r#type != 0 {
        return proto.r#type;
    }
    let set = [
        (proto.f.is_some(), attribute_type::FLOAT),
        (proto.i.is_some(), attribute_type::INT),
        (proto.s.is_some(), attribute_type::STRING),
        (proto.t.is_some(), attribute_type::TENSOR),
        (proto.g.is_some(), attribute_type::GRAPH),
        (!proto.floats.is_empty(), attribute_type::FLOATS),
        (!proto.strings.is_empty(), attribute_type::STRINGS),
        (proto.sparse_tensor.is_some(), attribute_type::SPARSE_TENSOR),
        (proto.tp.is_some(), attribute_type::TYPE_PROTO),
    ];
    set.iter().find(|(is_set, _)| *is_set).map_or(attribute_type::INTS, |(_, kind)| *kind)
}
