//! FlexAttention: attention whose scores and probabilities pass through graphs of the model's own.

use std::sync::Arc;

use crate::data_type::DataType;
use crate::error::OperatorError;
use crate::fact::Fact;
use crate::graph::Graph;
use crate::operator::{InputFacts, Inputs, NodeSource, Operator};
use crate::reference;
use crate::value::Value;

use super::heads::{Heads, group_size, score, softmax, weigh};
use super::mask::softmax_precision;

#[derive(Debug)]
struct FlexAttention {
    scale: Option<f32>,
    precision: Option<DataType>,
    score_body: Option<Arc<Graph>>,
    probability_body: Option<Arc<Graph>>,
}

pub(super) fn build(source: &NodeSource<'_>) -> Result<Arc<dyn Operator>, OperatorError> {
    let attributes = source.attributes;
    let body = |name: &str| -> Result<Option<Arc<Graph>>, OperatorError> {
        if !attributes.contains(name) {
            return Ok(None);
        }
        let graph = attributes.graph(name)?;
        if graph.inputs().len() != 1 + graph.captured() || graph.outputs().len() != 1 {
            return Err(OperatorError::Attribute {
                name: name.to_string(),
                problem: "must have one input and one output".into(),
            });
        }
        Ok(Some(graph))
    };
    Ok(Arc::new(FlexAttention {
        scale: attributes.float("scale")?,
        precision: softmax_precision(attributes)?,
        score_body: body("score_mod")?,
        probability_body: body("prob_mod")?,
    }))
}

/// Passes every row through a body, as one tensor of type `data_type`. What the body captures stands last in the
/// node's inputs.
fn modify(
    body: &Graph,
    rows: Heads,
    data_type: DataType,
    inputs: &Inputs<'_>,
) -> Result<Heads, OperatorError> {
    let captured = inputs.values();
    let captured = &captured[captured.len().saturating_sub(body.captured())..];
    let shape = vec![rows.batch, rows.heads, rows.length, rows.size];
    let mut arguments = vec![Some(Value::Tensor(rows.into_tensor(data_type, 4)?))];
    arguments.extend_from_slice(captured);
    let outputs = reference::evaluate(body, &arguments)
        .map_err(|problem| OperatorError::Invalid(format!("in '{}': {problem}", body.name)))?;
    let modified =
        outputs.into_iter().next().ok_or(OperatorError::MissingInput(0))?.into_tensor()?;
    if modified.shape() != shape {
        return Err(OperatorError::Shapes { left: modified.shape().to_vec(), right: shape });
    }
    Heads::read(&modified, None)
}

impl Operator for FlexAttention {
    fn name(&self) -> &'static str {
        "FlexAttention"
    }

    fn evaluate(&self, inputs: &Inputs<'_>) -> Result<Vec<Value>, OperatorError> {
        let q = inputs.tensor(0)?;
        let query = Heads::read(q, None)?;
        let key = Heads::read(inputs.tensor(1)?, None)?;
        let value = Heads::read(inputs.tensor(2)?, None)?;
        let group = group_size(&query, &key, &value)?;
        let precision = self.precision.unwrap_or(match q.data_type() {
            DataType::F64 => DataType::F64,
            _ => DataType::F32,
        });
        let scale = match self.scale {
            Some(scale) => scale.into(),
            None => 1.0 / (query.size as f64).sqrt(),
        };

        let (length, keys) = (query.length, key.length);
        let mut rows = Heads::zeros(query.batch, query.heads, length, keys)?;
        for batch in 0..query.batch {
            for head in 0..query.heads {
                let (queries, keyed) = (query.head(batch, head), key.head(batch, head / group));
                let scores = rows.head_mut(batch, head);
                for at in 0..length {
                    let query = &queries[at * query.size..][..query.size];
                    score(query, keyed, scale, &mut scores[at * keys..][..keys]);
                }
            }
        }
        if let Some(body) = &self.score_body {
            rows = modify(body, rows, precision, inputs)?;
        }
        for batch in 0..query.batch {
            for head in 0..query.heads {
                let scores = rows.head_mut(batch, head);
                (0..length).for_each(|at| softmax(&mut scores[at * keys..][..keys]));
            }
        }
        if let Some(body) = &self.probability_body {
            rows = modify(body, rows, precision, inputs)?;
        }
        let mut output = Heads::zeros(query.batch, query.heads, length, value.size)?;
        for batch in 0..query.batch {
            for head in 0..query.heads {
                let weights = rows.head(batch, head);
                let values = value.head(batch, head / group);
                let sums = output.head_mut(batch, head);
                for at in 0..length {
                    let sum = &mut sums[at * value.size..][..value.size];
                    weigh(&weights[at * keys..][..keys], values, sum);
                }
            }
        }
        Ok(vec![output.into_tensor(q.data_type(), 4)?.into()])
    }

    fn infer(&self, inputs: &InputFacts<'_>) -> Result<Vec<Fact>, OperatorError> {
        let at = |index: usize, axis: usize| *inputs.dimensions(index)?.get(axis)?;
        let dimensions = vec![at(0, 0), at(0, 1), at(0, 2), at(2, 3)];
        Ok(vec![Fact::partial(inputs.data_type(0), Some(dimensions))])
    }
}
