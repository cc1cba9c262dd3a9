//! Every call over gRPC; and JSON, bytes and gRPC agree with the engine.

mod support;

use std::time::Duration;

use bytes::Bytes;
use support::{IDENTITY, NETWORK, Served, identity_request, start, start_with};
use tokio_stream::StreamExt;
use tonic::Code;
use tonic::codec::CompressionEncoding;
use tonic::transport::Channel;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;
use weft_ir::{Tensor, Value};
use weft_protocol::grpc::inference::grpc_inference_service_client::GrpcInferenceServiceClient;
use weft_protocol::grpc::inference::*;
use weft_protocol::json::{TensorForm, decode_response, encode_request};
use weft_protocol::{
    InferRequest, InferResponse, InputTensor, RequestParameters, TensorSource, raw_bytes,
};
use weft_server::Limits;
use weft_zoo::{ZooOptions, entry, sample_inputs};

type Client = GrpcInferenceServiceClient<Channel>;

async fn client(served: &Served, port: u16) -> Client {
    let address = format!("http://{}:{port}", served.server.address().ip());
    let channel = Channel::from_shared(address).unwrap().connect().await.unwrap();
    GrpcInferenceServiceClient::new(channel)
}

async fn main_client(served: &Served) -> Client {
    client(served, served.server.address().port()).await
}

fn request(name: &str, tensor: Tensor) -> InferRequest {
    InferRequest {
        id: "1".into(),
        parameters: RequestParameters { binary_outputs: true, ..Default::default() },
        inputs: vec![InputTensor {
            name: name.into(),
            data_type: tensor.data_type(),
            shape: tensor.shape().to_vec(),
            data: TensorSource::Tensor(tensor),
        }],
        outputs: Vec::new(),
    }
}

fn floats(rows: usize) -> Tensor {
    let elements = (0..rows * 16).map(|number| number as f32 + 0.5).collect();
    Tensor::from_vec(vec![rows, 16], elements).unwrap()
}

fn identity(rows: usize) -> ModelInferRequest {
    request("x", floats(rows)).into_grpc(IDENTITY, "").unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn json_bytes_and_grpc_agree_with_the_engine() {
    let served = start();
    let options = ZooOptions::default();
    let tensor = sample_inputs(entry(NETWORK).unwrap(), &options, 1, 8).unwrap().remove(0);
    let model = served.table.find(NETWORK, "").unwrap();
    let name = model.signature.inputs[0].name.clone();
    let expected = served.engine.infer(model.key, vec![Value::Tensor(tensor.clone())]).unwrap();
    let expected = expected.outputs[0].tensor().unwrap().clone();

    let path = format!("/v2/models/{NETWORK}/infer");
    let mut answers: Vec<InferResponse> = Vec::new();
    for (form, is_binary) in [(TensorForm::Json, false), (TensorForm::Binary, true)] {
        let mut asked = request(&name, tensor.clone());
        asked.parameters.binary_outputs = is_binary;
        let body = encode_request(&asked, form).unwrap();
        let length = body.header_length.map(|length| length.to_string());
        let headers: Vec<_> =
            length.iter().map(|length| ("Inference-Header-Content-Length", &**length)).collect();
        let answer = served.post_with(&path, &headers, &body.body);
        assert_eq!(answer.status, 200);
        let length = answer.header("inference-header-content-length").map(|l| l.parse().unwrap());
        assert_eq!(length.is_some(), is_binary);
        answers.push(decode_response(&Bytes::from(answer.body), length).unwrap());
    }
    let asked = request(&name, tensor).into_grpc(NETWORK, "1").unwrap();
    let answer = main_client(&served).await.model_infer(asked).await.unwrap().into_inner();
    answers.push(InferResponse::from_grpc(answer).unwrap());
    for answer in answers {
        let given = &answer.outputs[0].tensor;
        assert_eq!(given.shape(), expected.shape());
        assert_eq!(raw_bytes(given).unwrap(), raw_bytes(&expected).unwrap());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn every_call_answers() {
    let served = start();
    let mut client = client(&served, served.server.grpc_address().unwrap().port()).await;
    assert!(client.server_live(ServerLiveRequest {}).await.unwrap().into_inner().live);
    assert!(client.server_ready(ServerReadyRequest {}).await.unwrap().into_inner().ready);
    let (name, version) = (IDENTITY.to_string(), String::new());
    let asked = ModelReadyRequest { name: name.clone(), version: version.clone() };
    assert!(client.model_ready(asked).await.unwrap().into_inner().ready);
    let asked = ModelMetadataRequest { name: name.clone(), version: version.clone() };
    let metadata = client.model_metadata(asked).await.unwrap().into_inner();
    assert_eq!(metadata.inputs[0].shape, [-1, 16]);
    let asked = ModelConfigRequest { name: name.clone(), version: version.clone() };
    let config = client.model_config(asked).await.unwrap().into_inner().config.unwrap();
    assert_eq!((config.max_batch_size, &config.input[0].dims[..]), (8, &[16][..]));
    client.model_infer(identity(2)).await.unwrap();
    let asked = ModelStatisticsRequest { name: name.clone(), version };
    let counted = client.model_statistics(asked).await.unwrap().into_inner();
    assert_eq!(counted.model_stats[0].inference_count, 2);
    let metadata = client.server_metadata(ServerMetadataRequest {}).await.unwrap().into_inner();
    assert_eq!(metadata.name, "weft");

    let asked = RepositoryModelUnloadRequest { model_name: name.clone(), ..Default::default() };
    client.repository_model_unload(asked).await.unwrap();
    let status = client.model_infer(identity(1)).await.unwrap_err();
    assert_eq!(status.code(), Code::NotFound);
    let asked = RepositoryModelLoadRequest { model_name: name, ..Default::default() };
    client.repository_model_load(asked).await.unwrap();
    let index = client.repository_index(RepositoryIndexRequest::default()).await.unwrap();
    assert!(index.into_inner().models.iter().all(|model| model.state == "READY"));

    let regions = client.system_shared_memory_status(SystemSharedMemoryStatusRequest::default());
    assert!(regions.await.unwrap().into_inner().regions.is_empty());
    let status =
        client.cuda_shared_memory_register(CudaSharedMemoryRegisterRequest::default()).await;
    assert_eq!(status.unwrap_err().code(), Code::Unimplemented);
    let status = client.trace_setting(TraceSettingRequest::default()).await.unwrap_err();
    assert_eq!(status.code(), Code::Unimplemented);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_stream_answers_every_request_and_outlives_wrong_ones() {
    let served = start();
    let mut client = main_client(&served).await;
    let mut requests: Vec<ModelInferRequest> = (1..=4).map(identity).collect();
    for (number, request) in requests.iter_mut().enumerate() {
        request.id = number.to_string();
    }
    requests[2].model_name = "unheard".into();
    let answers = client.model_stream_infer(tokio_stream::iter(requests)).await.unwrap();
    let answers: Vec<_> = answers.into_inner().collect().await;
    let mut ids = Vec::new();
    for answer in answers {
        let answer = answer.unwrap();
        let response = answer.infer_response.unwrap();
        assert_eq!(answer.error_message.is_empty(), response.id != "2");
        ids.push(response.id);
    }
    ids.sort();
    assert_eq!(ids, ["0", "1", "2", "3"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn orchestrators_are_told_the_health_of_the_server_and_of_models() {
    let served = start();
    let address = format!("http://{}", served.server.address());
    let channel = Channel::from_shared(address).unwrap().connect().await.unwrap();
    let mut client = HealthClient::new(channel);
    for service in ["", "inference.GRPCInferenceService", IDENTITY] {
        let asked = HealthCheckRequest { service: service.into() };
        let status = client.check(asked).await.unwrap().into_inner().status;
        assert_eq!(status, i32::from(ServingStatus::Serving), "{service}");
    }
    let asked = HealthCheckRequest { service: "unheard".into() };
    assert_eq!(client.check(asked).await.unwrap_err().code(), Code::NotFound);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn messages_may_be_compressed() {
    let served = start();
    let client = main_client(&served).await;
    let mut client = client
        .send_compressed(CompressionEncoding::Gzip)
        .accept_compressed(CompressionEncoding::Gzip);
    let answer = client.model_infer(identity(8)).await.unwrap();
    assert_eq!(answer.metadata().get("grpc-encoding").unwrap(), "gzip");
    let answer = InferResponse::from_grpc(answer.into_inner()).unwrap();
    assert_eq!(answer.outputs[0].tensor, floats(8));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn wrong_calls_have_the_right_codes() {
    let served = start_with(Limits { body_bytes: 4096, ..Limits::default() });
    let mut client = main_client(&served).await;
    let mut wrong_type = identity(1);
    wrong_type.inputs[0].datatype = "INT32".into();
    let mut wrong_size = identity(1);
    wrong_size.raw_input_contents[0] = Bytes::from_static(b"abc");
    let mut wrong_version = identity(1);
    wrong_version.model_version = "x".into();
    for (request, code) in [
        (wrong_type, Code::InvalidArgument),
        (wrong_size, Code::InvalidArgument),
        (identity(9), Code::InvalidArgument),
        (ModelInferRequest::default(), Code::NotFound),
        (wrong_version, Code::NotFound),
        (identity(1000), Code::OutOfRange),
    ] {
        let status = client.model_infer(request).await.unwrap_err();
        assert_eq!(status.code(), code, "{status}");
    }
    let mut hurried = request("x", floats(1));
    hurried.parameters.timeout = Some(Duration::from_micros(1));
    let status = client.model_infer(hurried.into_grpc(IDENTITY, "").unwrap()).await.unwrap_err();
    assert_eq!(status.code(), Code::DeadlineExceeded, "{status}");
    assert_eq!(status.metadata().get("retry-after").unwrap(), "1");
    assert!(client.model_infer(identity(1)).await.is_ok());
    assert_eq!(served.post("/v2/models/identity/infer", &identity_request(1)).status, 200);
}
