//! RegexFullMatch: which strings a regular expression matches from end to end.

use std::sync::Arc;

use regex::Regex;

use crate::data_type::DataType;
use crate::error::OperatorError;
use crate::fact::Fact;
use crate::operator::{InputFacts, Inputs, NodeSource, Operator};
use crate::tensor::Tensor;
use crate::value::Value;

/// True for strings that the expression matches whole.
#[derive(Clone, Debug)]
struct RegexFullMatch {
    expression: Regex,
}

pub(super) fn build(source: &NodeSource<'_>) -> Result<Arc<dyn Operator>, OperatorError> {
    let pattern = source.attributes.string_or("pattern", "")?;
    let expression = full_match(pattern).map_err(|problem| OperatorError::Attribute {
        name: "pattern".into(),
        problem: problem.to_string(),
    })?;
    Ok(Arc::new(RegexFullMatch { expression }))
}

fn full_match(pattern: &str) -> Result<Regex, regex::Error> {
    // The pattern alone must be an expression, lest it close the group that anchors it.
    let pattern = ascii_classes(pattern);
    Regex::new(&pattern)?;
    Regex::new(&format!(r"\A(?:{pattern})\z"))
}

/// The pattern with RE2's classes spelt out: there, words, digits and white space are those of ASCII.
fn ascii_classes(pattern: &str) -> String {
    let mut spelt = String::with_capacity(pattern.len());
    let mut characters = pattern.chars();
    while let Some(character) = characters.next() {
        if character != '\\' {
            spelt.push(character);
            continue;
        }
        match characters.next() {
            Some('w') => spelt.push_str("[0-9A-Za-z_]"),
            Some('W') => spelt.push_str("[^0-9A-Za-z_]"),
            Some('d') => spelt.push_str("[0-9]"),
            Some('D') => spelt.push_str("[^0-9]"),
            Some('s') => spelt.push_str(r"[\t\n\x0C\r ]"),
            Some('S') => spelt.push_str(r"[^\t\n\x0C\r ]"),
            Some('b') => spelt.push_str(r"(?-u:\b)"),
            escaped => spelt.extend(['\\'].into_iter().chain(escaped)),
        }
    }
    spelt
}

impl Operator for RegexFullMatch {
    fn name(&self) -> &'static str {
        "RegexFullMatch"
    }

    fn evaluate(&self, inputs: &Inputs<'_>) -> Result<Vec<Value>, OperatorError> {
        let x = inputs.tensor(0)?;
        let matches = x.elements::<String>()?.iter().map(|text| self.expression.is_match(text));
        Ok(vec![Tensor::from_vec(x.shape().to_vec(), matches.collect::<Vec<bool>>())?.into()])
    }

    fn infer(&self, inputs: &InputFacts<'_>) -> Result<Vec<Fact>, OperatorError> {
        let dimensions = inputs.dimensions(0).map(<[_]>::to_vec);
        Ok(vec![Fact::partial(Some(DataType::Bool), dimensions)])
    }
}

#[cfg(test)]
mod tests {
    use super::full_match;

    #[test]
    fn matches_are_whole_and_classes_are_ascii() {
        let cases = [
            ("a|ab", "ab", true),
            ("a", "ab", false),
            (r"\w+", "abc_1", true),
            (r"\w+", "é", false),
            (r"[\W]", "é", true),
            (r"[^\w]", "a", false),
            (".", "é", true),
            (r"\\w", r"\w", true),
            ("", "", true),
        ];
        for (pattern, text, expected) in cases {
            let expression = full_match(pattern).unwrap();
            assert_eq!(expression.is_match(text), expected, "{pattern} on {text}");
        }
        assert!(full_match("a)|(?:b").is_err());
    }
}
