//! Prints how long requests take to read and answers to write, the fastest round and the median:
//! `cargo run --release -p weft-protocol --example codec_time`.
#![allow(clippy::print_stdout)]

use std::hint::black_box;
use std::time::{Duration, Instant};

use bytes::Bytes;
use prost::Message;
use weft_ir::Tensor;
use weft_protocol::grpc::inference::ModelInferRequest;
use weft_protocol::json::{
    EncodedBody, TensorForm, decode_request, encode_request, encode_response,
};
use weft_protocol::{
    InferRequest, InferResponse, InputTensor, OutputTensor, RequestParameters, TensorSource,
};

/// Rounds of each measurement.
const ROUNDS: usize = 200;

/// What a round of short runs takes about: less than a busy system lets one run at a time.
const ROUND_NS: u128 = 500_000;

fn main() {
    for shape in [vec![1, 16], vec![1, 3, 224, 224]] {
        let request = request(shape.clone());
        println!("{shape:?}");
        for form in [TensorForm::Json, TensorForm::Binary] {
            let EncodedBody { body, header_length } = encode_request(&request, form).unwrap();
            let decode = || decode_request(black_box(&body), header_length).unwrap();
            let answer = answer(decode(), form == TensorForm::Binary);
            let encode = || encode_response(black_box(&answer)).unwrap();
            report(&format!("{form:?}"), body.len(), time(decode), time(encode));
        }
        let message = request.into_grpc("identity", "1").unwrap();
        let sent = Bytes::from(message.encode_to_vec());
        let decode = || {
            let message = ModelInferRequest::decode(black_box(&sent).clone()).unwrap();
            InferRequest::from_grpc(message).unwrap()
        };
        let answer = answer(decode(), true);
        let encode = || black_box(&answer).clone().into_grpc().unwrap().encode_to_vec();
        report("gRPC", sent.len(), time(decode), time(encode));
    }
}

fn report(form: &str, size_bytes: usize, decode: [Duration; 2], encode: [Duration; 2]) {
    println!("  {form:<7} {size_bytes:>8} bytes   decode {decode:.1?}   encode {encode:.1?}");
}

fn request(shape: Vec<usize>) -> InferRequest {
    let count = shape.iter().product::<usize>();
    let elements = (0..count).map(|index| (index as f32 * 0.7311).sin()).collect();
    let tensor = Tensor::from_vec(shape.clone(), elements).unwrap();
    let input = InputTensor {
        name: "INPUT0".into(),
        data_type: tensor.data_type(),
        shape,
        data: TensorSource::Tensor(tensor),
    };
    InferRequest {
        id: String::new(),
        parameters: RequestParameters::default(),
        inputs: vec![input],
        outputs: Vec::new(),
    }
}

/// What a model that changes nothing answers.
fn answer(request: InferRequest, is_binary: bool) -> InferResponse {
    let output = |input: InputTensor| match input.data {
        TensorSource::Tensor(tensor) => {
            OutputTensor { name: "OUTPUT0".into(), tensor, is_binary, shared_memory: None }
        }
        TensorSource::SharedMemory(_) => unreachable!("the request carries its tensors"),
    };
    InferResponse {
        model_name: "identity".into(),
        model_version: "1".into(),
        id: request.id,
        outputs: request.inputs.into_iter().map(output).collect(),
    }
}

/// The fastest and the median time of one run.
fn time<T>(mut run: impl FnMut() -> T) -> [Duration; 2] {
    let mut round = |repeats: u32| {
        let started = Instant::now();
        (0..repeats).for_each(|_| {
            black_box(run());
        });
        started.elapsed() / repeats
    };
    let first = (0..100).map(|_| round(1)).min().unwrap_or_default();
    let repeats = (ROUND_NS / first.as_nanos().max(1)).max(1) as u32;
    let mut rounds: Vec<Duration> = (0..ROUNDS).map(|_| round(repeats)).collect();
    rounds.sort_unstable();
    [rounds[0], rounds[ROUNDS / 2]]
}
