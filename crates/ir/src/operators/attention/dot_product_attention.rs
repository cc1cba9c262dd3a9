//! Attention: scaled dot-product attention over one or more heads, with masks and a cache of keys and values.

use std::sync::Arc;

use crate::data_type::DataType;
use crate::error::OperatorError;
use crate::fact::Fact;
use crate::operator::{InputFacts, Inputs, NodeSource, Operator};
use crate::tensor::{Tensor, checked_count};
use crate::value::Value;

use super::heads::{Heads, group_size, head_count, head_size, score, softmax, weigh};
use super::mask::{Mask, softmax_precision};

/// Computes in `f64`, which every `softmax_precision` that a node may ask for is no finer than.
#[derive(Debug)]
struct Attention {
    query_heads: Option<usize>,
    key_heads: Option<usize>,
    scale: Option<f32>,
    softcap: f64,
    is_causal: bool,
    /// What the fourth output holds.
    shown: Stage,
    /// Whether a mask may end before the keys do.
    pads_mask: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Stage {
    Product,
    Capped,
    Masked,
    Softmax,
}

pub(super) fn build(source: &NodeSource<'_>) -> Result<Arc<dyn Operator>, OperatorError> {
    let attributes = source.attributes;
    softmax_precision(attributes)?;
    let shown = match attributes.int_or("qk_matmul_output_mode", 0)? {
        0 => Stage::Product,
        1 => Stage::Capped,
        2 => Stage::Masked,
        3 => Stage::Softmax,
        other => {
            return Err(OperatorError::Attribute {
                name: "qk_matmul_output_mode".into(),
                problem: format!("{other} is not a mode"),
            });
        }
    };
    Ok(Arc::new(Attention {
        query_heads: head_count(attributes, "q_num_heads")?,
        key_heads: head_count(attributes, "kv_num_heads")?,
        scale: attributes.float("scale")?,
        softcap: attributes.float_or("softcap", 0.0)?.into(),
        is_causal: attributes.flag_or("is_causal", false)?,
        shown,
        pads_mask: source.opset >= 24,
    }))
}

fn visible_lengths(
    given: Option<&Tensor>,
    batch: usize,
    keys: usize,
) -> Result<Vec<usize>, OperatorError> {
    let Some(given) = given else { return Ok(vec![keys; batch]) };
    if given.shape() != [batch] {
        return Err(OperatorError::Shapes { left: given.shape().to_vec(), right: vec![batch] });
    }
    // A length past the end hides nothing, a negative one everything.
    let clamped = |&length: &i64| usize::try_from(length.max(0)).unwrap_or(keys).min(keys);
    Ok(given.to_i64s()?.iter().map(clamped).collect())
}

impl Operator for Attention {
    fn name(&self) -> &'static str {
        "Attention"
    }

    fn evaluate(&self, inputs: &Inputs<'_>) -> Result<Vec<Value>, OperatorError> {
        let (q, k, v) = (inputs.tensor(0)?, inputs.tensor(1)?, inputs.tensor(2)?);
        let query = Heads::read(q, self.query_heads)?;
        let mut key = Heads::read(k, self.key_heads)?;
        let mut value = Heads::read(v, self.key_heads)?;
        let new_keys = key.length;
        if let Some(past) = inputs.optional_tensor(4)? {
            key = key.after(past)?;
        }
        if let Some(past) = inputs.optional_tensor(5)? {
            value = value.after(past)?;
        }
        let past_keys = key.length - new_keys;
        let group = group_size(&query, &key, &value)?;
        let target = [query.batch, query.heads, query.length, key.length];
        let mask = match inputs.optional_tensor(3)? {
            Some(mask) => Some(Mask::read(mask, target, self.pads_mask)?),
            None => None,
        };
        let visible = visible_lengths(inputs.optional_tensor(6)?, query.batch, key.length)?;
        let scale = match self.scale {
            Some(scale) => scale.into(),
            None => 1.0 / (query.size as f64).sqrt(),
        };

        let shows = inputs.output_count() > 3;
        let shown_length = if shows { query.length } else { 0 };
        let mut shown = Heads::zeros(query.batch, query.heads, shown_length, key.length)?;
        let mut output = Heads::zeros(query.batch, query.heads, query.length, value.size)?;
        let mut row = vec![0.0; checked_count(&[key.length], DataType::F64)?];
        for (batch, &visible) in visible.iter().enumerate() {
            for head in 0..query.heads {
                let (queries, keys) = (query.head(batch, head), key.head(batch, head / group));
                let values = value.head(batch, head / group);
                for at in 0..query.length {
                    let mut show = |stage: Stage, row: &[f64]| {
                        if shows && stage == self.shown {
                            shown.head_mut(batch, head)[at * row.len()..][..row.len()]
                                .copy_from_slice(row);
                        }
                    };
                    score(&queries[at * query.size..][..query.size], keys, scale, &mut row);
                    show(Stage::Product, &row);
                    if self.softcap > 0.0 {
                        let cap = |score: &mut f64| {
                            *score = self.softcap * (*score / self.softcap).tanh()
                        };
                        row.iter_mut().for_each(cap);
                    }
                    show(Stage::Capped, &row);
                    if let Some(mask) = &mask {
                        mask.add(batch, head, at, &mut row);
                    }
                    let end = if self.is_causal { past_keys + at + 1 } else { key.length };
                    let end = end.min(visible);
                    row[end..].fill(f64::NEG_INFINITY);
                    show(Stage::Masked, &row);
                    softmax(&mut row);
                    show(Stage::Softmax, &row);
                    let sum = &mut output.head_mut(batch, head)[at * value.size..][..value.size];
                    weigh(&row, values, sum);
                }
            }
        }
        let mut outputs = vec![
            output.into_tensor(q.data_type(), q.rank())?.into(),
            key.into_tensor(k.data_type(), 4)?.into(),
            value.into_tensor(v.data_type(), 4)?.into(),
        ];
        if shows {
            outputs.push(shown.into_tensor(q.data_type(), 4)?.into());
        }
        outputs.truncate(inputs.output_count());
        Ok(outputs)
    }

    fn infer(&self, inputs: &InputFacts<'_>) -> Result<Vec<Fact>, OperatorError> {
        let query = dimensions(inputs, 0, self.query_heads)?;
        let key = dimensions(inputs, 1, self.key_heads)?;
        let value = dimensions(inputs, 2, self.key_heads)?;
        let past = |index: usize| match inputs.fact(index) {
            None => Some(0),
            Some(_) => *inputs.dimensions(index)?.get(2)?,
        };
        let total = |new: Option<usize>, index: usize| new?.checked_add(past(index)?);
        let keys = total(key[2], 4);
        let [batch, heads, length, _] = query;
        let output = match inputs.dimensions(0).map(<[_]>::len) {
            Some(4) => Some(vec![batch, heads, length, value[3]]),
            Some(3) => {
                let hidden = heads.zip(value[3]).and_then(|(heads, size)| heads.checked_mul(size));
                Some(vec![batch, length, hidden])
            }
            _ => None,
        };
        let mut facts = vec![
            Fact::partial(inputs.data_type(0), output),
            Fact::partial(inputs.data_type(1), Some(vec![key[0], key[1], keys, key[3]])),
            Fact::partial(
                inputs.data_type(2),
                Some(vec![value[0], value[1], total(value[2], 5), value[3]]),
            ),
            Fact::partial(inputs.data_type(0), Some(vec![batch, heads, length, keys])),
        ];
        facts.truncate(inputs.output_count());
        Ok(facts)
    }

    fn flops(&self, inputs: &InputFacts<'_>, _outputs: &[Fact]) -> u64 {
        let counted = || {
            let query = dimensions(inputs, 0, self.query_heads).ok()?;
            let key = dimensions(inputs, 1, self.key_heads).ok()?;
            let value = dimensions(inputs, 2, self.key_heads).ok()?;
            let past = inputs.dimensions(4).map_or(Some(0), |past| *past.get(2)?)?;
            let sizes = [
                query[0]?,
                query[1]?,
                query[2]?,
                key[2]?.saturating_add(past),
                key[3]?.saturating_add(value[3]?),
            ];
            Some(sizes.iter().fold(2u64, |product, &size| product.saturating_mul(size as u64)))
        };
        counted().unwrap_or(0)
    }
}

/// An input's batch, heads, length and head size, as far as known.
fn dimensions(
    inputs: &InputFacts<'_>,
    index: usize,
    heads: Option<usize>,
) -> Result<[Option<usize>; 4], OperatorError> {
    Ok(match inputs.dimensions(index) {
        Some(&[batch, heads, length, size]) => [batch, heads, length, size],
        Some(&[batch, length, hidden]) => {
            let size = match (hidden, heads) {
                (Some(hidden), Some(heads)) => Some(head_size(hidden, heads)?),
                _ => None,
            };
            [batch, heads, length, size]
        }
        _ => [None; 4],
    })
}
