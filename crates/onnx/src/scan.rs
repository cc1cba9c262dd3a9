//! A look at a file before it is decoded: how much memory its messages will take.
//!
//! An empty message takes two bytes in a file and hundreds in memory, so a file that is nothing but those would
//! otherwise cost a hundred times its size.

use std::mem::size_of;

use crate::error::LoadError;
use crate::limits::{DECODED_BYTES_ALLOWANCE, MAX_DECODED_BYTES_PER_BYTE};
use crate::proto::{
    AttributeProto, DimensionProto, FunctionProto, GraphProto, NestedTypeProto, NodeProto,
    OperatorSetIdProto, SparseTensorProto, StringStringEntryProto, TensorProto, TensorShapeProto,
    TensorTypeProto, TypeProto, ValueInfoProto,
};

#[derive(Clone, Copy)]
enum Kind {
    Model,
    Function,
    Graph,
    Node,
    Attribute,
    Tensor,
    SparseTensor,
    ValueInfo,
    Type,
    NestedType,
    TensorType,
    Shape,
    Dimension,
    OperatorSet,
    Entry,
}

/// What the field of a message holds and what that takes in memory; `None` for plain bytes and unknown fields.
fn child(parent: Kind, field: u64) -> Option<(Kind, usize)> {
    use Kind::*;
    let kind = match (parent, field) {
        (Model, 7) | (Attribute, 6) => Graph,
        (Model, 8) | (Function, 9) => OperatorSet,
        (Model, 25) => Function,
        (Graph, 1) | (Function, 7) => Node,
        (Graph, 5) | (Attribute, 5) | (SparseTensor, 1 | 2) => Tensor,
        (Graph, 15) | (Attribute, 22) => SparseTensor,
        (Graph, 11..=13) | (Function, 12) => ValueInfo,
        (Node, 5) | (Function, 11) => Attribute,
        (Tensor, 13) => Entry,
        (ValueInfo, 2) | (Attribute, 14) | (NestedType, 1) => Type,
        (Type, 1) => TensorType,
        (Type, 4 | 9) => NestedType,
        (TensorType, 2) => Shape,
        (Shape, 1) => Dimension,
        _ => return None,
    };
    let size = match kind {
        Model => 0,
        Function => size_of::<FunctionProto>(),
        Graph => size_of::<GraphProto>() + size_of::<weft_ir::Graph>(),
        // The graph's node, and a guess at its operator and attributes.
        Node => size_of::<NodeProto>() + size_of::<weft_ir::Node>() + 512,
        Attribute => size_of::<AttributeProto>() + size_of::<weft_ir::Attribute>(),
        Tensor => size_of::<TensorProto>() + size_of::<weft_ir::ValueInfo>(),
        SparseTensor => size_of::<SparseTensorProto>() + size_of::<weft_ir::ValueInfo>(),
        ValueInfo => size_of::<ValueInfoProto>() + size_of::<weft_ir::ValueInfo>(),
        Type => size_of::<TypeProto>(),
        NestedType => size_of::<NestedTypeProto>(),
        TensorType => size_of::<TensorTypeProto>(),
        Shape => size_of::<TensorShapeProto>(),
        Dimension => size_of::<DimensionProto>(),
        OperatorSet => size_of::<OperatorSetIdProto>(),
        Entry => size_of::<StringStringEntryProto>(),
    };
    Some((kind, size))
}

/// What a string or list of bytes takes beside its content.
const BYTES_FIELD_SIZE: usize = 32;

/// Fails where decoding the model would take far more memory than the file has bytes.
pub(crate) fn check(model: &[u8]) -> Result<(), LoadError> {
    let limit = DECODED_BYTES_ALLOWANCE
        .saturating_add(model.len().saturating_mul(MAX_DECODED_BYTES_PER_BYTE));
    let mut decoded = 0usize;
    let mut pending = vec![(Kind::Model, model)];
    while let Some((kind, mut rest)) = pending.pop() {
        // Whatever is malformed is left to the decoder to report, which stops at the same place.
        while let Some((field, after)) = next_field(rest) {
            rest = after;
            let Some(content) = field.content else { continue };
            match child(kind, field.number) {
                Some((child, size)) => {
                    decoded += size;
                    pending.push((child, content));
                }
                None => decoded += BYTES_FIELD_SIZE,
            }
            if decoded > limit {
                return Err(LoadError::Limit(format!(
                    "holds so many messages that reading its {} bytes would take more than {limit}",
                    model.len()
                )));
            }
        }
    }
    Ok(())
}

struct Field<'a> {
    number: u64,
    /// Where the field has a length of its own.
    content: Option<&'a [u8]>,
}

/// The first field and what follows it.
fn next_field(bytes: &[u8]) -> Option<(Field<'_>, &[u8])> {
    let (tag, rest) = varint(bytes)?;
    let (content, rest) = match tag & 7 {
        0 => (None, varint(rest)?.1),
        1 => (None, rest.get(8..)?),
        2 => {
            let (length, rest) = varint(rest)?;
            let (content, rest) = rest.split_at_checked(usize::try_from(length).ok()?)?;
            (Some(content), rest)
        }
        // Groups are skipped by the decoder; their marks take nothing.
        3 | 4 => (None, rest),
        5 => (None, rest.get(4..)?),
        _ => return None,
    };
    Some((Field { number: tag >> 3, content }, rest))
}

fn varint(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let mut value = 0u64;
    for (index, &byte) in bytes.iter().enumerate().take(10) {
        value |= u64::from(byte & 0x7f) << (7 * index);
        if byte < 0x80 {
            return Some((value, &bytes[index + 1..]));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A model whose graph is `count` empty messages of one field.
    fn padded(field: u8, count: usize) -> Vec<u8> {
        let content = [field << 3 | 2, 0].repeat(count);
        let mut model = vec![7 << 3 | 2];
        prost::encoding::encode_varint(content.len() as u64, &mut model);
        model.extend(content);
        model
    }

    #[test]
    fn a_file_of_empty_messages_is_refused() {
        assert!(check(&padded(1, 1000)).is_ok());
        for field in [1, 5, 11, 15] {
            let error = check(&padded(field, 1 << 20)).unwrap_err();
            assert!(matches!(error, LoadError::Limit(_)), "{error}");
        }
    }

    #[test]
    fn malformed_files_are_left_to_the_decoder() {
        for bytes in [&[0xff; 12][..], &[0x3a, 0x05, 1], &[0x07], &[0x09, 0]] {
            assert!(check(bytes).is_ok());
        }
    }
}
