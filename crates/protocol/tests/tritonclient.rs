//! What the Python client `tritonclient` sends, read by us. `fixtures/make.py` made the files.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use bytes::Bytes;
use half::{bf16, f16};
use prost::Message;
use prost_types::field_descriptor_proto::{Label, Type};
use prost_types::{DescriptorProto, EnumDescriptorProto, FileDescriptorProto};
use weft_ir::{DataType, Element, Tensor};
use weft_protocol::grpc::inference::ModelInferRequest;
use weft_protocol::json::decode_request;
use weft_protocol::{
    InferRequest, InputTensor, ProtocolError, RegionRange, RequestParameters, RequestedOutput,
    TensorSource, data_types,
};

fn fixture(name: &str) -> Bytes {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name);
    fs::read(path).unwrap().into()
}

fn http(name: &str, header_length: usize) -> Result<InferRequest, ProtocolError> {
    let body = fixture(&format!("{name}.{header_length}.http"));
    decode_request(&body, Some(header_length).filter(|&length| length > 0))
}

fn grpc(name: &str) -> Result<InferRequest, ProtocolError> {
    let message = ModelInferRequest::decode(fixture(&format!("{name}.grpc"))).unwrap();
    assert_eq!((&*message.model_name, &*message.model_version), ("m", "2"));
    InferRequest::from_grpc(message)
}

/// The tensors of `make.py`.
fn tensors() -> Vec<Tensor> {
    fn tensor<T: Element>(elements: [T; 3]) -> Tensor {
        Tensor::from_vec(vec![1, 3], elements.to_vec()).unwrap()
    }
    vec![
        tensor([true, false, true]),
        tensor([0, 1, u8::MAX]),
        tensor([0, 1, u16::MAX]),
        tensor([0, 1, u32::MAX]),
        tensor([0, 1, u64::MAX]),
        tensor([i8::MIN, 0, i8::MAX]),
        tensor([i16::MIN, 0, i16::MAX]),
        tensor([i32::MIN, 0, i32::MAX]),
        tensor([i64::MIN, 0, i64::MAX]),
        tensor([0.5, -2.0, 65504.0].map(f16::from_f32)),
        // The client cuts the lower half off.
        tensor([0.5f32, -2.0, 1e30].map(|e| bf16::from_bits((e.to_bits() >> 16) as u16))),
        tensor([0.1f32, -2.0, f32::MAX]),
        tensor([0.1f64, -2.0, f64::MAX]),
        tensor(["", "weft", "äöü\n\""].map(str::to_owned)),
    ]
}

#[track_caller]
fn check_tensors(request: &InferRequest, expected: impl IntoIterator<Item = Tensor>) {
    let inputs = expected.into_iter().map(|tensor| InputTensor {
        name: format!("in_{}", data_types::wire_name(tensor.data_type()).unwrap()),
        data_type: tensor.data_type(),
        shape: vec![1, 3],
        data: TensorSource::Tensor(tensor),
    });
    assert_eq!(request.inputs, inputs.collect::<Vec<_>>());
}

#[test]
fn every_type_is_read_as_the_client_writes_it() {
    let binary = http("every_type_binary", 1300).unwrap();
    check_tensors(&binary, tensors());
    assert!(binary.parameters.binary_outputs);
    check_tensors(&grpc("every_type").unwrap(), tensors());
    let json = http("every_type_json", 0).unwrap();
    let is_in_json =
        |tensor: &Tensor| ![DataType::F16, DataType::BF16].contains(&tensor.data_type());
    check_tensors(&json, tensors().into_iter().filter(is_in_json));
    assert_eq!(json.outputs[0].is_binary, Some(false));
}

#[test]
fn parameters_are_read_as_the_client_writes_them() {
    let range = |offset_bytes, size_bytes| RegionRange {
        region: "region".into(),
        offset_bytes,
        size_bytes,
    };
    let expected = |is_binary| InferRequest {
        id: "seven".into(),
        parameters: RequestParameters {
            priority: 2,
            timeout: Some(Duration::from_micros(1500)),
            binary_outputs: false,
        },
        inputs: vec![InputTensor {
            name: "in".into(),
            data_type: DataType::F32,
            shape: vec![2],
            data: TensorSource::SharedMemory(range(16, 8)),
        }],
        outputs: vec![
            RequestedOutput {
                name: "out".into(),
                is_binary,
                classification: None,
                shared_memory: Some(range(0, 32)),
            },
            RequestedOutput {
                name: "best".into(),
                is_binary,
                classification: Some(3),
                shared_memory: None,
            },
        ],
    };
    assert_eq!(http("parameters", 0).unwrap(), expected(Some(false)));
    assert_eq!(grpc("parameters").unwrap(), expected(None));
}

#[test]
fn sequences_are_not_supported() {
    for outcome in [http("sequence", 200), grpc("sequence")] {
        let problem = outcome.unwrap_err();
        assert!(matches!(problem, ProtocolError::Unsupported(_)), "{problem}");
    }
}

/// Of the service all is described, of a model's configuration a part.
#[test]
fn every_field_has_the_number_and_type_that_the_client_knows() {
    let proto = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("proto");
    for file in protox::compile(["grpc_service.proto"], [proto]).unwrap().file {
        let theirs = fixture(&format!("{}.txt", file.name()));
        let theirs: BTreeSet<String> =
            str::from_utf8(&theirs).unwrap().lines().map(str::to_owned).collect();
        let ours = describe(&file);
        let wrong: Vec<&String> = ours.difference(&theirs).collect();
        assert!(wrong.is_empty(), "{wrong:#?}");
        if file.name() == "grpc_service.proto" {
            let missing: Vec<&String> = theirs.difference(&ours).collect();
            assert!(missing.is_empty(), "{missing:#?}");
        }
    }
}

/// One line for each procedure, field and value, as `make.py` writes them.
fn describe(file: &FileDescriptorProto) -> BTreeSet<String> {
    let mut lines = BTreeSet::new();
    for method in file.service.iter().flat_map(|service| &service.method) {
        lines.insert(format!(
            "rpc GRPCInferenceService.{} {} {} {} {}",
            method.name(),
            method.input_type(),
            method.output_type(),
            method.client_streaming(),
            method.server_streaming()
        ));
    }
    describe_enums(".inference", &file.enum_type, &mut lines);
    for message in &file.message_type {
        describe_message(&format!(".inference.{}", message.name()), message, &mut lines);
    }
    lines
}

fn describe_message(path: &str, message: &DescriptorProto, lines: &mut BTreeSet<String>) {
    for field in &message.field {
        let kind = match field.type_name() {
            "" => Type::as_str_name(&field.r#type()).to_owned(),
            name => name.to_owned(),
        };
        let is_repeated = field.label() == Label::Repeated;
        lines.insert(format!(
            "field {path}.{} {} {kind} {is_repeated}",
            field.name(),
            field.number()
        ));
    }
    describe_enums(path, &message.enum_type, lines);
    for nested in &message.nested_type {
        describe_message(&format!("{path}.{}", nested.name()), nested, lines);
    }
}

fn describe_enums(path: &str, enums: &[EnumDescriptorProto], lines: &mut BTreeSet<String>) {
    for described in enums {
        for value in &described.value {
            let name = described.name();
            lines.insert(format!("value {path}.{name}.{} {}", value.name(), value.number()));
        }
    }
}
