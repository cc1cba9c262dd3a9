//! What is written is read back the same: every data type, as JSON, as bytes and over gRPC.

use std::time::Duration;

use bytes::Bytes;
use half::{bf16, f16};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use prost::Message;
use serde_json::{Value, json};
use weft_ir::{Element, Tensor};
use weft_protocol::grpc::inference::{
    InferTensorContents, ModelInferRequest, ModelInferResponse, model_infer_request,
};
use weft_protocol::json::{
    EncodedBody, TensorForm, decode_request, decode_response, encode_request, encode_response,
};
use weft_protocol::{
    InferRequest, InferResponse, InputTensor, OutputTensor, RegionRange, RequestParameters,
    RequestedOutput, TensorSource, data_types, raw_bytes, tensor_from_raw,
};

fn shape() -> impl Strategy<Value = Vec<usize>> {
    vec(0usize..4, 0..4)
}

fn tensor_of<T: Element, S: Strategy<Value = T> + Clone + 'static>(
    element: S,
) -> BoxedStrategy<Tensor> {
    let tensor = move |shape: Vec<usize>| {
        let count = shape.iter().product::<usize>();
        let elements = vec(element.clone(), count);
        elements.prop_map(move |elements| Tensor::from_vec(shape.clone(), elements).unwrap())
    };
    shape().prop_flat_map(tensor).boxed()
}

/// A tensor of any type; its floats are finite where JSON must have a form for them.
fn tensor(finite: bool) -> BoxedStrategy<Tensor> {
    let is_fit = move |element: f64| element.is_finite() || !finite;
    let f32s = any::<u32>().prop_map(f32::from_bits);
    let f64s = any::<u64>().prop_map(f64::from_bits);
    let f16s = any::<u16>().prop_map(f16::from_bits);
    let bf16s = any::<u16>().prop_map(bf16::from_bits);
    prop_oneof![
        tensor_of(f32s.prop_filter("finite", move |&e| is_fit(e.into())).boxed()),
        tensor_of(f64s.prop_filter("finite", move |&e| is_fit(e)).boxed()),
        tensor_of(f16s.prop_filter("finite", move |&e| is_fit(e.into())).boxed()),
        tensor_of(bf16s.prop_filter("finite", move |&e| is_fit(e.into())).boxed()),
        tensor_of(any::<i8>()),
        tensor_of(any::<i16>()),
        tensor_of(any::<i32>()),
        tensor_of(any::<i64>()),
        tensor_of(any::<u8>()),
        tensor_of(any::<u16>()),
        tensor_of(any::<u32>()),
        tensor_of(any::<u64>()),
        tensor_of(any::<bool>()),
        tensor_of(any::<String>().boxed()),
    ]
    .boxed()
}

fn range() -> impl Strategy<Value = RegionRange> {
    // What fits the signed integers of gRPC.
    (any::<String>(), 0..isize::MAX as usize, 0..isize::MAX as usize).prop_map(
        |(region, offset_bytes, size_bytes)| RegionRange { region, offset_bytes, size_bytes },
    )
}

fn input() -> impl Strategy<Value = InputTensor> {
    let shared = option::weighted(0.1, range());
    (any::<String>(), tensor(true), shared).prop_map(|(name, tensor, range)| InputTensor {
        name,
        data_type: tensor.data_type(),
        shape: tensor.shape().to_vec(),
        data: range.map_or(TensorSource::Tensor(tensor), TensorSource::SharedMemory),
    })
}

fn requested_output() -> impl Strategy<Value = RequestedOutput> {
    let classification = option::of(1usize..1000);
    (any::<String>(), option::of(any::<bool>()), classification, option::of(range())).prop_map(
        |(name, is_binary, classification, shared_memory)| RequestedOutput {
            name,
            is_binary,
            classification,
            shared_memory,
        },
    )
}

prop_compose! {
    fn request()(
        id in any::<String>(),
        priority in any::<u64>(),
        timeout in option::of(1..i64::MAX as u64),
        binary_outputs in any::<bool>(),
        mut inputs in vec(input(), 0..4),
        mut outputs in vec(requested_output(), 0..3),
    ) -> InferRequest {
        // Names are told apart by their places.
        inputs.iter_mut().enumerate().for_each(|(index, input)| input.name += &index.to_string());
        outputs.iter_mut().enumerate().for_each(|(index, output)| output.name += &index.to_string());
        let timeout = timeout.map(Duration::from_micros);
        let parameters = RequestParameters { priority, timeout, binary_outputs };
        InferRequest { id, parameters, inputs, outputs }
    }
}

prop_compose! {
    fn response()(
        model_name in any::<String>(),
        model_version in any::<String>(),
        id in any::<String>(),
        outputs in vec((any::<String>(), tensor(false), any::<bool>()), 0..4),
    ) -> InferResponse {
        let outputs = outputs.into_iter().enumerate().map(|(index, (name, tensor, is_binary))| {
            OutputTensor { name: format!("{name}{index}"), tensor, is_binary, shared_memory: None }
        });
        InferResponse { model_name, model_version, id, outputs: outputs.collect() }
    }
}

/// Tensors must agree to the bit; the sign and payload of NaN are lost in JSON.
#[track_caller]
fn assert_same(given: &Tensor, expected: &Tensor) {
    assert_eq!(given.data_type(), expected.data_type());
    assert_eq!(given.shape(), expected.shape());
    match (given.to_f64s(), expected.to_f64s()) {
        (Ok(given), Ok(expected)) => {
            for (given, expected) in given.iter().zip(&expected) {
                let both_nan = given.is_nan() && expected.is_nan();
                assert!(both_nan || given.to_bits() == expected.to_bits(), "{given} {expected}");
            }
        }
        _ => assert_eq!(given, expected),
    }
}

#[track_caller]
fn assert_same_response(given: &InferResponse, expected: &InferResponse) {
    let texts = |r: &InferResponse| (r.model_name.clone(), r.model_version.clone(), r.id.clone());
    assert_eq!(texts(given), texts(expected));
    assert_eq!(given.outputs.len(), expected.outputs.len());
    for (given, expected) in given.outputs.iter().zip(&expected.outputs) {
        assert_eq!(given.name, expected.name);
        assert_same(&given.tensor, &expected.tensor);
    }
}

proptest! {
    #[test]
    fn elements_as_bytes(tensor in tensor(false)) {
        let bytes = raw_bytes(&tensor).unwrap();
        let read = tensor_from_raw(tensor.data_type(), tensor.shape().to_vec(), bytes).unwrap();
        assert_same(&read, &tensor);
        // What was read from bytes is written as these very bytes, even where NaN has a payload.
        assert_eq!(raw_bytes(&read).unwrap(), raw_bytes(&tensor).unwrap());
    }

    #[test]
    fn requests_as_json(request in request(), is_binary in any::<bool>()) {
        let form = if is_binary { TensorForm::Binary } else { TensorForm::Json };
        let EncodedBody { body, header_length } = encode_request(&request, form).unwrap();
        let header = &body[..header_length.unwrap_or(body.len())];
        prop_assert!(serde_json::from_slice::<Value>(header).is_ok());
        prop_assert_eq!(decode_request(&body, header_length).unwrap(), request);
    }

    #[test]
    fn nested_elements_as_json(tensor in tensor_of(any::<i64>())) {
        let mut elements = tensor.elements::<i64>().unwrap().iter().copied();
        let data = match tensor.shape() {
            [] => json!([elements.next()]),
            shape => nested(shape, &mut elements),
        };
        let input = json!({"name": "x", "datatype": "INT64", "shape": tensor.shape(), "data": data});
        let body = Bytes::from(json!({"inputs": [input]}).to_string());
        let read = decode_request(&body, None).unwrap();
        prop_assert_eq!(&read.inputs[0].data, &TensorSource::Tensor(tensor));
    }

    #[test]
    fn requests_over_grpc(request in request()) {
        let message = request.clone().into_grpc("model", "1").unwrap();
        let sent = Bytes::from(message.encode_to_vec());
        let received = ModelInferRequest::decode(sent).unwrap();
        prop_assert_eq!((&*received.model_name, &*received.model_version), ("model", "1"));
        let mut expected = request;
        // These are of JSON alone.
        expected.parameters.binary_outputs = false;
        expected.outputs.iter_mut().for_each(|output| output.is_binary = None);
        prop_assert_eq!(InferRequest::from_grpc(received).unwrap(), expected);
    }

    #[test]
    fn answers_as_json(response in response()) {
        let EncodedBody { body, header_length } = encode_response(&response).unwrap();
        let read = decode_response(&body, header_length).unwrap();
        assert_same_response(&read, &response);
        let forms = |r: &InferResponse| r.outputs.iter().map(|o| o.is_binary).collect::<Vec<_>>();
        prop_assert_eq!(forms(&read), forms(&response));
    }

    #[test]
    fn answers_over_grpc(response in response()) {
        let message = response.clone().into_grpc().unwrap();
        let received = ModelInferResponse::decode(&*message.encode_to_vec()).unwrap();
        assert_same_response(&InferResponse::from_grpc(received).unwrap(), &response);
    }

    #[test]
    fn elements_as_contents(tensor in tensor(false)) {
        let Some(contents) = contents(&tensor) else { return Ok(()) };
        let read = from_contents(&tensor, contents.clone()).unwrap();
        assert_same(match &read.inputs[0].data {
            TensorSource::Tensor(read) => read,
            TensorSource::SharedMemory(_) => unreachable!("the contents are in the message"),
        }, &tensor);
        // One element more is one too many.
        let longer = InferTensorContents {
            bool_contents: [contents.bool_contents, vec![true]].concat(),
            int_contents: [contents.int_contents, vec![1]].concat(),
            int64_contents: [contents.int64_contents, vec![1]].concat(),
            uint_contents: [contents.uint_contents, vec![1]].concat(),
            uint64_contents: [contents.uint64_contents, vec![1]].concat(),
            fp32_contents: [contents.fp32_contents, vec![1.0]].concat(),
            fp64_contents: [contents.fp64_contents, vec![1.0]].concat(),
            bytes_contents: [contents.bytes_contents, vec![Bytes::new()]].concat(),
        };
        prop_assert!(from_contents(&tensor, longer).is_err());
    }
}

/// Elements as arrays within arrays.
fn nested(shape: &[usize], elements: &mut impl Iterator<Item = i64>) -> Value {
    match shape {
        [] => json!(elements.next().unwrap()),
        [length, inner @ ..] => (0..*length).map(|_| nested(inner, elements)).collect(),
    }
}

/// A tensor as numbers of gRPC, where its type has such.
fn contents(tensor: &Tensor) -> Option<InferTensorContents> {
    use weft_ir::TensorData::*;
    let mut contents = InferTensorContents::default();
    match tensor.data() {
        Bool(elements) => contents.bool_contents = elements.to_vec(),
        I8(elements) => contents.int_contents = elements.iter().map(|&e| e.into()).collect(),
        I16(elements) => contents.int_contents = elements.iter().map(|&e| e.into()).collect(),
        I32(elements) => contents.int_contents = elements.to_vec(),
        I64(elements) => contents.int64_contents = elements.to_vec(),
        U8(elements) => contents.uint_contents = elements.iter().map(|&e| e.into()).collect(),
        U16(elements) => contents.uint_contents = elements.iter().map(|&e| e.into()).collect(),
        U32(elements) => contents.uint_contents = elements.to_vec(),
        U64(elements) => contents.uint64_contents = elements.to_vec(),
        F32(elements) => contents.fp32_contents = elements.to_vec(),
        F64(elements) => contents.fp64_contents = elements.to_vec(),
        String(texts) => {
            contents.bytes_contents = texts.iter().map(|text| text.clone().into()).collect();
        }
        _ => return None,
    }
    Some(contents)
}

fn from_contents(
    tensor: &Tensor,
    contents: InferTensorContents,
) -> Result<InferRequest, weft_protocol::ProtocolError> {
    let input = model_infer_request::InferInputTensor {
        name: "x".into(),
        datatype: data_types::wire_name(tensor.data_type()).unwrap().into(),
        shape: tensor.shape().iter().map(|&dimension| dimension as i64).collect(),
        contents: Some(Box::new(contents)),
        ..Default::default()
    };
    InferRequest::from_grpc(ModelInferRequest { inputs: vec![input], ..Default::default() })
}
