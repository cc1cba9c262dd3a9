//! Declared types: between the IR's and the file's, and for outputs that no one declared.

use weft_ir::{DataType, Dimension, Fact, Graph, InputFacts, TensorType};

use crate::proto::{
    DimensionProto, DimensionValue, NestedTypeProto, TensorShapeProto, TensorTypeProto, TypeProto,
    TypeValue,
};

/// A tensor's declared type, where the message declares one.
pub(crate) fn tensor_type(proto: Option<&TypeProto>) -> Option<TensorType> {
    let Some(TypeValue::Tensor(proto)) = &proto?.value else { return None };
    let dimension = |value: &Option<DimensionValue>| match value {
        Some(DimensionValue::Size(size)) => {
            usize::try_from(*size).map_or(Dimension::Unknown, Dimension::Known)
        }
        Some(DimensionValue::Symbol(name)) if !name.is_empty() => Dimension::Symbol(name.clone()),
        _ => Dimension::Unknown,
    };
    let dimensions = proto
        .shape
        .as_ref()
        .map(|shape| shape.dim.iter().map(|proto| dimension(&proto.value)).collect());
    Some(TensorType { data_type: DataType::from_onnx(proto.elem_type.into())?, dimensions })
}

/// The message that declares a tensor's type.
pub(crate) fn tensor_type_proto(declared: &TensorType) -> TypeProto {
    let dimension = |dimension: &Dimension| DimensionProto {
        value: match dimension {
            Dimension::Known(size) => Some(DimensionValue::Size(*size as i64)),
            Dimension::Symbol(name) => Some(DimensionValue::Symbol(name.clone())),
            Dimension::Unknown => None,
        },
    };
    let shape = declared.dimensions.as_ref();
    TypeProto {
        value: Some(TypeValue::Tensor(TensorTypeProto {
            elem_type: declared.data_type.onnx_code(),
            shape: shape.map(|dimensions| TensorShapeProto {
                dim: dimensions.iter().map(dimension).collect(),
            }),
        })),
    }
}

/// The types of the graph's outputs that can be inferred, for those that have no declared one.
pub(crate) fn undeclared_outputs(graph: &Graph) -> Vec<Option<TensorType>> {
    let is_declared = |id: &weft_ir::ValueId| graph.value(*id).declared.is_some();
    if graph.outputs().iter().all(is_declared) {
        return vec![None; graph.outputs().len()];
    }
    let mut facts: Vec<Fact> = graph
        .values()
        .iter()
        .map(|value| match (&value.constant, &value.declared) {
            (Some(constant), _) => Fact::constant(constant.clone()),
            (None, Some(declared)) => declared_fact(declared),
            (None, None) => Fact::unknown(),
        })
        .collect();
    for node in graph.nodes() {
        let inputs: Vec<Option<&Fact>> =
            node.inputs.iter().map(|id| id.map(|id| &facts[id.index()])).collect();
        // A model that is known to fail is written all the same, only with less declared.
        let inferred = node.operator.infer(&InputFacts::new(&inputs, node.outputs.len()));
        for (output, fact) in node.outputs.iter().zip(inferred.unwrap_or_default()) {
            if let Some(id) = output
                && !is_declared(id)
            {
                facts[id.index()] = fact;
            }
        }
    }
    let inferred = |id: &weft_ir::ValueId| {
        let fact = &facts[id.index()];
        let known = |size: &Option<usize>| size.map_or(Dimension::Unknown, Dimension::Known);
        let dimensions =
            fact.dimensions.as_ref().map(|dimensions| dimensions.iter().map(known).collect());
        let declared = TensorType { data_type: fact.data_type?, dimensions };
        (!is_declared(id)).then_some(declared)
    };
    graph.outputs().iter().map(inferred).collect()
}

fn declared_fact(declared: &TensorType) -> Fact {
    let size = |dimension: &Dimension| match dimension {
        Dimension::Known(size) => Some(*size),
        _ => None,
    };
    let dimensions = declared.dimensions.as_ref();
    Fact::partial(
        Some(declared.data_type),
        dimensions.map(|dimensions| dimensions.iter().map(size).collect()),
    )
}

/// A type in the standard's notation, such as `seq(tensor(float32))`.
pub(crate) fn type_name(proto: Option<&TypeProto>) -> String {
    let nested = |name: &str, inner: Option<&TypeProto>| format!("{name}({})", type_name(inner));
    match proto.and_then(|proto| proto.value.as_ref()) {
        None => "undefined".into(),
        Some(TypeValue::Tensor(tensor)) => match DataType::from_onnx(tensor.elem_type.into()) {
            Some(data_type) => format!("tensor({data_type})"),
            None => "tensor(undefined)".into(),
        },
        Some(TypeValue::Sequence(inner)) => nested("seq", inner.elem_type.as_deref()),
        Some(TypeValue::Optional(inner)) => nested("optional", inner.elem_type.as_deref()),
    }
}

/// The message of a type that [`type_name`] gave the name of.
pub(crate) fn type_from_name(name: &str) -> Option<TypeProto> {
    let inside = |prefix: &str| name.strip_prefix(prefix)?.strip_suffix(')');
    let nested = |inner: &str| {
        Some(Box::new(NestedTypeProto { elem_type: Some(Box::new(type_from_name(inner)?)) }))
    };
    let value = if let Some(inner) = inside("tensor(") {
        let mut types = (1..).map_while(DataType::from_onnx);
        let data_type = types.find(|data_type| data_type.to_string() == inner)?;
        TypeValue::Tensor(TensorTypeProto { elem_type: data_type.onnx_code(), shape: None })
    } else if let Some(inner) = inside("seq(") {
        TypeValue::Sequence(nested(inner)?)
    } else {
        TypeValue::Optional(nested(inside("optional(")?)?)
    };
    Some(TypeProto { value: Some(value) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn type_names_can_be_read_back() {
        for name in ["tensor(float32)", "seq(tensor(int64))", "optional(seq(tensor(string)))"] {
            assert_eq!(type_name(type_from_name(name).as_ref()), name);
        }
        for name in ["", "undefined", "tensor(float33)", "seq(tensor(int64)", "map(int64)"] {
            assert_eq!(type_from_name(name), None);
        }
    }
}
