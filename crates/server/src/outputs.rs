//! Outputs in the order and the form that a request asks for.

use weft_ir::{Tensor, Value};
use weft_protocol::{InferRequest, OutputTensor, RequestedOutput};

use crate::classification::classified;
use crate::error::ServeError;
use crate::models::ModelEntry;
use crate::shared_memory::{CallerRegions, Writing};

/// What a request wants back.
#[derive(Debug)]
pub(crate) struct WantedOutputs {
    /// The model's output, and how it is wanted.
    outputs: Vec<(usize, RequestedOutput)>,
    /// How outputs are written that do not say.
    is_binary: bool,
}

impl WantedOutputs {
    /// Takes them from a request; an output that the model has not, or one that is wanted twice, is an error.
    pub(crate) fn of(model: &ModelEntry, request: &mut InferRequest) -> Result<Self, ServeError> {
        let specs = &model.signature.outputs;
        let mut outputs: Vec<(usize, RequestedOutput)> = Vec::with_capacity(specs.len());
        for wanted in std::mem::take(&mut request.outputs) {
            let Some(place) = specs.iter().position(|spec| spec.name == wanted.name) else {
                return Err(model.mismatch(format!("it has no output '{}'", wanted.name)));
            };
            if outputs.iter().any(|(other, _)| *other == place) {
                return Err(model.mismatch(format!("output '{}' is wanted twice", wanted.name)));
            }
            outputs.push((place, wanted));
        }
        if outputs.is_empty() {
            let all = specs.iter().enumerate();
            outputs.extend(all.map(|(place, spec)| {
                (place, RequestedOutput { name: spec.name.clone(), ..Default::default() })
            }));
        }
        Ok(Self { outputs, is_binary: request.parameters.binary_outputs })
    }

    /// Makes them of what the model gave.
    pub(crate) fn select(
        self,
        model: &ModelEntry,
        values: Vec<Value>,
        regions: &CallerRegions<'_>,
    ) -> Result<Selected, ServeError> {
        let mut values: Vec<Option<Value>> = values.into_iter().map(Some).collect();
        let mut selected = Vec::with_capacity(self.outputs.len());
        for (place, wanted) in self.outputs {
            let value = values.get_mut(place).and_then(Option::take);
            let tensor = value.and_then(|value| value.into_tensor().ok()).ok_or_else(|| {
                model.mismatch(format!("output '{}' is not a tensor", wanted.name))
            })?;
            selected.push(output(model, wanted, tensor, self.is_binary, regions)?);
        }
        Ok(Selected(selected))
    }
}

/// Outputs, and where those belong that are still to be written to shared memory.
pub(crate) struct Selected(Vec<(OutputTensor, Option<Writing>)>);

impl Selected {
    /// How much is to be written, but for texts.
    pub(crate) fn shared_bytes(&self) -> usize {
        let shared = self.0.iter().filter(|(_, writing)| writing.is_some());
        shared.map(|(output, _)| output.tensor.size_bytes()).sum()
    }

    pub(crate) fn write(self) -> Result<Vec<OutputTensor>, ServeError> {
        let write = |(mut output, writing): (OutputTensor, Option<Writing>)| {
            if let Some(writing) = writing {
                output.shared_memory = Some(writing.run(&output.name, &output.tensor)?);
            }
            Ok(output)
        };
        self.0.into_iter().map(write).collect()
    }
}

fn output(
    model: &ModelEntry,
    wanted: RequestedOutput,
    tensor: Tensor,
    is_binary: bool,
    regions: &CallerRegions<'_>,
) -> Result<(OutputTensor, Option<Writing>), ServeError> {
    let tensor = match wanted.classification {
        None => tensor,
        Some(count) => classified(&tensor, count, model.signature.max_batch_size > 0)
            .map_err(|error| model.mismatch(format!("output '{}': {error}", wanted.name)))?,
    };
    let writing = wanted.shared_memory.map(|range| regions.write(range)).transpose()?;
    let is_binary = wanted.is_binary.unwrap_or(is_binary);
    let output = OutputTensor { name: wanted.name, tensor, is_binary, shared_memory: None };
    Ok((output, writing))
}
