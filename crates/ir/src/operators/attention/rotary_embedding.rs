//! RotaryEmbedding: turns pairs of each head's elements by angles that depend on the position.

use std::sync::Arc;

use crate::error::OperatorError;
use crate::fact::Fact;
use crate::operator::{InputFacts, Inputs, NodeSource, Operator};
use crate::tensor::Tensor;
use crate::value::Value;

use super::heads::{Heads, head_count};

#[derive(Debug)]
struct RotaryEmbedding {
    heads: Option<usize>,
    /// Whether a pair lies side by side, rather than half a head apart.
    interleaved: bool,
    /// How many of a head's elements are turned; all where absent.
    turned: Option<usize>,
}

pub(super) fn build(source: &NodeSource<'_>) -> Result<Arc<dyn Operator>, OperatorError> {
    let attributes = source.attributes;
    Ok(Arc::new(RotaryEmbedding {
        heads: head_count(attributes, "num_heads")?,
        interleaved: attributes.flag_or("interleaved", false)?,
        turned: head_count(attributes, "rotary_embedding_dim")?,
    }))
}

/// The row of the caches for every position of every batch item.
fn cache_rows(
    positions: Option<&Tensor>,
    cache: &Tensor,
    [batch, length, half]: [usize; 3],
) -> Result<Vec<usize>, OperatorError> {
    let refuse = |tensor: &Tensor, expected: &[usize]| OperatorError::Shapes {
        left: tensor.shape().to_vec(),
        right: expected.to_vec(),
    };
    let Some(positions) = positions else {
        if cache.shape() != [batch, length, half] {
            return Err(refuse(cache, &[batch, length, half]));
        }
        return Ok((0..batch * length).collect());
    };
    let &[rows, width] = cache.shape() else { return Err(refuse(cache, &[length, half])) };
    if width != half {
        return Err(refuse(cache, &[rows, half]));
    }
    if positions.shape() != [batch, length] {
        return Err(refuse(positions, &[batch, length]));
    }
    let row = |&position: &i64| {
        usize::try_from(position).ok().filter(|&row| row < rows).ok_or_else(|| {
            OperatorError::Invalid(format!("position {position} in caches of {rows} rows"))
        })
    };
    positions.to_i64s()?.iter().map(row).collect()
}

impl Operator for RotaryEmbedding {
    fn name(&self) -> &'static str {
        "RotaryEmbedding"
    }

    fn evaluate(&self, inputs: &Inputs<'_>) -> Result<Vec<Value>, OperatorError> {
        let x = inputs.tensor(0)?;
        let (cosines, sines) = (inputs.tensor(1)?, inputs.tensor(2)?);
        let mut heads = Heads::read(x, self.heads)?;
        let turned = self.turned.unwrap_or(heads.size);
        if turned > heads.size || !turned.is_multiple_of(2) {
            return Err(OperatorError::Invalid(format!(
                "{turned} turned elements in heads of {}",
                heads.size
            )));
        }
        let half = turned / 2;
        if cosines.shape() != sines.shape() {
            return Err(OperatorError::Shapes {
                left: cosines.shape().to_vec(),
                right: sines.shape().to_vec(),
            });
        }
        let rows =
            cache_rows(inputs.optional_tensor(3)?, cosines, [heads.batch, heads.length, half])?;
        let (cosines, sines) = (cosines.to_f64s()?, sines.to_f64s()?);
        let (length, size) = (heads.length, heads.size);
        for batch in 0..heads.batch {
            for head in 0..heads.heads {
                let elements = heads.head_mut(batch, head);
                for position in 0..length {
                    let token = &mut elements[position * size..][..size];
                    let row = rows[batch * length + position];
                    for pair in 0..half {
                        let (first, second) = if self.interleaved {
                            (2 * pair, 2 * pair + 1)
                        } else {
                            (pair, pair + half)
                        };
                        let (cosine, sine) = (cosines[row * half + pair], sines[row * half + pair]);
                        let (real, imaginary) = (token[first], token[second]);
                        token[first] = cosine * real - sine * imaginary;
                        token[second] = sine * real + cosine * imaginary;
                    }
                }
            }
        }
        Ok(vec![heads.into_tensor(x.data_type(), x.rank())?.into()])
    }

    fn infer(&self, inputs: &InputFacts<'_>) -> Result<Vec<Fact>, OperatorError> {
        let dimensions = inputs.dimensions(0).map(<[_]>::to_vec);
        Ok(vec![Fact::partial(inputs.data_type(0), dimensions)])
    }
}
