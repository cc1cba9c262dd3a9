//! Any batch on executables of a few sizes: padded up to the next size, and split past the largest.

use std::ops::Range;

use weft_ir::{Dimension, Dimensions, Graph, GraphError, OperatorError, Tensor, Value, ValueId};

use crate::rows::{joined, padded_rows, rows};
use crate::{DeviceError, Executable, LoadedModel, Partition, Urgency};

/// The most sizes that a model is prepared at.
pub const MAX_BUCKETS: usize = 32;

/// The powers of two below `largest`, and `largest` itself.
pub fn bucket_sizes(largest: usize) -> Vec<usize> {
    let powers = std::iter::successors(Some(1usize), |size| size.checked_mul(2));
    let mut sizes: Vec<usize> = powers.take_while(|&size| size < largest).collect();
    sizes.extend((largest > 0).then_some(largest));
    sizes
}

/// A part of a batch, and the bucket it runs in.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Part {
    entries: Range<usize>,
    bucket: usize,
}

/// Cuts a batch into as many full parts of the largest size as there are, and what is left in the smallest size that
/// holds it. The sizes increase, and there is at least one.
fn parts(batch: usize, sizes: &[usize]) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut start = 0;
    while start < batch {
        let left = batch - start;
        let bucket = sizes.partition_point(|&size| size < left).min(sizes.len() - 1);
        let end = start + left.min(sizes[bucket]);
        parts.push(Part { entries: start..end, bucket });
        start = end;
    }
    parts
}

/// A model with an open batch dimension, prepared at several batch sizes. The entries of its batch must not influence
/// each other, as is usual. A model without one has a single size, 1, and every run is of one entry.
pub struct Buckets {
    model: String,
    /// In increasing order.
    sizes: Vec<usize>,
    executables: Vec<Box<dyn Executable>>,
    inputs: Vec<BatchedInput>,
    outputs: Vec<BatchedOutput>,
}

struct BatchedInput {
    name: String,
    /// Its first dimension is the batch; otherwise every part gets all of it.
    is_batched: bool,
}

/// How an output follows the batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BatchedOutput {
    /// So many rows for each entry of the batch.
    RowsPerEntry(usize),
    /// The same whatever the batch.
    Constant,
}

impl Buckets {
    /// Prepares a model at each of the sizes, with its other open dimensions as `dimensions` says.
    pub fn prepare(
        partition: &dyn Partition,
        model: &dyn LoadedModel,
        sizes: &[usize],
        dimensions: &Dimensions,
    ) -> Result<Self, DeviceError> {
        let mut sizes: Vec<usize> = sizes.iter().copied().filter(|&size| size > 0).collect();
        sizes.sort_unstable();
        sizes.dedup();
        let graph = model.graph();
        let failed = |problem: String| DeviceError::Failed(problem).at(model.name(), None);
        if sizes.is_empty() || sizes.len() > MAX_BUCKETS {
            return Err(failed(format!(
                "{} batch sizes, between 1 and {MAX_BUCKETS} are possible",
                sizes.len()
            )));
        }
        let inputs: Vec<BatchedInput> =
            graph.required_inputs().map(|id| input(graph, id)).collect();
        let is_batched = inputs.iter().any(|input| input.is_batched);
        if !is_batched {
            sizes = vec![1];
        }
        let in_model = |source| DeviceError::Model {
            model: model.name().to_string(),
            source: Box::new(source),
        };
        let shapes = |batch: usize| {
            graph.input_shapes(&Dimensions { batch, ..dimensions.clone() }).map_err(in_model)
        };
        let first_dimensions =
            |batch| first_output_dimensions(graph, &shapes(batch)?).map_err(in_model);
        let outputs = if is_batched {
            let (once, twice) = (first_dimensions(sizes[0])?, first_dimensions(2 * sizes[0])?);
            let outputs = graph.outputs().iter().zip(once.into_iter().zip(twice));
            let outputs = outputs.map(|(&id, dimensions)| {
                output(sizes[0], dimensions).ok_or_else(|| {
                    failed(format!("output '{}' does not follow the batch", graph.value(id).name))
                })
            });
            outputs.collect::<Result<_, _>>()?
        } else {
            vec![BatchedOutput::Constant; graph.outputs().len()]
        };
        let executables = sizes
            .iter()
            .map(|&size| partition.prepare(model, &shapes(size)?))
            .collect::<Result<_, _>>()?;
        Ok(Self { model: model.name().to_string(), sizes, executables, inputs, outputs })
    }

    /// Whether any input has a batch.
    pub fn is_batched(&self) -> bool {
        self.inputs.iter().any(|input| input.is_batched)
    }

    /// The batch sizes that are prepared, in increasing order.
    pub fn sizes(&self) -> &[usize] {
        &self.sizes
    }

    /// The executable of the smallest size that holds a batch; the largest where none does.
    pub fn executable_for(&self, batch: usize) -> &dyn Executable {
        let bucket = self.sizes.partition_point(|&size| size < batch);
        &*self.executables[bucket.min(self.sizes.len() - 1)]
    }

    /// Runs a batch of any size, in turn.
    pub fn run(&self, inputs: &[Value]) -> Result<Vec<Value>, DeviceError> {
        self.run_parts(inputs, Urgency::InTurn)
    }

    fn run_parts(&self, inputs: &[Value], urgency: Urgency) -> Result<Vec<Value>, DeviceError> {
        let batch = self.batch(inputs)?;
        let in_model = |error: OperatorError| self.failed(&error);
        let mut results: Vec<Vec<Tensor>> = vec![Vec::new(); self.outputs.len()];
        for part in parts(batch, &self.sizes) {
            let size = self.sizes[part.bucket];
            let cut = |(input, value): (&BatchedInput, &Value)| match value {
                Value::Tensor(tensor) if input.is_batched => {
                    Ok(padded_rows(tensor, part.entries.clone(), size)?.into())
                }
                value => Ok(value.clone()),
            };
            let given = self.inputs.iter().zip(inputs).map(cut).collect::<Result<Vec<_>, _>>();
            let executable = &*self.executables[part.bucket];
            let outputs = urgency.run(executable, &given.map_err(in_model)?)?;
            for ((output, value), result) in self.outputs.iter().zip(outputs).zip(&mut results) {
                let tensor = value.into_tensor().map_err(in_model)?;
                match output {
                    BatchedOutput::RowsPerEntry(count) => {
                        let kept = rows(&tensor, 0..count * part.entries.len());
                        result.push(kept.map_err(in_model)?);
                    }
                    BatchedOutput::Constant if result.is_empty() => result.push(tensor),
                    BatchedOutput::Constant => {}
                }
            }
        }
        let join = |parts: &Vec<Tensor>| Ok(joined(&parts.iter().collect::<Vec<_>>())?.into());
        results.iter().map(join).collect::<Result<_, _>>().map_err(in_model)
    }

    /// Runs the inputs of several callers as one batch, and gives each its own outputs. Where the batch fails, each is run
    /// alone, so that one caller's inputs fail no one else.
    pub fn run_together(
        &self,
        callers: &[Vec<Value>],
        urgency: Urgency,
    ) -> Vec<Result<Vec<Value>, DeviceError>> {
        let together = match callers {
            [] | [_] => None,
            several => self.run_joined(several, urgency).ok(),
        };
        match together {
            Some(outputs) => outputs.into_iter().map(Ok).collect(),
            None => callers.iter().map(|inputs| self.run_parts(inputs, urgency)).collect(),
        }
    }

    fn run_joined(
        &self,
        callers: &[Vec<Value>],
        urgency: Urgency,
    ) -> Result<Vec<Vec<Value>>, DeviceError> {
        let outputs = self.run_parts(&self.join_inputs(callers)?, urgency)?;
        self.cut_outputs(&outputs, callers)
    }

    /// The inputs of several callers as those of one batch.
    pub fn join_inputs(&self, callers: &[Vec<Value>]) -> Result<Vec<Value>, DeviceError> {
        callers.iter().try_for_each(|inputs| self.batch(inputs).map(drop))?;
        let join = |(place, input): (usize, &BatchedInput)| {
            let values = callers.iter().map(|inputs| &inputs[place]);
            if !input.is_batched {
                let mut values = values;
                let first = values.next().cloned();
                let is_same = values.all(|value| Some(value) == first.as_ref());
                return first.filter(|_| is_same).ok_or_else(|| DeviceError::Input {
                    name: input.name.clone(),
                    problem: "differs between requests that run together".into(),
                });
            }
            let tensors: Vec<&Tensor> = values.filter_map(Value::tensor).collect();
            joined(&tensors).map(Into::into).map_err(|error| self.failed(&error))
        };
        self.inputs.iter().enumerate().map(join).collect()
    }

    /// What each of several callers has of the outputs of a batch that their inputs were joined to.
    pub fn cut_outputs(
        &self,
        outputs: &[Value],
        callers: &[Vec<Value>],
    ) -> Result<Vec<Vec<Value>>, DeviceError> {
        let mut first = 0;
        let mut answers = Vec::with_capacity(callers.len());
        for inputs in callers {
            let entries = first..first + self.batch(inputs)?;
            first = entries.end;
            let cut = |(output, value): (&BatchedOutput, &Value)| match (output, value) {
                (BatchedOutput::RowsPerEntry(each), Value::Tensor(tensor)) => {
                    let kept = rows(tensor, each * entries.start..each * entries.end);
                    kept.map(Into::into).map_err(|error| self.failed(&error))
                }
                (_, value) => Ok(value.clone()),
            };
            answers.push(self.outputs.iter().zip(outputs).map(cut).collect::<Result<_, _>>()?);
        }
        Ok(answers)
    }

    /// The batch size that all batched inputs agree on.
    fn batch(&self, inputs: &[Value]) -> Result<usize, DeviceError> {
        if inputs.len() != self.inputs.len() {
            let problem = format!("takes {} inputs, {} given", self.inputs.len(), inputs.len());
            return Err(DeviceError::Failed(problem).at(&self.model, None));
        }
        let mut batch: Option<usize> = None;
        for (input, value) in self.inputs.iter().zip(inputs).filter(|(input, _)| input.is_batched) {
            let refuse = |problem| Err(DeviceError::Input { name: input.name.clone(), problem });
            let Some(&first) = value.tensor().and_then(|tensor| tensor.shape().first()) else {
                return refuse("must be a tensor with a batch dimension".into());
            };
            match batch {
                _ if first == 0 => return refuse("has a batch of no entries".into()),
                Some(other) if other != first => {
                    return refuse(format!("has a batch of {first}, another input of {other}"));
                }
                _ => batch = Some(first),
            }
        }
        Ok(batch.unwrap_or(1))
    }

    /// The inputs of some entries of a batch.
    pub fn cut(&self, inputs: &[Value], entries: Range<usize>) -> Result<Vec<Value>, DeviceError> {
        let cut = |(input, value): (&BatchedInput, &Value)| match value {
            Value::Tensor(tensor) if input.is_batched => {
                rows(tensor, entries.clone()).map(Into::into)
            }
            value => Ok(value.clone()),
        };
        let cut = self.inputs.iter().zip(inputs).map(cut).collect::<Result<_, _>>();
        cut.map_err(|error| self.failed(&error))
    }

    /// The outputs of a batch whose entries ran in parts, given in their order.
    pub fn join(&self, parts: Vec<Vec<Value>>) -> Result<Vec<Value>, DeviceError> {
        let join = |(place, output): (usize, &BatchedOutput)| {
            let mut values = parts.iter().filter_map(|part| part.get(place));
            if *output == BatchedOutput::Constant {
                let first = values.next().cloned();
                return first.ok_or(OperatorError::Axis { axis: 0, rank: 0 });
            }
            let tensors: Vec<&Tensor> = values.filter_map(Value::tensor).collect();
            joined(&tensors).map(Into::into)
        };
        let joined = self.outputs.iter().enumerate().map(join).collect::<Result<_, _>>();
        joined.map_err(|error| self.failed(&error))
    }

    fn failed(&self, error: &OperatorError) -> DeviceError {
        DeviceError::Failed(error.to_string()).at(&self.model, None)
    }
}

fn input(graph: &Graph, id: ValueId) -> BatchedInput {
    let info = graph.value(id);
    let dimensions = info.declared.as_ref().and_then(|declared| declared.dimensions.as_ref());
    let first = dimensions.and_then(|dimensions| dimensions.first());
    let is_batched = first.is_some_and(|first| !matches!(first, Dimension::Known(_)));
    BatchedInput { name: info.name.clone(), is_batched }
}

/// The first dimension of every output, where it is known.
fn first_output_dimensions(
    graph: &Graph,
    shapes: &[Vec<usize>],
) -> Result<Vec<Option<usize>>, GraphError> {
    let specialised = graph.specialise_plainly(shapes)?;
    let first =
        |&id: &ValueId| specialised.fact(id).dimensions.as_ref()?.first().copied().flatten();
    Ok(specialised.graph().outputs().iter().map(first).collect())
}

/// How an output whose first dimension is this at `batch` entries, and that at twice as many, follows the batch.
fn output(batch: usize, (once, twice): (Option<usize>, Option<usize>)) -> Option<BatchedOutput> {
    let (once, twice) = (once?, twice?);
    if once == twice {
        return Some(BatchedOutput::Constant);
    }
    let follows = once.is_multiple_of(batch) && twice == 2 * once;
    follows.then_some(BatchedOutput::RowsPerEntry(once / batch))
}

#[cfg(test)]
mod tests;
