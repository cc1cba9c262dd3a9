//! LinearAttention: attention as a recurrence over a matrix of state per head.

use std::sync::Arc;

use crate::error::OperatorError;
use crate::fact::Fact;
use crate::operator::{InputFacts, Inputs, NodeSource, Operator};
use crate::value::Value;

use super::heads::{Heads, group_size, head_count, weigh};

/// At every step the state fades (where `is_gated`), takes up `k v^T`, or what `v` differs from what `k` recalls
/// (where `is_delta`), and is read by `q`.
#[derive(Debug)]
struct LinearAttention {
    query_heads: usize,
    key_heads: usize,
    scale: Option<f32>,
    is_gated: bool,
    is_delta: bool,
}

pub(super) fn build(source: &NodeSource<'_>) -> Result<Arc<dyn Operator>, OperatorError> {
    let attributes = source.attributes;
    let (is_gated, is_delta) = match attributes.string_or("update_rule", "gated_delta")? {
        "linear" => (false, false),
        "gated" => (true, false),
        "delta" => (false, true),
        "gated_delta" => (true, true),
        other => {
            return Err(OperatorError::Attribute {
                name: "update_rule".into(),
                problem: format!("'{other}' is not an update rule"),
            });
        }
    };
    let heads = |name: &str| {
        head_count(attributes, name)?.ok_or_else(|| OperatorError::Attribute {
            name: name.to_string(),
            problem: "is missing".into(),
        })
    };
    Ok(Arc::new(LinearAttention {
        query_heads: heads("q_num_heads")?,
        key_heads: heads("kv_num_heads")?,
        scale: attributes.float("scale")?.filter(|&scale| scale != 0.0),
        is_gated,
        is_delta,
    }))
}

/// A gate per batch item, position and column, of which a head owns one or several.
struct Gate {
    elements: Vec<f64>,
    length: usize,
    columns: usize,
}

impl Gate {
    fn read(
        inputs: &Inputs<'_>,
        index: usize,
        [batch, length]: [usize; 2],
        columns: [usize; 2],
    ) -> Result<Self, OperatorError> {
        let tensor = inputs.tensor(index)?;
        match *tensor.shape() {
            [b, l, last] if b == batch && l == length && columns.contains(&last) => {
                Ok(Self { elements: tensor.to_f64s()?, length, columns: last })
            }
            _ => Err(OperatorError::Shapes {
                left: tensor.shape().to_vec(),
                right: vec![batch, length, columns[0]],
            }),
        }
    }

    /// The part of one row that belongs to one of `heads` heads; the whole row where all heads share one column.
    fn at(&self, batch: usize, position: usize, head: usize, heads: usize) -> &[f64] {
        let row = &self.elements[(batch * self.length + position) * self.columns..][..self.columns];
        let width = (self.columns / heads).max(1);
        if self.columns < heads { row } else { &row[head * width..][..width] }
    }
}

impl Operator for LinearAttention {
    fn name(&self) -> &'static str {
        "LinearAttention"
    }

    fn evaluate(&self, inputs: &Inputs<'_>) -> Result<Vec<Value>, OperatorError> {
        let packed = |index: usize, heads: usize| match inputs.tensor(index)? {
            tensor if tensor.rank() == 3 => Heads::read(tensor, Some(heads)),
            _ => Err(OperatorError::WrongKind { index, expected: "a tensor of rank 3" }),
        };
        let q = inputs.tensor(0)?;
        let query = packed(0, self.query_heads)?;
        let key = packed(1, self.key_heads)?;
        let value = packed(2, self.key_heads)?;
        let group = group_size(&query, &key, &value)?;
        if query.length != key.length {
            return Err(OperatorError::Invalid(format!(
                "{} queries for {} keys",
                query.length, key.length
            )));
        }
        let (batch, length, heads) = (query.batch, query.length, key.heads);
        let [height, width] = [key.size, value.size];
        let places = [batch, length];
        let decay = match self.is_gated {
            true => Some(Gate::read(inputs, 4, places, [heads, key.heads * key.size])?),
            false => None,
        };
        let beta = match self.is_delta {
            true => Some(Gate::read(inputs, 5, places, [heads, 1])?),
            false => None,
        };
        let (mut state, state_type) = match inputs.optional_tensor(3)? {
            None => (Heads::zeros(batch, heads, height, width)?, q.data_type()),
            Some(past) if past.shape() == [batch, heads, height, width] => {
                (Heads::read(past, None)?, past.data_type())
            }
            Some(past) => {
                return Err(OperatorError::Shapes {
                    left: past.shape().to_vec(),
                    right: vec![batch, heads, height, width],
                });
            }
        };
        let scale = match self.scale {
            Some(scale) => scale.into(),
            None => 1.0 / (height as f64).sqrt(),
        };

        let mut output = Heads::zeros(batch, query.heads, length, width)?;
        let mut recalled = vec![0.0; width];
        for item in 0..batch {
            for head in 0..heads {
                let state = state.head_mut(item, head);
                for position in 0..length {
                    if let Some(decay) = &decay {
                        let factors = decay.at(item, position, head, heads);
                        for row in 0..height {
                            let factor = factors[row % factors.len()].exp();
                            state[row * width..][..width].iter_mut().for_each(|e| *e *= factor);
                        }
                    }
                    let k = &key.head(item, head)[position * height..][..height];
                    let mut v = value.head(item, head)[position * width..][..width].to_vec();
                    if let Some(beta) = &beta {
                        weigh(k, state, &mut recalled);
                        let rate = beta.at(item, position, head, heads)[0];
                        v.iter_mut().zip(&recalled).for_each(|(v, old)| *v = rate * (*v - old));
                    }
                    for (row, k) in k.iter().enumerate() {
                        let row = &mut state[row * width..][..width];
                        row.iter_mut().zip(&v).for_each(|(state, v)| *state += k * v);
                    }
                    for reader in head * group..(head + 1) * group {
                        let q = &query.head(item, reader)[position * height..][..height];
                        let read = &mut output.head_mut(item, reader)[position * width..][..width];
                        weigh(q, state, read);
                        read.iter_mut().for_each(|sum| *sum *= scale);
                    }
                }
            }
        }
        let mut outputs: Vec<Value> = vec![
            output.into_tensor(q.data_type(), 3)?.into(),
            state.into_tensor(state_type, 4)?.into(),
        ];
        outputs.truncate(inputs.output_count());
        Ok(outputs)
    }

    fn infer(&self, inputs: &InputFacts<'_>) -> Result<Vec<Fact>, OperatorError> {
        let at = |index: usize, axis: usize| *inputs.dimensions(index)?.get(axis)?;
        let height = at(0, 2).map(|hidden| hidden / self.query_heads);
        let width = at(2, 2).map(|hidden| hidden / self.key_heads);
        let hidden = width.and_then(|width| width.checked_mul(self.query_heads));
        let state_type = inputs.data_type(if inputs.fact(3).is_some() { 3 } else { 0 });
        let mut facts = vec![
            Fact::partial(inputs.data_type(0), Some(vec![at(0, 0), at(0, 1), hidden])),
            Fact::partial(state_type, Some(vec![at(0, 0), Some(self.key_heads), height, width])),
        ];
        facts.truncate(inputs.output_count());
        Ok(facts)
    }
}
