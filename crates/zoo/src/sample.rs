//! Inputs that a model of the zoo can be run on.

use weft_ir::{DataType, Element, Tensor, checked_count};

use crate::ZooOptions;
use crate::entry::{Entry, Takes};
use crate::error::ZooError;
use crate::weights::{Spread, draw};

/// Inputs in the order of [`Entry::inputs`], drawn from `options.seed`: normally distributed images and series; words of
/// the vocabulary, with padding at the end of every second sentence. `sequence` matters to models that take sequences only.
pub fn sample_inputs(
    entry: &Entry,
    options: &ZooOptions,
    batch: usize,
    sequence: usize,
) -> Result<Vec<Tensor>, ZooError> {
    let count = |shape: &[usize]| {
        // The widest of the types that inputs have.
        checked_count(shape, DataType::I64)
            .map_err(|source| ZooError::Inputs { model: entry.name, source })
    };
    let normal = |shape: Vec<usize>| {
        let elements = draw(options.seed, "input", count(&shape)?, Spread::Normal(1.0));
        Ok(vec![tensor(shape, elements)])
    };
    match entry.takes {
        Takes::Images { .. } => {
            let side = entry.image_side(options)?;
            normal(vec![batch, 3, side, side])
        }
        Takes::Series { features } => normal(vec![batch, sequence, features]),
        Takes::Tokens { names, vocabulary, longest } => {
            if sequence > longest {
                return Err(ZooError::Sequence { model: entry.name, longest, given: sequence });
            }
            let count = count(&[batch, sequence])?;
            let words = draw(options.seed, "input", count, Spread::Uniform(0.0, vocabulary as f32));
            let words =
                words.iter().map(|&word| (word as i64).min(vocabulary as i64 - 1)).collect();
            let place = |index: usize| (index / sequence, index % sequence);
            let mask = (0..count).map(place).map(|(sentence, place)| {
                let padding = if sentence % 2 == 1 { sequence / 4 } else { 0 };
                i64::from(place < sequence - padding)
            });
            let segments = (0..count).map(place).map(|(_, place)| i64::from(place > sequence / 2));
            let mut tensors = vec![words, mask.collect(), segments.collect()];
            tensors.truncate(names.len());
            let shape = vec![batch, sequence];
            Ok(tensors.into_iter().map(|elements| tensor(shape.clone(), elements)).collect())
        }
    }
}

fn tensor<T: Element>(shape: Vec<usize>, elements: Vec<T>) -> Tensor {
    Tensor::from_vec(shape, elements).expect("as many elements as the shape has room for")
}
