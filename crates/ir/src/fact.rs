//! Facts: what is known of a value before it is computed.

use std::fmt;

use crate::data_type::DataType;
use crate::tensor::{Tensor, element_count};

/// What is known of one value; everything may be unknown.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Fact {
    /// The element type.
    pub data_type: Option<DataType>,
    /// The dimensions, each of which may be unknown.
    pub dimensions: Option<Vec<Option<usize>>>,
    /// The value itself, where it does not depend on the graph's inputs.
    pub constant: Option<Tensor>,
}

/// The most dimensions that a tensor is expected to have where a model declares their number by itself.
const MAX_DECLARED_RANK: usize = 256;

/// Dimensions of which only the number is known; `None` where that is more than any tensor has, so that a hostile
/// declaration takes no memory.
pub(crate) fn unknown_dimensions(rank: usize) -> Option<Vec<Option<usize>>> {
    (rank <= MAX_DECLARED_RANK).then(|| vec![None; rank])
}

impl Fact {
    /// Nothing is known.
    pub fn unknown() -> Self {
        Self::default()
    }

    /// Type and shape are known.
    pub fn new(data_type: DataType, shape: &[usize]) -> Self {
        Self {
            data_type: Some(data_type),
            dimensions: Some(shape.iter().map(|&dimension| Some(dimension)).collect()),
            constant: None,
        }
    }

    /// A type, if known, and dimensions, if known.
    pub fn partial(data_type: Option<DataType>, dimensions: Option<Vec<Option<usize>>>) -> Self {
        Self { data_type, dimensions, constant: None }
    }

    /// The value is known.
    pub fn constant(tensor: Tensor) -> Self {
        Self { constant: Some(tensor.clone()), ..Self::new(tensor.data_type(), tensor.shape()) }
    }

    /// The rank, where known.
    pub fn rank(&self) -> Option<usize> {
        self.dimensions.as_ref().map(Vec::len)
    }

    /// The shape, where every dimension is known.
    pub fn shape(&self) -> Option<Vec<usize>> {
        self.dimensions.as_ref()?.iter().copied().collect()
    }

    /// The number of elements, where every dimension is known.
    pub fn element_count(&self) -> Option<usize> {
        element_count(&self.shape()?)
    }

    /// The size in memory, where type and shape are known.
    pub fn size_bytes(&self) -> Option<usize> {
        self.element_count()?.checked_mul(self.data_type?.size_bytes())
    }

    /// True where type and shape are both known.
    pub fn is_static(&self) -> bool {
        self.data_type.is_some() && self.shape().is_some()
    }

    /// The constant's integers, where this is a constant of integers: how shapes and axes are read.
    pub fn constant_i64s(&self) -> Option<Vec<i64>> {
        self.constant.as_ref()?.to_i64s().ok().map(|integers| integers.into_owned())
    }
}

impl fmt::Display for Fact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.data_type {
            Some(data_type) => write!(f, "{data_type}")?,
            None => f.write_str("?")?,
        }
        match &self.dimensions {
            None => f.write_str("[..]"),
            Some(dimensions) => {
                let names: Vec<String> = dimensions
                    .iter()
                    .map(|dimension| {
                        dimension.map_or("?".to_string(), |dimension| dimension.to_string())
                    })
                    .collect();
                write!(f, "[{}]", names.join(","))
            }
        }
    }
}
