//! Queries, keys and values taken apart into heads, and what attention does to one head.

use crate::data_type::DataType;
use crate::error::OperatorError;
use crate::operators::dot::dot;
use crate::tensor::{Tensor, checked_count};

/// Vectors by batch item, head and position, in that order.
pub(super) struct Heads {
    elements: Vec<f64>,
    pub(super) batch: usize,
    pub(super) heads: usize,
    pub(super) length: usize,
    pub(super) size: usize,
}

impl Heads {
    /// Reads `[batch, heads, length, size]`, or `[batch, length, heads * size]` where the number of heads is given.
    pub(super) fn read(tensor: &Tensor, heads: Option<usize>) -> Result<Self, OperatorError> {
        // An empty tensor may still name huge dimensions, and work is done for each head.
        let nominal: Vec<usize> = tensor.shape().iter().map(|&size| size.max(1)).collect();
        checked_count(&nominal, DataType::U8)?;
        let elements = tensor.to_f64s()?;
        match *tensor.shape() {
            [batch, heads, length, size] => Ok(Self { elements, batch, heads, length, size }),
            [batch, length, hidden] => {
                let heads = heads.ok_or_else(|| {
                    OperatorError::Invalid("inputs of rank 3 need the number of heads".into())
                })?;
                let size = head_size(hidden, heads)?;
                let elements = swap_middle(&elements, batch, length, heads, size);
                Ok(Self { elements, batch, heads, length, size })
            }
            _ => Err(OperatorError::Invalid(format!(
                "a tensor of shape {:?} has neither rank 3 nor rank 4",
                tensor.shape()
            ))),
        }
    }

    /// Heads of zeros; refused where they are too many.
    pub(super) fn zeros(
        batch: usize,
        heads: usize,
        length: usize,
        size: usize,
    ) -> Result<Self, OperatorError> {
        let count = checked_count(&[batch, heads, length, size], DataType::F64)?;
        Ok(Self { elements: vec![0.0; count], batch, heads, length, size })
    }

    /// The vectors of one head, position by position.
    pub(super) fn head(&self, batch: usize, head: usize) -> &[f64] {
        &self.elements[self.start(batch, head)..][..self.length * self.size]
    }

    /// The same, to be changed.
    pub(super) fn head_mut(&mut self, batch: usize, head: usize) -> &mut [f64] {
        let start = self.start(batch, head);
        &mut self.elements[start..][..self.length * self.size]
    }

    fn start(&self, batch: usize, head: usize) -> usize {
        (batch * self.heads + head) * self.length * self.size
    }

    /// These positions after those of a cache of the same heads.
    pub(super) fn after(self, past: &Tensor) -> Result<Self, OperatorError> {
        let &[batch, heads, length, size] = past.shape() else {
            return Err(OperatorError::Invalid(format!("a cache of shape {:?}", past.shape())));
        };
        if (batch, heads, size) != (self.batch, self.heads, self.size) {
            return Err(OperatorError::Shapes {
                left: past.shape().to_vec(),
                right: vec![self.batch, self.heads, self.length, self.size],
            });
        }
        let past = Self { elements: past.to_f64s()?, batch, heads, length, size };
        let mut joined = Self::zeros(batch, heads, length.saturating_add(self.length), size)?;
        for batch in 0..batch {
            for head in 0..heads {
                let (before, now) = joined.head_mut(batch, head).split_at_mut(length * size);
                before.copy_from_slice(past.head(batch, head));
                now.copy_from_slice(self.head(batch, head));
            }
        }
        Ok(joined)
    }

    /// A tensor of rank 4, or of rank 3 with the heads side by side.
    pub(super) fn into_tensor(
        self,
        data_type: DataType,
        rank: usize,
    ) -> Result<Tensor, OperatorError> {
        let Self { elements, batch, heads, length, size } = self;
        if rank == 4 {
            return Tensor::from_f64s(vec![batch, heads, length, size], data_type, elements);
        }
        let elements = swap_middle(&elements, batch, heads, length, size);
        Tensor::from_f64s(vec![batch, length, heads * size], data_type, elements)
    }
}

/// The size of one of `heads` heads that lie side by side in `hidden` elements.
pub(super) fn head_size(hidden: usize, heads: usize) -> Result<usize, OperatorError> {
    if heads == 0 || !hidden.is_multiple_of(heads) {
        return Err(OperatorError::Invalid(format!("{hidden} elements do not make {heads} heads")));
    }
    Ok(hidden / heads)
}

/// A positive number of heads that a node's attribute gives.
pub(super) fn head_count(
    attributes: &crate::attribute::Attributes,
    name: &str,
) -> Result<Option<usize>, OperatorError> {
    match attributes.int(name)? {
        None | Some(0) => Ok(None),
        Some(count) => usize::try_from(count).map(Some).map_err(|_| OperatorError::Attribute {
            name: name.to_string(),
            problem: format!("{count} is negative"),
        }),
    }
}

/// `[a, b, c, d]` as `[a, c, b, d]`.
fn swap_middle(elements: &[f64], a: usize, b: usize, c: usize, d: usize) -> Vec<f64> {
    let mut swapped = Vec::with_capacity(elements.len());
    if elements.is_empty() {
        return swapped;
    }
    for i in 0..a {
        for k in 0..c {
            for j in 0..b {
                swapped.extend_from_slice(&elements[((i * b + j) * c + k) * d..][..d]);
            }
        }
    }
    swapped
}

/// How many query heads share each key head.
pub(super) fn group_size(
    query: &Heads,
    key: &Heads,
    value: &Heads,
) -> Result<usize, OperatorError> {
    let fits = query.batch == key.batch
        && key.batch == value.batch
        && key.heads == value.heads
        && key.length == value.length
        && query.size == key.size
        && key.heads > 0
        && query.heads.is_multiple_of(key.heads);
    if fits {
        return Ok(query.heads / key.heads);
    }
    let shape = |heads: &Heads| [heads.batch, heads.heads, heads.length, heads.size];
    Err(OperatorError::Invalid(format!(
        "queries {:?}, keys {:?} and values {:?} do not fit together",
        shape(query),
        shape(key),
        shape(value)
    )))
}

/// One query's product with every key, scaled.
pub(super) fn score(query: &[f64], keys: &[f64], scale: f64, row: &mut [f64]) {
    for (index, score) in row.iter_mut().enumerate() {
        *score = scale * dot(query, &keys[index * query.len()..][..query.len()]);
    }
}

/// The row's exponentials as parts of their sum.
pub(super) fn softmax(row: &mut [f64]) {
    let greatest = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    row.iter_mut().for_each(|score| *score = (*score - greatest).exp());
    let sum: f64 = row.iter().sum();
    row.iter_mut().for_each(|score| *score /= sum);
}

/// The sum of the values, each times its weight.
pub(super) fn weigh(weights: &[f64], values: &[f64], sum: &mut [f64]) {
    sum.fill(0.0);
    for (index, weight) in weights.iter().enumerate() {
        let value = &values[index * sum.len()..][..sum.len()];
        sum.iter_mut().zip(value).for_each(|(sum, value)| *sum += weight * value);
    }
}
