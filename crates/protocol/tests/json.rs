//! Bodies of requests and answers, as clients and servers write them.

use std::time::Duration;

use bytes::Bytes;
use weft_ir::Tensor;
use weft_protocol::json::{
    EncodedBody, TensorForm, decode_request, encode_request, encode_response,
};
use weft_protocol::{
    InferRequest, InferResponse, MAX_TENSORS, OutputTensor, ProtocolError, RegionRange,
    TensorSource,
};

fn decode(json: &str) -> Result<InferRequest, ProtocolError> {
    decode_request(&Bytes::copy_from_slice(json.as_bytes()), None)
}

/// The only input of a request that has these members.
fn input(members: &str) -> Result<Tensor, ProtocolError> {
    let request = decode(&format!("{{\"inputs\":[{{{members}}}]}}"))?;
    match request.inputs.into_iter().next().unwrap().data {
        TensorSource::Tensor(tensor) => Ok(tensor),
        TensorSource::SharedMemory(_) => panic!("not in the message"),
    }
}

/// The outcome must be an error that says this.
#[track_caller]
fn assert_refused<T: std::fmt::Debug>(outcome: Result<T, ProtocolError>, problem: &str) {
    let found = outcome.unwrap_err().to_string();
    assert!(found.contains(problem), "{found}");
}

#[test]
fn elements_may_be_flat_or_nested_and_may_come_before_their_type() {
    let expected = Tensor::from_vec(vec![2, 2], vec![1.0f32, 2.5, -3e-5, 4.0]).unwrap();
    for members in [
        r#""name":"x","shape":[2,2],"datatype":"FP32","data":[1,2.5,-3e-5,4.0]"#,
        r#""name":"x","shape":[2,2],"datatype":"FP32","data":[[1,2.5],[-3e-5,4.0]]"#,
        r#""data" : [ [1, 2.5] , [-0.00003, 4] ] , "datatype":"FP32","shape":[2,2],"name":"x""#,
    ] {
        assert_eq!(input(members).unwrap(), expected);
    }
    let none = Tensor::from_vec(vec![2, 0], Vec::<i8>::new()).unwrap();
    for data in ["[]", "[[],[]]"] {
        let members = format!(r#""name":"x","shape":[2,0],"datatype":"INT8","data":{data}"#);
        assert_eq!(input(&members).unwrap(), none);
    }
    let scalar = r#""name":"x","shape":[],"datatype":"BOOL","data":[1]"#;
    assert_eq!(input(scalar).unwrap(), Tensor::scalar(true));
}

#[test]
fn a_decimal_is_rounded_once() {
    // Half way between two floats of 32 bits and a little above: by way of 64 bits it would become the lower one.
    let members = r#""name":"x","shape":[1],"datatype":"FP32","data":[1.00000005960464477540]"#;
    assert_eq!(input(members).unwrap().elements::<f32>().unwrap(), [1.0000001f32]);
}

#[test]
fn problems_name_the_tensor() {
    for (members, problem) in [
        (r#""shape":[2],"datatype":"FP32","data":[1,NaN]"#, "element 1: NaN is not JSON"),
        (r#""data":[1,-Infinity],"shape":[2],"datatype":"FP32""#, "-Infinity is not JSON"),
        (r#""shape":[1],"datatype":"FP32","data":[1e39]"#, "element 0: 1e39 is no FP32"),
        (r#""shape":[2],"datatype":"INT8","data":[1,300]"#, "element 1: 300 is no INT8"),
        (r#""shape":[1],"datatype":"UINT64","data":[18446744073709551616]"#, "is no UINT64"),
        (r#""shape":[1],"datatype":"UINT8","data":[-1]"#, "-1 is no UINT8"),
        (r#""shape":[1],"datatype":"INT32","data":[1.5]"#, "1.5 is no INT32"),
        (r#""shape":[1],"datatype":"BOOL","data":[2]"#, "2 is no BOOL"),
        (r#""shape":[1],"datatype":"BYTES","data":[2]"#, "a text is missing"),
        (r#""shape":[1],"datatype":"FP32","data":["1"]"#, "a number is missing"),
        (r#""shape":[1],"datatype":"FP32","data":1"#, "'[' is missing"),
        (r#""shape":[2],"datatype":"INT8","data":[1,2,3]"#, "more than 2 entries"),
        (r#""shape":[2],"datatype":"INT8","data":[1]"#, "1 entries, where the shape says 2,"),
        (r#""shape":[2,2],"datatype":"INT8","data":[[1],[2,3,4]]"#, "1 entries, where"),
        (r#""shape":[2,2],"datatype":"INT8","data":[[1,2],[3,4],[5,6]]"#, "more than 2 entries"),
        (r#""shape":[2],"datatype":"INT8","data":[1,[2]]"#, "element 1: a number is missing"),
        (r#""shape":[2,1],"datatype":"INT8","data":[[1],2]"#, "'[' is missing"),
        (r#""shape":[1,1,1],"datatype":"INT8","data":[[1]]"#, "'[' is missing"),
        (r#""shape":[1],"datatype":"INT8","data":[[1]]"#, "element 0: a number is missing"),
        (r#""shape":[-1],"datatype":"INT8","data":[1]"#, "dimension -1"),
        (r#""shape":[4294967296,4294967296],"datatype":"INT8","data":[1]"#, "4294967296"),
        (r#""shape":[1],"datatype":"FLOAT","data":[1]"#, "'FLOAT' is no data type"),
        (r#""shape":[1],"datatype":"INT8""#, "has no data"),
        (r#""datatype":"INT8","data":[1]"#, "has no shape"),
        (r#""shape":[1],"data":[1]"#, "has no datatype"),
        (r#""shape":[1],"shape":[1],"datatype":"INT8","data":[1]"#, "'shape' is given twice"),
        (
            r#""shape":[1],"datatype":"INT8","data":[1],"parameters":{"binary_data_size":1}"#,
            "has more than one of",
        ),
        (
            r#""shape":[1],"datatype":"INT8","parameters":{"binary_data_size":1}"#,
            "Inference-Header-Content-Length",
        ),
        (
            r#""shape":[1],"datatype":"INT8","parameters":{"shared_memory_region":"r"}"#,
            "needs 'shared_memory_byte_size'",
        ),
        (
            r#""shape":[1],"datatype":"INT8","parameters":{"shared_memory_offset":-1}"#,
            "must be an unsigned integer, not -1",
        ),
    ] {
        match input(&format!(r#""name":"x",{members}"#)) {
            Err(ProtocolError::Tensor { name, problem: found }) => {
                assert_eq!(name, "x");
                assert!(found.contains(problem), "{found}");
            }
            other => panic!("{members}: {other:?}"),
        }
    }
    assert_refused(input(r#""shape":[1]"#), "tensor 'inputs[0]': has no name");
}

#[test]
fn a_request_that_is_malformed_is_refused() {
    for (json, problem) in [
        ("", "'{' is missing at byte 0"),
        ("{}", "'inputs' is missing"),
        (r#"{"inputs":[]} 1"#, "something follows the value"),
        (r#"{"inputs":[],"id":7}"#, "a text is missing"),
        (r#"{"inputs":[],"outputs":[{}]}"#, "tensor 'outputs[0]': has no name"),
        (r#"{"inputs":[],"outputs":[{"name":"y"},{"name":"y"}]}"#, "'y': is given twice"),
        (r#"{"inputs":[],"parameters":{"priority":-1}}"#, "'priority' must be an unsigned"),
        (r#"{"inputs":[],"parameters":{"timeout":"soon"}}"#, "not 'soon'"),
        (r#"{"inputs":[],"parameters":{"binary_data_output":1}}"#, "must be true or false"),
        (r#"{"inputs":[],"parameters":{"sequence_id":1}}"#, "is not supported"),
    ] {
        assert_refused(decode(json), problem);
    }
    let outputs = vec![r#"{"name":"y"}"#; MAX_TENSORS + 1].join(",");
    assert_refused(decode(&format!(r#"{{"outputs":[{outputs}]}}"#)), "more than 1024 outputs");
    assert_refused(decode_request(&Bytes::from_static(b"{}"), Some(3)), "said to have 3 bytes");
    assert_refused(decode_request(&Bytes::from_static(b"{}\xff"), None), "not UTF-8");
    assert_refused(decode_request(&Bytes::from_static(b"1234"), Some(0)), "not supported");
}

#[test]
fn parameters_may_be_numbers_or_texts_and_unknown_ones_mean_nothing() {
    for json in [
        r#"{"inputs":[],"parameters":{"timeout":1500,"priority":2}}"#,
        r#"{"parameters":{"x":[{"y":null}],"timeout":"1500","sequence_id":0,"priority":"2"},"inputs":[],"z":{}}"#,
    ] {
        let parameters = decode(json).unwrap().parameters;
        assert_eq!(parameters.timeout, Some(Duration::from_micros(1500)));
        assert_eq!(parameters.priority, 2);
    }
    let none = decode(r#"{"inputs":[],"parameters":{"timeout":0}}"#).unwrap();
    assert_eq!(none.parameters.timeout, None);
}

#[test]
fn bytes_behind_the_header_belong_to_tensors_in_order() {
    let header = r#"{"inputs":[
        {"name":"a","datatype":"UINT8","shape":[2],"parameters":{"binary_data_size":2}},
        {"name":"b","datatype":"UINT8","shape":[1],"data":[9]},
        {"name":"c","datatype":"UINT8","shape":[1],"parameters":{"binary_data_size":1}}]}"#;
    let read = |bytes: &[u8]| {
        let body = Bytes::from([header.as_bytes(), bytes].concat());
        decode_request(&body, Some(header.len()))
    };
    let elements: Vec<Vec<u8>> = read(&[1, 2, 3])
        .unwrap()
        .inputs
        .into_iter()
        .map(|input| match input.data {
            TensorSource::Tensor(tensor) => tensor.elements::<u8>().unwrap().to_vec(),
            TensorSource::SharedMemory(_) => panic!("not in shared memory"),
        })
        .collect();
    assert_eq!(elements, [vec![1, 2], vec![9], vec![3]]);
    assert_refused(read(&[1, 2]), "tensor 'c': 1 bytes of binary data are announced, 0 are left");
    assert_refused(read(&[1, 2, 3, 4]), "1 bytes of binary data belong to no tensor");
}

#[test]
fn aligned_elements_are_not_copied() {
    let tensor = Tensor::from_vec(vec![1000], (0..1000).collect::<Vec<i64>>()).unwrap();
    let request = decode(r#"{"inputs":[{"name":"x","datatype":"INT64","shape":[0],"data":[]}]}"#);
    let mut request = request.unwrap();
    request.inputs[0].shape = vec![1000];
    request.inputs[0].data = TensorSource::Tensor(tensor);
    let EncodedBody { body, header_length } = encode_request(&request, TensorForm::Binary).unwrap();
    let read = decode_request(&body, header_length).unwrap();
    let TensorSource::Tensor(tensor) = &read.inputs[0].data else { panic!("in the message") };
    let elements = tensor.elements::<i64>().unwrap();
    assert!(body.as_ptr_range().contains(&elements.as_ptr().cast::<u8>()));
}

#[test]
fn an_answer_is_written_as_json_and_as_bytes() {
    let output = |name: &str, is_binary| OutputTensor {
        name: name.into(),
        tensor: Tensor::from_vec(vec![1, 3], vec![0.1f32, f32::NAN, f32::NEG_INFINITY]).unwrap(),
        is_binary,
        shared_memory: None,
    };
    let mut response = InferResponse {
        model_name: "m\"1\"".into(),
        model_version: "3".into(),
        id: String::new(),
        outputs: vec![output("y", false)],
    };
    let encoded = encode_response(&response).unwrap();
    assert_eq!(encoded.header_length, None);
    let json = r#"{"model_name":"m\"1\"","model_version":"3","outputs":[{"name":"y","datatype":"FP32","shape":[1,3],"data":[0.1,NaN,-Infinity]}]}"#;
    assert_eq!(str::from_utf8(&encoded.body).unwrap(), json);

    response.outputs.push(output("z", true));
    let encoded = encode_response(&response).unwrap();
    let header_length = encoded.header_length.unwrap();
    let header = str::from_utf8(&encoded.body[..header_length]).unwrap();
    assert!(
        header.contains(r#""shape":[1,3],"parameters":{"binary_data_size":12}}]}"#),
        "{header}"
    );
    assert_eq!(header_length % 8, 0);
    let expected: Vec<u8> =
        [0.1f32, f32::NAN, f32::NEG_INFINITY].iter().flat_map(|e| e.to_le_bytes()).collect();
    assert_eq!(encoded.body[header_length..], expected);

    response.outputs.truncate(1);
    let range = RegionRange { region: "r".into(), offset_bytes: 0, size_bytes: 12 };
    response.outputs[0].shared_memory = Some(range);
    let encoded = encode_response(&response).unwrap();
    let ending = br#""outputs":[{"name":"y","datatype":"FP32","shape":[1,3]}]}"#;
    assert!(encoded.body.ends_with(ending), "{:?}", encoded.body);
    response.outputs[0].shared_memory = None;

    let complex = Tensor::from_vec(vec![1], vec![[1.0f32, 2.0]]).unwrap();
    response.outputs[0].tensor = complex;
    assert_refused(encode_response(&response), "tensor 'y': type complex64 has no name");
}
