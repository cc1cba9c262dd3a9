//! What the zoo says of a model before it is built.

use weft_ir::{DataType, Dimension, TensorType};

use crate::ZooOptions;
use crate::error::ZooError;
use crate::network::Network;

/// One model of the zoo.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// What [`crate::build`] knows it by.
    pub name: &'static str,
    /// The family of architectures it belongs to.
    pub family: &'static str,
    /// What it takes.
    pub takes: Takes,
    /// How many numbers a training run would learn; running statistics of normalisations do not count.
    pub parameters: u64,
    pub(crate) assemble: fn(&mut Network),
}

/// What a model takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Takes {
    /// Square colour images: `input`, f32 `[batch, 3, side, side]`.
    Images {
        /// The side the original is trained with.
        side: usize,
        /// The smallest other side that the layers allow; `None` where they allow no other.
        smallest: Option<usize>,
    },
    /// Sentences: i64 `[batch, sequence]`, under each of the names.
    Tokens {
        /// The inputs' names: the words first, then perhaps the mask of padding and the segments.
        names: &'static [&'static str],
        /// The number of different words.
        vocabulary: usize,
        /// The longest sequence.
        longest: usize,
    },
    /// Time series: `input`, f32 `[batch, sequence, features]`.
    Series {
        /// Numbers per time step.
        features: usize,
    },
}

impl Entry {
    /// The model's inputs by name, in order.
    pub fn inputs(
        &self,
        options: &ZooOptions,
    ) -> Result<Vec<(&'static str, TensorType)>, ZooError> {
        let batch = || Dimension::Symbol("batch".into());
        let sequence = || Dimension::Symbol("sequence".into());
        let tensor = |data_type, dimensions| TensorType { data_type, dimensions: Some(dimensions) };
        Ok(match self.takes {
            Takes::Images { .. } => {
                let side = Dimension::Known(self.image_side(options)?);
                let dimensions = vec![batch(), Dimension::Known(3), side.clone(), side];
                vec![("input", tensor(DataType::F32, dimensions))]
            }
            Takes::Tokens { names, .. } => names
                .iter()
                .map(|&name| (name, tensor(DataType::I64, vec![batch(), sequence()])))
                .collect(),
            Takes::Series { features } => {
                let dimensions = vec![batch(), sequence(), Dimension::Known(features)];
                vec![("input", tensor(DataType::F32, dimensions))]
            }
        })
    }

    pub(crate) fn image_side(&self, options: &ZooOptions) -> Result<usize, ZooError> {
        let Takes::Images { side, smallest } = self.takes else { return Ok(0) };
        let given = options.image_side.unwrap_or(side);
        let allowed = match smallest {
            _ if given == side => return Ok(given),
            Some(smallest) if (smallest..=LARGEST_SIDE).contains(&given) => return Ok(given),
            Some(smallest) => format!("images of side {smallest} to {LARGEST_SIDE}"),
            None => format!("images of side {side} only"),
        };
        Err(ZooError::ImageSide { model: self.name, allowed, given })
    }
}

const LARGEST_SIDE: usize = 4096;
