//! Messages of gRPC that are wrong, and what is said of them.

use bytes::Bytes;
use weft_ir::Tensor;
use weft_protocol::grpc::inference::infer_parameter::ParameterChoice;
use weft_protocol::grpc::inference::model_infer_request::InferInputTensor;
use weft_protocol::grpc::inference::{InferParameter, InferTensorContents, ModelInferRequest};
use weft_protocol::{InferRequest, InferResponse, OutputTensor, RegionRange};

fn input(name: &str, datatype: &str, shape: &[i64]) -> InferInputTensor {
    InferInputTensor {
        name: name.into(),
        datatype: datatype.into(),
        shape: shape.to_vec(),
        ..Default::default()
    }
}

fn with_contents(input: InferInputTensor, contents: InferTensorContents) -> InferInputTensor {
    InferInputTensor { contents: Some(Box::new(contents)), ..input }
}

#[track_caller]
fn check(inputs: Vec<InferInputTensor>, raw: &[&'static [u8]], problem: &str) {
    let raw_input_contents = raw.iter().map(|bytes| Bytes::from_static(bytes)).collect();
    let message = ModelInferRequest { inputs, raw_input_contents, ..Default::default() };
    let found = InferRequest::from_grpc(message).unwrap_err().to_string();
    assert!(found.contains(problem), "{found}");
}

#[test]
fn raw_contents_must_fit_the_inputs() {
    let x = || input("x", "UINT8", &[2]);
    check(vec![x()], &[], "tensor 'x': has no data");
    check(vec![x()], &[b"1"], "1 bytes do not make 2 elements");
    check(vec![x()], &[b"12", b"3"], "1 raw contents more than inputs");
    check(vec![x(), input("y", "UINT8", &[1])], &[b"12"], "tensor 'y': there are fewer raw");
    check(vec![x(), x()], &[b"12", b"12"], "tensor 'x': is given twice");
    check(vec![input("x", "UINT8", &[-2])], &[b"12"], "dimension -2");
    check(vec![input("x", "FP128", &[2])], &[b"12"], "'FP128' is no data type");
    check(vec![input("x", "UINT8", &[i64::MAX, 4])], &[b"12"], "9223372036854775807");
    check(vec![input("x", "UINT8", &[1; 33])], &[b"1"], "33 dimensions are more than 32");
    check(vec![input("x", "BYTES", &[1])], &[b"\x05\0\0\0ab"], "element 0 is cut short");
    check(vec![input("x", "BYTES", &[1])], &[b"\x01\0\0\0ab"], "1 bytes follow its 1 texts");
    check(vec![input("x", "BYTES", &[1])], &[b"\x01\0\0\0\xff"], "element 0 is not UTF-8");
    check(vec![input("x", "BYTES", &[1 << 24])], &[b"\0\0\0\0"], "do not hold 16777216 texts");
}

#[test]
fn contents_must_fit_their_type_and_stand_alone() {
    let numbers = |int_contents: &[i32]| InferTensorContents {
        int_contents: int_contents.to_vec(),
        ..Default::default()
    };
    let x = |datatype| with_contents(input("x", datatype, &[2]), numbers(&[1, 200]));
    check(vec![x("INT8")], &[], "element 1 is 200, no int8");
    check(vec![x("INT64")], &[], "0 elements in its contents, 2 by its shape");
    check(vec![x("FP16")], &[], "must be sent as raw contents");
    check(vec![x("INT16")], &[b"1234"], "contents beside the request's raw contents");
    let mut shared = x("INT16");
    let text = ParameterChoice::StringParam("region".into());
    let number = ParameterChoice::Int64Param(4);
    for (name, choice) in [("shared_memory_region", text), ("shared_memory_byte_size", number)] {
        let parameter = InferParameter { parameter_choice: Some(choice) };
        shared.parameters.insert(name.into(), parameter);
    }
    check(vec![shared], &[], "contents beside its place in shared memory");
}

#[test]
fn an_output_in_shared_memory_leaves_its_place_empty() {
    let output = |name: &str, shared_memory| OutputTensor {
        name: name.into(),
        tensor: Tensor::vector(vec![1u8, 2]),
        is_binary: false,
        shared_memory,
    };
    let range = RegionRange { region: "r".into(), offset_bytes: 8, size_bytes: 2 };
    let response = InferResponse {
        model_name: "m".into(),
        model_version: "1".into(),
        id: String::new(),
        outputs: vec![output("a", Some(range)), output("b", None)],
    };
    let message = response.into_grpc().unwrap();
    assert_eq!(message.raw_output_contents, [Bytes::new(), Bytes::from_static(&[1, 2])]);
    let parameter = |choice| InferParameter { parameter_choice: Some(choice) };
    let expected = [
        ("shared_memory_byte_size", parameter(ParameterChoice::Int64Param(2))),
        ("shared_memory_offset", parameter(ParameterChoice::Int64Param(8))),
        ("shared_memory_region", parameter(ParameterChoice::StringParam("r".into()))),
    ];
    let expected = expected.map(|(name, parameter)| (name.to_owned(), parameter)).into();
    assert_eq!(message.outputs[0].parameters, expected);
    assert!(message.outputs[1].parameters.is_empty());
}
