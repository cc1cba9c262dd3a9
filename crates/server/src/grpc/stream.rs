//! Inferences over one stream: each is answered as soon as it is ready, whatever came before it.

use std::sync::Arc;
use std::time::Instant;

use ::http::HeaderMap;
use tokio::sync::mpsc::{Sender, channel};
use tokio::task::JoinSet;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Status, Streaming};
use weft_protocol::grpc::inference::infer_parameter::ParameterChoice;
use weft_protocol::grpc::inference::{
    InferParameter, ModelInferRequest, ModelInferResponse, ModelStreamInferResponse,
};

use super::service::Inference;
use crate::error::ServeError;
use crate::spans::TraceParent;

/// Requests of one stream that are worked on at once; the client is not read from while there are more.
const MAX_IN_FLIGHT: usize = 256;

/// Answers that wait to be sent; more are not worked on before the client reads.
const MAX_UNSENT: usize = 64;

/// Tells clients that wait for the last answer to a request that this is it: every request has one.
const FINAL_RESPONSE: &str = "triton_final_response";

type Answers = Sender<Result<ModelStreamInferResponse, Status>>;

/// The answers to a stream of requests.
pub(super) fn answers(
    service: Inference,
    credentials: HeaderMap,
    requests: Streaming<ModelInferRequest>,
    parent: Option<TraceParent>,
) -> ReceiverStream<Result<ModelStreamInferResponse, Status>> {
    let (answers, received) = channel(MAX_UNSENT);
    tokio::spawn(async move {
        tokio::select! {
            // Whoever hung up wants no more answers: what is worked on is dropped, and with it cancelled.
            () = answers.closed() => {}
            () = work(service, Arc::new(credentials), requests, parent, &answers) => {}
        }
    });
    ReceiverStream::new(received)
}

async fn work(
    service: Inference,
    credentials: Arc<HeaderMap>,
    mut requests: Streaming<ModelInferRequest>,
    parent: Option<TraceParent>,
    answers: &Answers,
) {
    let mut running = JoinSet::new();
    loop {
        tokio::select! {
            request = requests.message(), if running.len() < MAX_IN_FLIGHT => match request {
                Ok(Some(request)) => {
                    let credentials = credentials.clone();
                    let asked = (request, parent);
                    running.spawn(answer(service.clone(), credentials, asked, answers.clone()));
                }
                Ok(None) => break,
                Err(status) => {
                    let _ = answers.send(Err(status)).await;
                    break;
                }
            },
            Some(_) = running.join_next() => {}
        }
    }
    while running.join_next().await.is_some() {}
}

/// One inference of a stream. A stream may outlive its key, so who sends it is found out with every request.
async fn infer(
    service: &Inference,
    credentials: &HeaderMap,
    request: ModelInferRequest,
    parent: Option<TraceParent>,
) -> Result<ModelInferResponse, ServeError> {
    let serving = &service.serving;
    let let_in = serving.tenants.caller(credentials).and_then(|caller| {
        let permit = caller.admit(Instant::now())?;
        Ok((caller, permit))
    });
    let (caller, _permit) = let_in.inspect_err(|error| serving.passage(parent).end(Some(error)))?;
    service.infer(&caller, request, None, parent).await
}

/// Answers one request; what is wrong with it is told in the answer, and the stream goes on.
async fn answer(
    service: Inference,
    credentials: Arc<HeaderMap>,
    (request, parent): (ModelInferRequest, Option<TraceParent>),
    answers: Answers,
) {
    let (id, model_name) = (request.id.clone(), request.model_name.clone());
    let message = match infer(&service, &credentials, request, parent).await {
        Ok(mut response) => {
            let is_last =
                InferParameter { parameter_choice: Some(ParameterChoice::BoolParam(true)) };
            response.parameters.insert(FINAL_RESPONSE.to_string(), is_last);
            ModelStreamInferResponse {
                error_message: String::new(),
                infer_response: Some(response),
            }
        }
        Err(error) => ModelStreamInferResponse {
            error_message: error.to_string(),
            infer_response: Some(ModelInferResponse { id, model_name, ..Default::default() }),
        },
    };
    let _ = answers.send(Ok(message)).await;
}
