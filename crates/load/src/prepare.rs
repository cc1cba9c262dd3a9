//! What is settled with a server before a run: what its models take, and the requests for them.

use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use rand::SeedableRng;
use rand::rngs::SmallRng;
use weft_protocol::{InferRequest, InputTensor, RequestParameters, TensorSource};

use crate::declared::{DeclaredInput, DeclaredModel};
use crate::error::LoadError;
use crate::model_load::ModelLoad;
use crate::prepared::{Fate, PreparedModel, REQUESTS};
use crate::reply::Reply;
use crate::session::SessionOptions;
use crate::target::{Protocol, Target};
use crate::{grpc, http, inputs};

/// A server that can be asked, whatever the protocol.
enum Client {
    Http(http::Client),
    Grpc(grpc::Client),
}

impl Client {
    async fn connect(target: Rc<Target>) -> Result<Self, LoadError> {
        Ok(match target.protocol {
            Protocol::Http => Client::Http(http::Client::connect(target).await?),
            Protocol::Grpc => Client::Grpc(grpc::Client::connect(target).await?),
        })
    }

    async fn describe(&mut self, model: &str) -> Result<DeclaredModel, LoadError> {
        match self {
            Client::Http(client) => client.describe(model).await,
            Client::Grpc(client) => client.describe(model).await,
        }
    }

    fn encode(&self, model: &str, request: InferRequest) -> Result<Bytes, LoadError> {
        match self {
            Client::Http(client) => client.encode(model, request),
            Client::Grpc(client) => client.encode(model, request),
        }
    }

    async fn ask(&mut self, message: &Bytes) -> Reply<'_> {
        match self {
            Client::Http(client) => client.ask(message).await,
            Client::Grpc(client) => client.ask(message).await,
        }
    }
}

/// Makes the requests of all models from what the server says of these, and tries one of each.
pub(crate) async fn prepare(
    target: &Rc<Target>,
    models: &[ModelLoad],
    options: &SessionOptions,
) -> Result<Vec<PreparedModel>, LoadError> {
    let mut client = Client::connect(target.clone()).await?;
    let mut prepared = Vec::with_capacity(models.len());
    for (index, model) in (0u64..).zip(models) {
        let declared = client.describe(&model.name).await?;
        let mut random = SmallRng::seed_from_u64(options.seed.wrapping_add(index));
        let messages = (0..REQUESTS).map(|_| {
            let request = request_of(model, &declared.inputs, &mut random)?;
            client.encode(&model.name, request)
        });
        let messages = messages.collect::<Result<Vec<Bytes>, LoadError>>()?;
        let check = options.check.of(declared.has_only_f32_outputs);
        let model = PreparedModel::new(model.name.clone(), messages, check);
        let (place, message) = model.next();
        if let Fate::Failed(why) = model.judge(place, client.ask(&message).await) {
            let what = format!("a request of model '{}'", model.name);
            return Err(LoadError::Server { what, answer: why.to_string() });
        }
        prepared.push(model);
    }
    Ok(prepared)
}

/// A request with inputs that are drawn.
fn request_of(
    model: &ModelLoad,
    declared: &[DeclaredInput],
    random: &mut SmallRng,
) -> Result<InferRequest, LoadError> {
    let input = |input: &DeclaredInput| {
        let shape = model.dimensions.close(&input.name, &input.shape);
        let drawn = inputs::draw(&input.name, input.data_type, shape.clone(), random);
        let tensor = drawn.map_err(|problem| LoadError::Model {
            model: model.name.clone(),
            problem: format!("input '{}': {problem}", input.name),
        })?;
        Ok(InputTensor {
            name: input.name.clone(),
            data_type: input.data_type,
            shape,
            data: TensorSource::Tensor(tensor),
        })
    };
    let inputs = declared.iter().map(input).collect::<Result<_, LoadError>>()?;
    let timeout = model.timeout.map(|timeout| Duration::from_nanos(timeout.nanos()));
    let parameters = RequestParameters { timeout, ..Default::default() };
    Ok(InferRequest { id: String::new(), parameters, inputs, outputs: Vec::new() })
}
