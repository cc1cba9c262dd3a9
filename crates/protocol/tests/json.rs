//! Bodies of requests and answers, as clients and servers write them.

use bytes::Bytes;
use weft_ir::Tensor;
use weft_protocol::json::{decode_request, encode_response};
use weft_protocol::{InferRequest, InferResponse, OutputTensor, ProtocolError, TensorSource};

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

#[test]
fn elements_may_be_flat_or_nested_and_may_come_before_their_type() {
    let expected = Tensor::from_vec(vec![2, 2], vec![1.0f32, 2.5, -3e-5, 4.0]).unwrap();
    for members in [
        r#""name":"x","shape":[2,2],"datatype":"FP32","data":[1,2.5,-3e-5,4.0]"#,
        r#""data" : [ [1, 2.5] , [-0.00003, 4] ] , "datatype":"FP32","shape":[2,2],"name":"x""#,
    ] {
        assert_eq!(input(members).unwrap(), expected);
    }
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
}

#[test]
fn problems_name_the_tensor() {
    for (members, problem) in [
        (r#""name":"x","shape":[2],"datatype":"FP32","data":[1,NaN]"#, "NaN is not JSON"),
        (r#""name":"x","shape":[2],"datatype":"INT8","data":[1,300]"#, "element 1: 300 is no INT8"),
        (r#""name":"x","shape":[2],"datatype":"INT8","data":[1,2,3]"#, "more elements than the 2"),
        (r#""name":"x","shape":[2],"datatype":"INT8","data":[1]"#, "1 elements, 2 by its shape"),
        (r#""name":"x","shape":[2,2],"datatype":"INT8","data":[[1],[2,3,4]]"#, "an array of 1"),
        (r#""name":"x","shape":[2],"datatype":"INT8","data":[1,[2]]"#, "nested otherwise"),
        (r#""name":"x","shape":[-1],"datatype":"INT8","data":[1]"#, "dimension -1"),
        (r#""name":"x","shape":[1],"datatype":"FLOAT","data":[1]"#, "'FLOAT' is no data type"),
    ] {
        match input(members) {
            Err(ProtocolError::Tensor { name, problem: found }) => {
                assert_eq!(name, "x");
                assert!(found.contains(problem), "{found}");
            }
            other => panic!("{members}: {other:?}"),
        }
    }
}
