//! TfIdfVectorizer: how often known n-grams occur in rows of tokens.

use std::collections::HashMap;
use std::sync::Arc;

use super::key::{Key, keys};
use crate::attribute::Attributes;
use crate::data_type::DataType;
use crate::error::OperatorError;
use crate::fact::Fact;
use crate::operator::{InputFacts, Inputs, NodeSource, Operator};
use crate::tensor::{Tensor, checked_count};
use crate::value::Value;

/// What an n-gram's count becomes.
#[derive(Clone, Copy, Debug)]
enum Weighting {
    /// The count itself.
    Count,
    /// The n-gram's weight, where it occurs.
    Weight,
    /// Both multiplied.
    WeightedCount,
}

/// Counts the n-grams of a pool, their tokens adjacent or with equally many skipped between them.
#[derive(Clone, Debug)]
struct TfIdfVectorizer {
    /// Each known n-gram's number.
    pool: HashMap<Vec<Key>, usize>,
    /// The place of each n-gram in the output, by number.
    places: Vec<usize>,
    weights: Vec<f32>,
    weighting: Weighting,
    shortest: usize,
    longest: usize,
    most_skipped: usize,
    width: usize,
}

fn problem(name: &str, problem: &str) -> OperatorError {
    OperatorError::Attribute { name: name.into(), problem: problem.into() }
}

pub(super) fn build(source: &NodeSource<'_>) -> Result<Arc<dyn Operator>, OperatorError> {
    let attributes = source.attributes;
    let size = |name: &str| {
        let value = attributes.int(name)?.and_then(|value| usize::try_from(value).ok());
        value.ok_or_else(|| problem(name, "must be a non-negative integer"))
    };
    let weighting = match attributes.string_or("mode", "TF")? {
        "TF" => Weighting::Count,
        "IDF" => Weighting::Weight,
        "TFIDF" => Weighting::WeightedCount,
        _ => return Err(problem("mode", "is none of TF, IDF and TFIDF")),
    };
    let places: Option<Vec<usize>> = attributes
        .ints("ngram_indexes")?
        .and_then(|given| given.iter().map(|&place| usize::try_from(place).ok()).collect());
    let places = places.ok_or_else(|| problem("ngram_indexes", "must be places in the output"))?;
    let grams = grams(attributes)?;
    if grams.len() != places.len() {
        return Err(problem("ngram_indexes", "must be as many as there are n-grams"));
    }
    let weights = attributes.floats("weights")?.map(<[f32]>::to_vec);
    let weights = weights.unwrap_or_else(|| vec![1.0; places.len()]);
    if weights.len() != places.len() {
        return Err(problem("weights", "must be as many as there are n-grams"));
    }
    let width = places.iter().max().map_or(0, |&last| last.saturating_add(1));
    Ok(Arc::new(TfIdfVectorizer {
        pool: grams.into_iter().zip(0..).collect(),
        places,
        weights,
        weighting,
        shortest: size("min_gram_length")?.max(1),
        longest: size("max_gram_length")?,
        most_skipped: size("max_skip_count")?,
        width,
    }))
}

/// The n-grams of the pool, all of one token first, then those of two, and so on.
fn grams(attributes: &Attributes) -> Result<Vec<Vec<Key>>, OperatorError> {
    let pool: Vec<Key> =
        match (attributes.ints("pool_int64s")?, attributes.strings("pool_strings")?) {
            (Some(pool), None) => pool.iter().copied().map(Key::Integer).collect(),
            (None, Some(pool)) => pool.iter().cloned().map(Key::Text).collect(),
            _ => {
                return Err(problem("pool_int64s", "must be given, or pool_strings, but not both"));
            }
        };
    let starts = attributes.ints("ngram_counts")?.unwrap_or_default();
    let mut grams = Vec::new();
    for (index, &start) in starts.iter().enumerate() {
        let end = starts.get(index + 1).map_or(Ok(pool.len()), |&end| usize::try_from(end));
        let part = usize::try_from(start).ok().zip(end.ok());
        let part = part.and_then(|(start, end)| pool.get(start..end));
        let part = part.ok_or_else(|| problem("ngram_counts", "must be places in the pool"))?;
        if !part.len().is_multiple_of(index + 1) {
            return Err(problem("ngram_counts", "cuts an n-gram"));
        }
        grams.extend(part.chunks_exact(index + 1).map(<[Key]>::to_vec));
    }
    Ok(grams)
}

impl TfIdfVectorizer {
    fn row(&self, tokens: &[Key]) -> Vec<f32> {
        let mut counts = vec![0u64; self.places.len()];
        let known_lengths = self.pool.keys().map(Vec::len).max().unwrap_or(0);
        for length in self.shortest..=self.longest.min(known_lengths).min(tokens.len()) {
            // A single token has nothing between its tokens to skip.
            let most_skipped = if length == 1 { 0 } else { self.most_skipped.min(tokens.len()) };
            for step in 1..=most_skipped + 1 {
                let reach = (length - 1) * step + 1;
                for window in tokens.windows(reach) {
                    let gram: Vec<Key> = window.iter().step_by(step).cloned().collect();
                    if let Some(&number) = self.pool.get(&gram) {
                        counts[number] += 1;
                    }
                }
            }
        }
        let mut row = vec![0f32; self.width];
        for ((&count, &weight), &place) in counts.iter().zip(&self.weights).zip(&self.places) {
            row[place] += match self.weighting {
                Weighting::Count => count as f32,
                Weighting::Weight if count > 0 => weight,
                Weighting::Weight => 0.0,
                Weighting::WeightedCount => count as f32 * weight,
            };
        }
        row
    }
}

impl Operator for TfIdfVectorizer {
    fn name(&self) -> &'static str {
        "TfIdfVectorizer"
    }

    fn evaluate(&self, inputs: &Inputs<'_>) -> Result<Vec<Value>, OperatorError> {
        let x = inputs.tensor(0)?;
        let (shape, columns) = match *x.shape() {
            [columns] => (vec![self.width], columns),
            [rows, columns] => (vec![rows, self.width], columns),
            _ => {
                let problem = format!("rows of tokens, not shape {:?}", x.shape());
                return Err(OperatorError::Invalid(problem));
            }
        };
        checked_count(&shape, DataType::F32)?;
        let tokens = keys(x)?;
        let rows: Vec<f32> = match columns {
            0 => vec![0.0; checked_count(&shape, DataType::F32)?],
            _ => tokens.chunks_exact(columns).flat_map(|row| self.row(row)).collect(),
        };
        Ok(vec![Tensor::from_vec(shape, rows)?.into()])
    }

    fn infer(&self, inputs: &InputFacts<'_>) -> Result<Vec<Fact>, OperatorError> {
        let dimensions = match inputs.dimensions(0) {
            Some([_]) => Some(vec![Some(self.width)]),
            Some([rows, _]) => Some(vec![*rows, Some(self.width)]),
            _ => None,
        };
        Ok(vec![Fact::partial(Some(DataType::F32), dimensions)])
    }
}
