//! Puts the requests of all models into shared memory, with room for the outputs behind them.

use std::sync::Arc;

use weft_ir::DataType;
use weft_protocol::{
    InferRequest, OutputTensor, RegionRange, RequestedOutput, TensorSource, raw_bytes,
    raw_size_bytes,
};

use super::region::Region;
use super::{ALIGNMENT_BYTES, EXTENSION, OutputSlots, Registration};
use crate::client::Client;
use crate::error::LoadError;
use crate::messages::Messages;
use crate::prepare::DrawnModel;

/// The highest priority that asks for no objective.
const BEST_EFFORT: u64 = 2;

/// What all requests in shared memory have.
pub(crate) struct Shared {
    /// By model, by request.
    pub(crate) messages: Vec<Vec<Messages>>,
    pub(crate) slots: OutputSlots,
    pub(crate) registration: Registration,
}

/// Where in the region a tensor is.
type Place = (usize, usize);

/// Shares the requests of all models with the server, and has outputs written to so many slots.
pub(crate) async fn share(
    client: &mut Client,
    models: Vec<DrawnModel>,
    slots: usize,
) -> Result<Shared, LoadError> {
    if !client.extensions().await?.iter().any(|extension| extension == EXTENSION) {
        return Err(failed(format!("the server does not offer the extension '{EXTENSION}'")));
    }
    let mut outputs = Vec::with_capacity(models.len());
    for model in &models {
        outputs.push(outputs_of(client, model).await?);
    }
    let mut end_bytes = 0;
    let places: Vec<Vec<Vec<Place>>> =
        models.iter().map(|model| input_places(&model.requests, &mut end_bytes)).collect();
    let of_model = |outputs: &Vec<(String, usize)>| outputs.iter().map(|(_, size)| size).sum();
    let slot_bytes: usize = outputs.iter().map(of_model).max().unwrap_or(0);
    let slot_bytes = slot_bytes.max(1).next_multiple_of(ALIGNMENT_BYTES);
    let size_bytes = (end_bytes + slots * slot_bytes) as u64;
    let (region, name) = Region::create(size_bytes).map_err(|error| {
        failed(format!("{size_bytes} bytes for {slots} requests at a time: {error}"))
    })?;
    let slots = OutputSlots::new(Arc::new(region), end_bytes, slot_bytes, slots);
    for (model, places) in models.iter().zip(&places) {
        write_inputs(&slots, model, places)?;
    }
    let registration = Registration::new(client, &name, size_bytes).await?;
    // The server has it open, so it needs no name any more, and none is left behind whatever ends this process.
    drop(name);
    let encoder = Arc::new(client.encoder());
    let mut messages = Vec::with_capacity(models.len());
    for ((model, places), outputs) in models.into_iter().zip(places).zip(outputs) {
        let requests = model.requests.into_iter().zip(places).map(|(request, places)| {
            let request = in_region(request, &places, &outputs, registration.name());
            Messages::shared(encoder.clone(), &model.name, request, slots.clone())
        });
        messages.push(requests.collect::<Result<Vec<_>, _>>()?);
    }
    Ok(Shared { messages, slots, registration })
}

/// The outputs of a model and their sizes, as an answer to its first request has them.
async fn outputs_of(
    client: &mut Client,
    model: &DrawnModel,
) -> Result<Vec<(String, usize)>, LoadError> {
    let mut request = model.requests[0].clone();
    // It is not part of the load: what it takes to find out is waited for, and no objective refuses it.
    request.parameters.timeout = None;
    request.parameters.priority = BEST_EFFORT;
    let message = client.encoder().encode(&model.name, request)?;
    let outputs = client.infer(&message).await.map_err(|answer| LoadError::Server {
        what: format!("a request of model '{}'", model.name),
        answer,
    })?;
    let output = |OutputTensor { name, tensor, .. }: OutputTensor| match tensor.data_type() {
        DataType::String => Err(LoadError::Model {
            model: model.name.clone(),
            problem: format!("output '{name}' is text, for which no room can be set aside"),
        }),
        _ => Ok((name, raw_size_bytes(&tensor))),
    };
    outputs.into_iter().map(output).collect()
}

/// Gives each input of each request a place.
fn input_places(requests: &[InferRequest], end_bytes: &mut usize) -> Vec<Vec<Place>> {
    let mut place = |input: &weft_protocol::InputTensor| {
        let size_bytes = match &input.data {
            TensorSource::Tensor(tensor) => raw_size_bytes(tensor),
            TensorSource::SharedMemory(range) => range.size_bytes,
        };
        let offset_bytes = *end_bytes;
        *end_bytes = (offset_bytes + size_bytes).next_multiple_of(ALIGNMENT_BYTES);
        (offset_bytes, size_bytes)
    };
    requests.iter().map(|request| request.inputs.iter().map(&mut place).collect()).collect()
}

fn write_inputs(
    slots: &OutputSlots,
    model: &DrawnModel,
    places: &[Vec<Place>],
) -> Result<(), LoadError> {
    for (request, places) in model.requests.iter().zip(places) {
        for (input, &(offset_bytes, _)) in request.inputs.iter().zip(places) {
            let TensorSource::Tensor(tensor) = &input.data else { continue };
            let bytes = raw_bytes(tensor).map_err(failed)?;
            let written = slots.region().write(offset_bytes, &bytes);
            written.map_err(|error| failed(error.to_string()))?;
        }
    }
    Ok(())
}

/// A request whose inputs are in a region, and whose outputs go there as if the slot began with the region.
fn in_region(
    mut request: InferRequest,
    places: &[Place],
    outputs: &[(String, usize)],
    region: &str,
) -> InferRequest {
    let range = |(offset_bytes, size_bytes)| RegionRange {
        region: region.to_string(),
        offset_bytes,
        size_bytes,
    };
    for (input, &place) in request.inputs.iter_mut().zip(places) {
        input.data = TensorSource::SharedMemory(range(place));
    }
    let mut offset_bytes = 0;
    let output = |(name, size_bytes): &(String, usize)| {
        let place = (offset_bytes, *size_bytes);
        offset_bytes += size_bytes;
        let shared_memory = Some(range(place));
        RequestedOutput { name: name.clone(), shared_memory, ..Default::default() }
    };
    request.outputs = outputs.iter().map(output).collect();
    request
}

fn failed(problem: String) -> LoadError {
    LoadError::SharedMemory { problem }
}
