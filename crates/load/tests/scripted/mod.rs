//! A server of KServe v2 on a thread of its own, whose one model echoes its input when a script says so.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{HeaderMap, Method, Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use prost::Message;
use tokio::net::TcpListener;
use tokio::runtime::Builder;
use weft_protocol::grpc::inference::model_metadata_response::TensorMetadata;
use weft_protocol::grpc::inference::{
    ModelInferRequest, ModelInferResponse, ModelMetadataRequest, ModelMetadataResponse,
};

/// The model's name, and the size of its one input and output.
pub(crate) const MODEL: &str = "echo";
const ECHOED_BYTES: usize = 16;

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
    /// Answers in JSON, although it could do otherwise.
    Text,
    /// Never answers.
    Ignore,
}

/// A server on its way.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    connections: Arc<AtomicUsize>,
}

impl Server {
    /// Starts a server; `script` says what it does with the request of a number, counted from 0.
    pub(crate) fn start(script: impl Fn(usize) -> Act + Send + Sync + 'static) -> Self {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        let connections = Arc::new(AtomicUsize::new(0));
        let counted = connections.clone();
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        std::thread::spawn(move || {
            let script: Script = Arc::new(script);
            runtime.block_on(accept(listener, script, counted));
        });
        Self { address, connections }
    }

    /// How many connections were made to it.
    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }
}

type Answer = Response<BoxBody<Bytes, Infallible>>;
type Script = Arc<dyn Fn(usize) -> Act + Send + Sync>;

async fn accept(listener: std::net::TcpListener, script: Script, connections: Arc<AtomicUsize>) {
    let listener = TcpListener::from_std(listener).unwrap();
    let asked = Arc::new(AtomicUsize::new(0));
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        stream.set_nodelay(true).unwrap();
        connections.fetch_add(1, Ordering::Relaxed);
        let (script, asked) = (script.clone(), asked.clone());
        tokio::spawn(async move {
            let answer = service_fn(move |request| answer(request, script.clone(), asked.clone()));
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
) -> Result<Answer, Infallible> {
    let is_post = request.method() == Method::POST;
    let path = request.uri().path().to_string();
    let body = request.into_body().collect().await.map(|body| body.to_bytes());
    let body = body.unwrap_or_default();
    let model = format!("/v2/models/{MODEL}");
    let act = || script(asked.fetch_add(1, Ordering::Relaxed));
    Ok(match path.as_str() {
        "/v2" => {
            json(200, r#"{"name":"scripted","version":"1","extensions":["binary_tensor_data"]}"#)
        }
        path if path == model => json(
            200,
            r#"{"name":"echo","inputs":[{"name":"x","datatype":"FP32","shape":[-1,4]}],"outputs":[]}"#,
        ),
        path if is_post && path == format!("{model}/infer") => infer_http(act(), &body).await,
        "/inference.GRPCInferenceService/ModelMetadata" => metadata_grpc(body.slice(5..)),
        "/inference.GRPCInferenceService/ModelInfer" => infer_grpc(act(), body.slice(5..)).await,
        _ => json(404, r#"{"error":"there is no such model"}"#),
    })
}

/// What is answered: outputs, or a status of HTTP.
async fn infer(act: Act, input: &[u8]) -> Result<Vec<u8>, u16> {
    let mut echoed = input.to_vec();
    match act {
        Act::Answer(after) if after > Duration::ZERO => tokio::time::sleep(after).await,
        Act::Answer(_) | Act::Text => {}
        Act::Stall(time) => std::thread::sleep(time),
        Act::Garble => echoed[3] ^= 1,
        Act::Shorten => echoed.truncate(8),
        Act::Refuse(status) => return Err(status),
        Act::Ignore => std::future::pending().await,
    }
    Ok(echoed)
}

async fn infer_http(act: Act, body: &Bytes) -> Answer {
    let echoed = match infer(act, &body[body.len() - ECHOED_BYTES..]).await {
        Ok(echoed) => echoed,
        Err(status) => return json(status, r#"{"error":"not now"}"#),
    };
    let tensor = r#""name":"y","datatype":"FP32""#;
    let answer = |output: String| {
        format!(r#"{{"model_name":"echo","model_version":"1","outputs":[{{{tensor},{output}}}]}}"#)
    };
    if matches!(act, Act::Text) {
        return json(200, &answer(r#""shape":[1,4],"data":[1,2,3,4]"#.into()));
    }
    let size = echoed.len();
    let output = format!(r#""shape":[1,{}],"parameters":{{"binary_data_size":{size}}}"#, size / 4);
    let header = answer(output);
    let body = Full::new(Bytes::from([header.as_bytes(), &echoed].concat()));
    Response::builder()
        .header("Inference-Header-Content-Length", header.len())
        .body(body.boxed())
        .unwrap()
}

fn json(status: u16, text: &str) -> Answer {
    let body = Full::new(Bytes::from(text.to_string()));
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

async fn infer_grpc(act: Act, message: Bytes) -> Answer {
    let request = ModelInferRequest::decode(message).unwrap();
    match infer(act, &request.raw_input_contents[0]).await {
        Ok(echoed) => {
            let raw_output_contents = vec![echoed.into()];
            grpc(0, "", &ModelInferResponse { raw_output_contents, ..Default::default() })
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
