//! StringNormalizer: words in upper or lower case, without those that are not wanted.

use std::collections::HashSet;
use std::sync::Arc;

use crate::data_type::DataType;
use crate::error::OperatorError;
use crate::fact::Fact;
use crate::operator::{InputFacts, Inputs, NodeSource, Operator};
use crate::tensor::Tensor;
use crate::value::Value;

#[derive(Clone, Copy, Debug)]
enum Case {
    Lower,
    Upper,
    Unchanged,
}

/// Drops stop words, then changes the case of the rest.
#[derive(Clone, Debug)]
struct StringNormalizer {
    /// In lower case where the comparison is not sensitive to it.
    stop_words: HashSet<String>,
    is_case_sensitive: bool,
    case: Case,
}

pub(super) fn build(source: &NodeSource<'_>) -> Result<Arc<dyn Operator>, OperatorError> {
    let attributes = source.attributes;
    let is_case_sensitive = attributes.flag_or("is_case_sensitive", false)?;
    let case = match attributes.string_or("case_change_action", "NONE")? {
        "LOWER" => Case::Lower,
        "UPPER" => Case::Upper,
        "NONE" => Case::Unchanged,
        other => {
            let problem = format!("'{other}' is none of LOWER, UPPER and NONE");
            return Err(OperatorError::Attribute { name: "case_change_action".into(), problem });
        }
    };
    let words = attributes.strings("stopwords")?.unwrap_or_default().iter();
    let stop_words =
        words.map(|word| if is_case_sensitive { word.clone() } else { word.to_lowercase() });
    Ok(Arc::new(StringNormalizer { stop_words: stop_words.collect(), is_case_sensitive, case }))
}

impl StringNormalizer {
    fn normalised(&self, word: &str) -> Option<String> {
        let is_stopped = match self.is_case_sensitive {
            true => self.stop_words.contains(word),
            false => self.stop_words.contains(&word.to_lowercase()),
        };
        (!is_stopped).then(|| match self.case {
            Case::Lower => word.to_lowercase(),
            Case::Upper => word.to_uppercase(),
            Case::Unchanged => word.to_string(),
        })
    }
}

impl Operator for StringNormalizer {
    fn name(&self) -> &'static str {
        "StringNormalizer"
    }

    fn evaluate(&self, inputs: &Inputs<'_>) -> Result<Vec<Value>, OperatorError> {
        let x = inputs.tensor(0)?;
        let words = x.elements::<String>()?.iter().filter_map(|word| self.normalised(word));
        let mut words: Vec<String> = words.collect();
        if words.is_empty() {
            words.push(String::new());
        }
        let shape = match x.shape() {
            [_] => vec![words.len()],
            [1, _] => vec![1, words.len()],
            other => {
                let problem = format!("a row of words, not shape {other:?}");
                return Err(OperatorError::Invalid(problem));
            }
        };
        Ok(vec![Tensor::from_vec(shape, words)?.into()])
    }

    fn infer(&self, inputs: &InputFacts<'_>) -> Result<Vec<Fact>, OperatorError> {
        let dimensions = match inputs.dimensions(0) {
            Some([_]) => Some(vec![None]),
            Some([_, _]) => Some(vec![Some(1), None]),
            _ => None,
        };
        Ok(vec![Fact::partial(Some(DataType::String), dimensions)])
    }
}
