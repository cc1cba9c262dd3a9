//! What is settled with a server before a run: what its models take, and the requests for them.

use std::sync::Arc;
use std::time::Duration;

use rand::SeedableRng;
use rand::rngs::SmallRng;
use weft_protocol::{InferRequest, InputTensor, RequestParameters, TensorSource};

use crate::client::Client;
use crate::declared::{DeclaredInput, DeclaredModel};
use crate::error::LoadError;
use crate::inputs;
use crate::messages::Messages;
use crate::model_load::ModelLoad;
use crate::prepared::{Fate, PreparedModel, REQUESTS};
use crate::session::SessionOptions;
use crate::shared_memory::{Registration, share};
use crate::target::Target;

/// All that is settled.
pub(crate) struct Prepared {
    pub(crate) models: Vec<PreparedModel>,
    /// Held for as long as requests name places in shared memory.
    pub(crate) registration: Option<Registration>,
}

/// A model and the requests that were drawn for it.
pub(crate) struct DrawnModel {
    pub(crate) name: String,
    declared: DeclaredModel,
    pub(crate) requests: Vec<InferRequest>,
}

/// Makes the requests of all models from what the server says of these, and tries one of each. In shared memory there is
/// room for the outputs of as many requests at a time as there are `slots`.
pub(crate) async fn prepare(
    target: &Arc<Target>,
    models: &[ModelLoad],
    options: &SessionOptions,
    slots: usize,
) -> Result<Prepared, LoadError> {
    let mut client = Client::connect(target.clone()).await?;
    let mut drawn = Vec::with_capacity(models.len());
    for (index, model) in (0u64..).zip(models) {
        let declared = client.describe(&model.name).await?;
        let mut random = SmallRng::seed_from_u64(options.seed.wrapping_add(index));
        let requests = (0..REQUESTS).map(|_| request_of(model, &declared.inputs, &mut random));
        let requests = requests.collect::<Result<Vec<InferRequest>, LoadError>>()?;
        drawn.push(DrawnModel { name: model.name.clone(), declared, requests });
    }
    let checks = drawn.iter().map(|model| options.check.of(model.declared.has_only_f32_outputs));
    let checks: Vec<_> = checks.collect();
    let (messages, slots, registration) = match options.shared_memory {
        true => {
            let shared = share(&mut client, drawn, slots).await?;
            (shared.messages, Some(shared.slots), Some(shared.registration))
        }
        false => (whole(&client, drawn)?, None, None),
    };
    let mut prepared = Vec::with_capacity(models.len());
    for ((model, messages), check) in models.iter().zip(messages).zip(checks) {
        let model = PreparedModel::new(model.name.clone(), messages, check, slots.clone());
        try_out(&mut client, &model).await?;
        prepared.push(model);
    }
    Ok(Prepared { models: prepared, registration })
}

/// Requests with their tensors, by model.
fn whole(client: &Client, models: Vec<DrawnModel>) -> Result<Vec<Vec<Messages>>, LoadError> {
    let encoder = client.encoder();
    let of_model = |DrawnModel { name, requests, .. }: DrawnModel| {
        let requests = requests.into_iter().map(|request| encoder.encode(&name, request));
        requests.map(|message| message.map(Messages::Whole)).collect()
    };
    models.into_iter().map(of_model).collect()
}

/// Sends one request of a model.
async fn try_out(client: &mut Client, model: &PreparedModel) -> Result<(), LoadError> {
    const SLOT: usize = 0;
    let (place, message) = model.next(SLOT);
    let reply = client.ask(&message, model.output_place()).await;
    match model.judge(place, SLOT, reply) {
        Fate::Failed(why) => {
            let what = format!("a request of model '{}'", model.name);
            Err(LoadError::Server { what, answer: why.to_string() })
        }
        Fate::Answered | Fate::Refused(_) => Ok(()),
    }
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
