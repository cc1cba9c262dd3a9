//! A server of KServe v2 on a thread of its own, whose one model echoes its input when a script says so.

mod shared_memory;

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{HeaderMap, Method, Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use prost::Message;
use serde_json::{Value, json};
use shared_memory::Regions;
use tokio::net::TcpListener;
use tokio::runtime::Builder;
use weft_protocol::grpc::inference::model_infer_response::InferOutputTensor;
use weft_protocol::grpc::inference::model_metadata_response::TensorMetadata;
use weft_protocol::grpc::inference::{
    ModelInferRequest, ModelInferResponse, ModelMetadataRequest, ModelMetadataResponse,
    ServerMetadataResponse, SystemSharedMemoryRegisterRequest, SystemSharedMemoryUnregisterRequest,
};
use weft_protocol::json::decode_request;
use weft_protocol::{InferRequest, RegionRange, TensorSource, raw_bytes};

/// The model's name.
pub(crate) const MODEL: &str = "echo";
const NO_SUCH_MEMORY: &str = "No such file or directory";

/// What the server does with shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sharing {
    /// It does not have it.
    No,
    /// It is on another machine.
    Elsewhere,
    Here,
}

/// What the server does with one request for inference.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Act {
    /// Answers after this time, and meanwhile does other things.
    Answer(Duration),
    /// Does nothing at all for this time, for nobody, and then answers.
    Stall(Duration),
    /// Answers with other bytes than it was given.
    Garble,
    /// Answers with fewer bytes than it was given.
    Shorten,
    /// Answers with this status.
    Refuse(u16),
    /// Answers with this status who does not say that it may be late.
    RefuseUrgent(u16),
    /// Answers in JSON, although it could do otherwise.
    Text,
    /// Never answers.
    Ignore,
}

/// A server on its way.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    connections: Arc<AtomicUsize>,
    /// Memory that was shared with it.
    pub(crate) regions: Arc<Regions>,
    _alone: MutexGuard<'static, ()>,
}

/// Held by the server that there is: two tests at once would make each other's requests late.
static ALONE: Mutex<()> = Mutex::new(());

/// Shared memory as the server offers it.
#[derive(Clone)]
struct Memory {
    sharing: Sharing,
    regions: Arc<Regions>,
}

impl Memory {
    fn extensions(&self) -> Vec<&'static str> {
        match self.sharing {
            Sharing::No => vec!["binary_tensor_data"],
            Sharing::Elsewhere | Sharing::Here => {
                vec!["binary_tensor_data", "system_shared_memory"]
            }
        }
    }

    /// True where there is such memory.
    fn register(&self, name: &str, key: &str) -> bool {
        let is_here = self.sharing == Sharing::Here;
        if is_here {
            self.regions.register(name, key);
        }
        is_here
    }
}

impl Server {
    /// Starts a server; `script` says what it does with the request of a number, counted from 0.
    pub(crate) fn start(script: impl Fn(usize) -> Act + Send + Sync + 'static) -> Self {
        Self::sharing(Sharing::No, script)
    }

    /// Starts a server that has shared memory, or has not.
    pub(crate) fn sharing(
        sharing: Sharing,
        script: impl Fn(usize) -> Act + Send + Sync + 'static,
    ) -> Self {
        // A test that failed leaves nothing behind that could be broken.
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        let connections = Arc::new(AtomicUsize::new(0));
        let counted = connections.clone();
        let memory = Memory { sharing, regions: Arc::default() };
        let regions = memory.regions.clone();
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        std::thread::spawn(move || {
            let script: Script = Arc::new(script);
            runtime.block_on(accept(listener, script, counted, memory));
        });
        Self { address, connections, regions, _alone: alone }
    }

    /// How many connections were made to it.
    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }
}

type Answer = Response<BoxBody<Bytes, Infallible>>;
type Script = Arc<dyn Fn(usize) -> Act + Send + Sync>;

async fn accept(
    listener: std::net::TcpListener,
    script: Script,
    connections: Arc<AtomicUsize>,
    memory: Memory,
) {
    let listener = TcpListener::from_std(listener).unwrap();
    let asked = Arc::new(AtomicUsize::new(0));
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        stream.set_nodelay(true).unwrap();
        connections.fetch_add(1, Ordering::Relaxed);
        let (script, asked, memory) = (script.clone(), asked.clone(), memory.clone());
        tokio::spawn(async move {
            let answer = service_fn(move |request| {
                answer(request, script.clone(), asked.clone(), memory.clone())
            });
            // A client that hangs up is no concern of the server's.
            let _ = auto::Builder::new(TokioExecutor::new())
                .serve_connection(TokioIo::new(stream), answer)
                .await;
        });
    }
}

async fn answer(
    request: Request<Incoming>,
    script: Script,
    asked: Arc<AtomicUsize>,
    memory: Memory,
) -> Result<Answer, Infallible> {
    let is_post = request.method() == Method::POST;
    let path = request.uri().path().to_string();
    let json_bytes = request.headers().get("Inference-Header-Content-Length");
    let json_bytes = json_bytes.map(|bytes| bytes.to_str().unwrap().parse().unwrap());
    let body = request.into_body().collect().await.map(|body| body.to_bytes());
    let body = body.unwrap_or_default();
    let model = format!("/v2/models/{MODEL}");
    let act = || script(asked.fetch_add(1, Ordering::Relaxed));
    if let Some(method) = path.strip_prefix("/inference.GRPCInferenceService/") {
        return Ok(answer_grpc(method, body.slice(5..), act, &memory).await);
    }
    if let Some(path) = path.strip_prefix("/v2/systemsharedmemory/region/") {
        return Ok(region_http(path, &body, &memory));
    }
    Ok(match path.as_str() {
        "/v2" => json(200, &json!({ "name": "scripted", "extensions": memory.extensions() })),
        path if path == model => json(
            200,
            &json!({
                "name": "echo",
                "inputs": [{ "name": "x", "datatype": "FP32", "shape": [-1, 4] }],
                "outputs": [],
            }),
        ),
        path if is_post && path == format!("{model}/infer") => {
            infer_http(act(), decode_request(&body, json_bytes).unwrap(), &memory).await
        }
        _ => json(404, &json!({ "error": "there is no such model" })),
    })
}

async fn answer_grpc(
    method: &str,
    message: Bytes,
    act: impl FnOnce() -> Act,
    memory: &Memory,
) -> Answer {
    match method {
        "ServerMetadata" => {
            let extensions = memory.extensions().into_iter().map(String::from).collect();
            grpc(0, "", &ServerMetadataResponse { extensions, ..Default::default() })
        }
        "ModelMetadata" => metadata_grpc(message),
        "ModelInfer" => {
            let message = ModelInferRequest::decode(message).unwrap();
            infer_grpc(act(), InferRequest::from_grpc(message).unwrap(), memory).await
        }
        "SystemSharedMemoryRegister" => {
            let request = SystemSharedMemoryRegisterRequest::decode(message).unwrap();
            match memory.register(&request.name, &request.key) {
                true => grpc(0, "", &()),
                false => grpc(3, NO_SUCH_MEMORY, &()),
            }
        }
        "SystemSharedMemoryUnregister" => {
            let request = SystemSharedMemoryUnregisterRequest::decode(message).unwrap();
            memory.regions.unregister(&request.name);
            grpc(0, "", &())
        }
        _ => grpc(12, "no such method", &()),
    }
}

fn region_http(path: &str, body: &Bytes, memory: &Memory) -> Answer {
    let (name, what) = path.split_once('/').unwrap();
    if what == "unregister" {
        memory.regions.unregister(name);
        return json(200, &json!({}));
    }
    let asked: Value = serde_json::from_slice(body).unwrap();
    match memory.register(name, asked["key"].as_str().unwrap()) {
        true => json(200, &json!({})),
        false => json(400, &json!({ "error": NO_SUCH_MEMORY })),
    }
}

/// What is answered: outputs, and where they are; or a status of HTTP.
async fn infer(
    act: Act,
    request: &InferRequest,
    memory: &Memory,
) -> Result<(Vec<u8>, Option<RegionRange>), u16> {
    let mut echoed = match &request.inputs[0].data {
        TensorSource::Tensor(tensor) => raw_bytes(tensor).unwrap().to_vec(),
        TensorSource::SharedMemory(range) => memory.regions.read(range),
    };
    let range = request.outputs.first().and_then(|output| output.shared_memory.clone());
    let place = range.as_ref().map(|range| range.offset_bytes);
    place.into_iter().for_each(|place| memory.regions.take(place));
    let mut refused = None;
    match act {
        Act::Answer(after) if after > Duration::ZERO => tokio::time::sleep(after).await,
        Act::Answer(_) | Act::Text => {}
        Act::Stall(time) => std::thread::sleep(time),
        Act::Garble => echoed[3] ^= 1,
        Act::Shorten => echoed.truncate(8),
        Act::Refuse(status) => refused = Some(status),
        Act::RefuseUrgent(status) => {
            refused = (request.parameters.priority < 2).then_some(status);
        }
        Act::Ignore => std::future::pending().await,
    }
    if let (Some(range), None) = (&range, refused) {
        memory.regions.write(range, &echoed);
    }
    place.into_iter().for_each(|place| memory.regions.give_back(place));
    refused.map_or(Ok((echoed, range)), Err)
}

async fn infer_http(act: Act, request: InferRequest, memory: &Memory) -> Answer {
    let (echoed, range) = match infer(act, &request, memory).await {
        Ok(answered) => answered,
        Err(status) => return json(status, &json!({ "error": "not now" })),
    };
    let answer = |mut output: Value| {
        output["name"] = json!("y");
        output["datatype"] = json!("FP32");
        json!({ "model_name": "echo", "model_version": "1", "outputs": [output] })
    };
    if matches!(act, Act::Text) {
        return json(200, &answer(json!({ "shape": [1, 4], "data": [1, 2, 3, 4] })));
    }
    let size = echoed.len();
    let shape = [1, size / 4];
    if range.is_some() {
        return json(200, &answer(json!({ "shape": shape })));
    }
    let parameters = json!({ "binary_data_size": size });
    let header = answer(json!({ "shape": shape, "parameters": parameters })).to_string();
    let body = Full::new(Bytes::from([header.as_bytes(), &echoed].concat()));
    Response::builder()
        .header("Inference-Header-Content-Length", header.len())
        .body(body.boxed())
        .unwrap()
}

fn json(status: u16, value: &Value) -> Answer {
    let body = Full::new(Bytes::from(value.to_string()));
    Response::builder().status(status).body(body.boxed()).unwrap()
}

fn metadata_grpc(message: Bytes) -> Answer {
    let request = ModelMetadataRequest::decode(message).unwrap();
    if request.name != MODEL {
        return grpc(5, "there is no%20such model", &());
    }
    let (name, datatype) = ("x".to_string(), "FP32".to_string());
    let inputs = vec![TensorMetadata { name, datatype, shape: vec![-1, 4] }];
    grpc(0, "", &ModelMetadataResponse { inputs, ..Default::default() })
}

async fn infer_grpc(act: Act, request: InferRequest, memory: &Memory) -> Answer {
    match infer(act, &request, memory).await {
        Ok((echoed, range)) => {
            let output = InferOutputTensor {
                name: "y".into(),
                datatype: "FP32".into(),
                shape: vec![1, echoed.len() as i64 / 4],
                ..Default::default()
            };
            let carried = if range.is_some() { Vec::new() } else { echoed };
            let (outputs, raw_output_contents) = (vec![output], vec![carried.into()]);
            grpc(0, "", &ModelInferResponse { outputs, raw_output_contents, ..Default::default() })
        }
        Err(429) => grpc(8, "not now", &()),
        Err(504) => grpc(4, "not now", &()),
        Err(_) => grpc(13, "not now", &()),
    }
}

/// An answer whose status follows its message.
fn grpc(code: i16, status: &str, message: &impl Message) -> Answer {
    let mut trailers = HeaderMap::new();
    trailers.insert("grpc-status", code.into());
    trailers.insert("grpc-message", status.parse().unwrap());
    let message = message.encode_to_vec();
    let prefix = [&[0], &u32::try_from(message.len()).unwrap().to_be_bytes()[..]].concat();
    let body = Full::new(Bytes::from([prefix, message].concat()));
    let body = body.with_trailers(std::future::ready(Some(Ok(trailers))));
    Response::builder().header("content-type", "application/grpc").body(body.boxed()).unwrap()
}
