//! An input or an output as a configuration describes it.

use std::collections::BTreeSet;

use super::reader::{Findings, Reader};

/// Types of elements, by the names of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "each is what its name says")]
pub enum ConfigDataType {
    Bool,
    Uint8,
    Uint16,
    Uint32,
    Uint64,
    Int8,
    Int16,
    Int32,
    Int64,
    Fp16,
    Fp32,
    Fp64,
    Bytes,
    Bf16,
}

/// By the names of `config.pbtxt`, each at its number there.
const DATA_TYPES: [(&str, Option<ConfigDataType>); 15] = [
    ("TYPE_INVALID", None),
    ("TYPE_BOOL", Some(ConfigDataType::Bool)),
    ("TYPE_UINT8", Some(ConfigDataType::Uint8)),
    ("TYPE_UINT16", Some(ConfigDataType::Uint16)),
    ("TYPE_UINT32", Some(ConfigDataType::Uint32)),
    ("TYPE_UINT64", Some(ConfigDataType::Uint64)),
    ("TYPE_INT8", Some(ConfigDataType::Int8)),
    ("TYPE_INT16", Some(ConfigDataType::Int16)),
    ("TYPE_INT32", Some(ConfigDataType::Int32)),
    ("TYPE_INT64", Some(ConfigDataType::Int64)),
    ("TYPE_FP16", Some(ConfigDataType::Fp16)),
    ("TYPE_FP32", Some(ConfigDataType::Fp32)),
    ("TYPE_FP64", Some(ConfigDataType::Fp64)),
    ("TYPE_STRING", Some(ConfigDataType::Bytes)),
    ("TYPE_BF16", Some(ConfigDataType::Bf16)),
];

impl ConfigDataType {
    /// The name on the wire, such as `FP32`.
    pub fn protocol_name(self) -> &'static str {
        match self {
            Self::Bool => "BOOL",
            Self::Uint8 => "UINT8",
            Self::Uint16 => "UINT16",
            Self::Uint32 => "UINT32",
            Self::Uint64 => "UINT64",
            Self::Int8 => "INT8",
            Self::Int16 => "INT16",
            Self::Int32 => "INT32",
            Self::Int64 => "INT64",
            Self::Fp16 => "FP16",
            Self::Fp32 => "FP32",
            Self::Fp64 => "FP64",
            Self::Bytes => "BYTES",
            Self::Bf16 => "BF16",
        }
    }
}

/// One input or output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigTensor {
    /// Its name in the model.
    pub name: String,
    /// Of its elements; `None` where the model itself shall say.
    pub data_type: Option<ConfigDataType>,
    /// Its dimensions without that of the batch; `None` is open. Empty where the model itself shall say.
    pub dims: Vec<Option<u64>>,
}

const UNUSED_OF_INPUTS: [&str; 6] = [
    "format",
    "reshape",
    "is_shape_tensor",
    "allow_ragged_batch",
    "optional",
    "is_non_linear_format_io",
];
const UNUSED_OF_OUTPUTS: [&str; 4] =
    ["reshape", "label_filename", "is_shape_tensor", "is_non_linear_format_io"];

pub(super) fn read_inputs(root: &mut Reader<'_>, findings: &mut Findings) -> Vec<ConfigTensor> {
    let messages = root.messages("input", findings);
    read_all(messages, "input", &UNUSED_OF_INPUTS, findings)
}

pub(super) fn read_outputs(root: &mut Reader<'_>, findings: &mut Findings) -> Vec<ConfigTensor> {
    let messages = root.messages("output", findings);
    read_all(messages, "output", &UNUSED_OF_OUTPUTS, findings)
}

fn read_all(
    messages: Vec<Reader<'_>>,
    kind: &str,
    unused: &[&'static str],
    findings: &mut Findings,
) -> Vec<ConfigTensor> {
    let mut names = BTreeSet::new();
    let mut tensors = Vec::new();
    for mut message in messages {
        let line = message.line();
        let tensor = read(&mut message, unused, findings);
        message.close(findings);
        match tensor {
            None => findings.problem(line, format!("this {kind} has no name")),
            Some(tensor) if !names.insert(tensor.name.clone()) => {
                findings.problem(line, format!("{kind} '{}' is listed twice", tensor.name));
            }
            Some(tensor) => tensors.push(tensor),
        }
    }
    tensors
}

fn read(
    message: &mut Reader<'_>,
    unused: &[&'static str],
    findings: &mut Findings,
) -> Option<ConfigTensor> {
    let name = message.text("name", findings);
    let data_type = message.choice("data_type", &DATA_TYPES, findings);
    if let Some(found) = &data_type
        && found.value.is_none()
    {
        findings.problem(found.line, "TYPE_INVALID is no type of elements");
    }
    let dims = message.integers::<i64>("dims", -1, findings);
    for dim in &dims {
        if dim.value == 0 {
            findings.problem(dim.line, "a dimension is at least 1, or -1 where it is open");
        }
    }
    message.ignore(unused, findings);
    Some(ConfigTensor {
        name: name?.value.to_string(),
        data_type: data_type.and_then(|found| found.value),
        dims: dims.iter().map(|dim| u64::try_from(dim.value).ok()).collect(),
    })
}
