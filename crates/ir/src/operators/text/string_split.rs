//! StringSplit: strings cut at a delimiter.

use std::sync::Arc;

use crate::data_type::DataType;
use crate::error::OperatorError;
use crate::fact::Fact;
use crate::operator::{InputFacts, Inputs, NodeSource, Operator};
use crate::tensor::{Tensor, checked_count};
use crate::value::Value;

/// The pieces of each string along a new last axis, padded with empty ones, and how many there are.
#[derive(Clone, Debug)]
struct StringSplit {
    /// Runs of white space where not given.
    delimiter: Option<String>,
    most_splits: usize,
}

pub(super) fn build(source: &NodeSource<'_>) -> Result<Arc<dyn Operator>, OperatorError> {
    let delimiter = source.attributes.string("delimiter")?.filter(|text| !text.is_empty());
    let most_splits = source.attributes.int("maxsplit")?;
    Ok(Arc::new(StringSplit {
        delimiter: delimiter.map(str::to_string),
        most_splits: most_splits.and_then(|most| usize::try_from(most).ok()).unwrap_or(usize::MAX),
    }))
}

impl StringSplit {
    fn pieces<'a>(&self, text: &'a str) -> Vec<&'a str> {
        let most_pieces = self.most_splits.saturating_add(1);
        if let Some(delimiter) = &self.delimiter {
            return text.splitn(most_pieces, delimiter.as_str()).collect();
        }
        let mut pieces = Vec::new();
        let mut rest = text.trim_start();
        while !rest.is_empty() {
            let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
            if pieces.len() == self.most_splits {
                pieces.push(rest);
                break;
            }
            pieces.push(&rest[..end]);
            rest = rest[end..].trim_start();
        }
        pieces
    }
}

impl Operator for StringSplit {
    fn name(&self) -> &'static str {
        "StringSplit"
    }

    fn evaluate(&self, inputs: &Inputs<'_>) -> Result<Vec<Value>, OperatorError> {
        let x = inputs.tensor(0)?;
        let split: Vec<Vec<&str>> =
            x.elements::<String>()?.iter().map(|text| self.pieces(text)).collect();
        let most = split.iter().map(Vec::len).max().unwrap_or(0);
        let shape = [x.shape(), &[most]].concat();
        checked_count(&shape, DataType::String)?;
        let counts: Vec<i64> = split.iter().map(|pieces| pieces.len() as i64).collect();
        let padded = split.iter().flat_map(|pieces| {
            (0..most).map(|index| pieces.get(index).copied().unwrap_or_default().to_string())
        });
        let padded = padded.collect();
        Ok(vec![
            Tensor::from_vec(shape, padded)?.into(),
            Tensor::from_vec(x.shape().to_vec(), counts)?.into(),
        ])
    }

    fn infer(&self, inputs: &InputFacts<'_>) -> Result<Vec<Fact>, OperatorError> {
        let from = inputs.dimensions(0);
        let pieces = from.map(|from| [from, &[None]].concat());
        Ok(vec![
            Fact::partial(Some(DataType::String), pieces),
            Fact::partial(Some(DataType::I64), from.map(<[_]>::to_vec)),
        ])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_cut_as_python_cuts_them() {
        let cases: [(&str, Option<&str>, usize, &[&str]); 7] = [
            (" a  b c ", None, usize::MAX, &["a", "b", "c"]),
            (" a  b c ", None, 1, &["a", "b c "]),
            (" a", None, 0, &["a"]),
            ("", None, usize::MAX, &[]),
            ("", Some("-"), usize::MAX, &[""]),
            ("a--b", Some("-"), usize::MAX, &["a", "", "b"]),
            ("a-b-c", Some("-"), 1, &["a", "b-c"]),
        ];
        for (text, delimiter, most_splits, expected) in cases {
            let split = StringSplit { delimiter: delimiter.map(str::to_string), most_splits };
            assert_eq!(split.pieces(text), expected, "{text:?} at {delimiter:?}");
        }
    }
}
