//! FusedAttention: scaled dot-product attention in one operator.

use crate::broadcast::{broadcast_indices, broadcast_shapes};
use crate::data_type::DataType;
use crate::error::OperatorError;
use crate::fact::Fact;
use crate::operator::{InputFacts, Inputs, Operator};
use crate::tensor::{Tensor, checked_count, strides};
use crate::value::Value;

/// `softmax(scale * Q K^T + mask) V` on `f32` inputs Q, K, V and a mask or none.
///
/// Q, K, V and the output are `[batch, heads, sequence, depth]`, or `[batch, sequence, heads, depth]` where
/// `sequence_major`; the mask broadcasts to `[batch, heads, query, key]`.
#[derive(Clone, Debug)]
pub struct FusedAttention {
    /// The factor of the scores.
    pub scale: f32,
    /// The order of the inner axes.
    pub sequence_major: bool,
}

/// Sizes of one attention, independent of the order of axes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AttentionSizes {
    /// Batch entries.
    pub batch: usize,
    /// Heads.
    pub heads: usize,
    /// Rows of Q.
    pub queries: usize,
    /// Rows of K and V.
    pub keys: usize,
    /// Columns of Q and K.
    pub depth: usize,
    /// Columns of V.
    pub value_depth: usize,
}

impl FusedAttention {
    fn split(&self, shape: &[usize]) -> Option<[usize; 4]> {
        match *shape {
            [batch, sequence, heads, depth] if self.sequence_major => {
                Some([batch, heads, sequence, depth])
            }
            [batch, heads, sequence, depth] => Some([batch, heads, sequence, depth]),
            _ => None,
        }
    }

    /// The sizes for given shapes of Q, K and V; `None` where they do not fit together.
    pub fn sizes(&self, query: &[usize], key: &[usize], value: &[usize]) -> Option<AttentionSizes> {
        let [batch, heads, queries, depth] = self.split(query)?;
        let [key_batch, key_heads, keys, key_depth] = self.split(key)?;
        let [value_batch, value_heads, value_keys, value_depth] = self.split(value)?;
        let fits = [key_batch, value_batch] == [batch; 2]
            && [key_heads, value_heads] == [heads; 2]
            && key_depth == depth
            && value_keys == keys;
        fits.then_some(AttentionSizes { batch, heads, queries, keys, depth, value_depth })
    }

    /// The distances between (batch, head, sequence) neighbours in a tensor of this order.
    pub fn strides(&self, heads: usize, sequence: usize, depth: usize) -> [usize; 3] {
        if self.sequence_major {
            [sequence * heads * depth, depth, heads * depth]
        } else {
            [heads * sequence * depth, sequence * depth, depth]
        }
    }

    /// The shape of the output.
    pub fn output_shape(&self, sizes: &AttentionSizes) -> Vec<usize> {
        let AttentionSizes { batch, heads, queries, value_depth, .. } = *sizes;
        if self.sequence_major {
            vec![batch, queries, heads, value_depth]
        } else {
            vec![batch, heads, queries, value_depth]
        }
    }
}

impl Operator for FusedAttention {
    fn name(&self) -> &'static str {
        "FusedAttention"
    }

    fn evaluate(&self, inputs: &Inputs<'_>) -> Result<Vec<Value>, OperatorError> {
        let (query, key, value) = (inputs.tensor(0)?, inputs.tensor(1)?, inputs.tensor(2)?);
        let sizes = self.sizes(query.shape(), key.shape(), value.shape()).ok_or_else(|| {
            OperatorError::Shapes { left: query.shape().to_vec(), right: key.shape().to_vec() }
        })?;
        let scores_shape = [sizes.batch, sizes.heads, sizes.queries, sizes.keys];
        checked_count(&scores_shape, DataType::F32)?;
        let mask = match inputs.optional_tensor(3)? {
            None => None,
            Some(mask) if broadcast_shapes(&[mask.shape(), &scores_shape])? == scores_shape => {
                Some((mask.elements::<f32>()?, broadcast_indices(mask.shape(), &scores_shape)))
            }
            Some(mask) => {
                return Err(OperatorError::Shapes {
                    left: scores_shape.to_vec(),
                    right: mask.shape().to_vec(),
                });
            }
        };
        let shape = self.output_shape(&sizes);
        let mut output = vec![0f32; checked_count(&shape, DataType::F32)?];
        let (q, k, v) =
            (query.elements::<f32>()?, key.elements::<f32>()?, value.elements::<f32>()?);
        let at =
            |[batch, head, row]: [usize; 3], [b, h, s]: [usize; 3]| b * batch + h * head + s * row;
        let query_strides = self.strides(sizes.heads, sizes.queries, sizes.depth);
        let key_strides = self.strides(sizes.heads, sizes.keys, sizes.depth);
        let value_strides = self.strides(sizes.heads, sizes.keys, sizes.value_depth);
        let output_strides = self.strides(sizes.heads, sizes.queries, sizes.value_depth);
        let score_strides = strides(&scores_shape);
        let mut scores = vec![0f32; sizes.keys];
        for b in 0..sizes.batch {
            for h in 0..sizes.heads {
                for s in 0..sizes.queries {
                    let row = &q[at(query_strides, [b, h, s])..][..sizes.depth];
                    let first = b * score_strides[0] + h * score_strides[1] + s * score_strides[2];
                    for (t, score) in scores.iter_mut().enumerate() {
                        let column = &k[at(key_strides, [b, h, t])..][..sizes.depth];
                        let product: f32 = row.iter().zip(column).map(|(a, b)| a * b).sum();
                        let bias =
                            mask.as_ref().map_or(0.0, |(mask, places)| mask[places[first + t]]);
                        *score = self.scale * product + bias;
                    }
                    softmax(&mut scores);
                    let target = &mut output[at(output_strides, [b, h, s])..][..sizes.value_depth];
                    for (t, &weight) in scores.iter().enumerate() {
                        let row = &v[at(value_strides, [b, h, t])..][..sizes.value_depth];
                        target
                            .iter_mut()
                            .zip(row)
                            .for_each(|(sum, element)| *sum += weight * element);
                    }
                }
            }
        }
        Ok(vec![Tensor::from_vec(shape, output)?.into()])
    }

    fn infer(&self, inputs: &InputFacts<'_>) -> Result<Vec<Fact>, OperatorError> {
        let sizes = match (inputs.shape(0), inputs.shape(1), inputs.shape(2)) {
            (Some(query), Some(key), Some(value)) => self.sizes(&query, &key, &value),
            _ => None,
        };
        let fact = match sizes {
            Some(sizes) => Fact::new(DataType::F32, &self.output_shape(&sizes)),
            None => Fact::partial(Some(DataType::F32), None),
        };
        Ok(vec![fact])
    }

    fn flops(&self, inputs: &InputFacts<'_>, _outputs: &[Fact]) -> u64 {
        let shapes = (inputs.shape(0), inputs.shape(1), inputs.shape(2));
        let (Some(query), Some(key), Some(value)) = shapes else { return 0 };
        let Some(sizes) = self.sizes(&query, &key, &value) else { return 0 };
        let AttentionSizes { batch, heads, queries, keys, depth, value_depth } = sizes;
        2 * (batch * heads * queries * keys * (depth + value_depth)) as u64
    }
}

fn softmax(scores: &mut [f32]) {
    let largest = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let mut sum = 0.0;
    for score in scores.iter_mut() {
        *score = (*score - largest).exp();
        sum += *score;
    }
    scores.iter_mut().for_each(|score| *score /= sum);
}
