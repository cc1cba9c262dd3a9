//! A value of a text, and what it can be read as.

use std::ops::Range;

use toml::Spanned;
use toml::de::DeValue;

use super::lines::Lines;
use super::problems::Problems;
use super::section::Section;

/// A value with its name and its place. Each reading notes a problem where the value is of another kind.
#[derive(Clone, Copy)]
pub struct Item<'a> {
    name: &'a str,
    /// Where the name stands: for a table that is its header, whatever order the text is in. Entries of a list have no name of
    /// their own, and begin with their header.
    name_at: usize,
    value: &'a Spanned<DeValue<'a>>,
    lines: &'a Lines,
}

impl<'a> Item<'a> {
    pub(super) fn new(
        name: &'a str,
        name_span: Range<usize>,
        value: &'a Spanned<DeValue<'a>>,
        lines: &'a Lines,
    ) -> Self {
        Self { name, name_at: name_span.start, value, lines }
    }

    /// The key it stands under; entries of a list have the list's.
    pub fn name(&self) -> &'a str {
        self.name
    }

    /// The line of the value; of its header where it is a table.
    pub fn line(&self) -> usize {
        let is_table = self.value.get_ref().is_table();
        self.lines.line_at(if is_table { self.name_at } else { self.value.span().start })
    }

    /// True where it is a list.
    pub fn is_list(&self) -> bool {
        self.value.get_ref().is_array()
    }

    fn refuse<T>(&self, wanted: &str, problems: &mut Problems) -> Option<T> {
        let found = match self.value.get_ref() {
            DeValue::Integer(number) => number.to_string(),
            DeValue::Float(number) => number.to_string(),
            DeValue::String(text) if text.is_empty() => "an empty text".to_string(),
            DeValue::Array(list) if list.is_empty() => "an empty list".to_string(),
            other => format!("a value of type {}", other.type_str()),
        };
        problems.note(self.line(), format!("'{}' must be {wanted}, not {found}", self.name));
        None
    }

    /// A text that is not empty.
    pub fn text(&self, problems: &mut Problems) -> Option<&'a str> {
        match self.value.get_ref().as_str() {
            Some(text) if !text.is_empty() => Some(text),
            _ => self.refuse("a text that is not empty", problems),
        }
    }

    /// True or false.
    pub fn flag(&self, problems: &mut Problems) -> Option<bool> {
        let value = self.value.get_ref().as_bool();
        value.or_else(|| self.refuse("true or false", problems))
    }

    /// A whole number of at least 1.
    pub fn count(&self, problems: &mut Problems) -> Option<u32> {
        let integer = self.value.get_ref().as_integer();
        let number = integer.and_then(|text| u32::from_str_radix(text.as_str(), text.radix()).ok());
        match number {
            Some(number) if number > 0 => Some(number),
            _ => self.refuse("a whole number of at least 1", problems),
        }
    }

    /// A number above zero.
    pub fn positive(&self, problems: &mut Problems) -> Option<f64> {
        match self.as_number() {
            Some(number) if number > 0.0 && number.is_finite() => Some(number),
            _ => self.refuse("a number above 0", problems),
        }
    }

    /// A number of at least zero.
    pub fn not_negative(&self, problems: &mut Problems) -> Option<f64> {
        match self.as_number() {
            Some(number) if number >= 0.0 && number.is_finite() => Some(number),
            _ => self.refuse("a number of at least 0", problems),
        }
    }

    fn as_number(&self) -> Option<f64> {
        match self.value.get_ref() {
            DeValue::Integer(number) => {
                Some(i64::from_str_radix(number.as_str(), number.radix()).ok()? as f64)
            }
            DeValue::Float(number) => number.as_str().parse().ok(),
            _ => None,
        }
    }

    /// A list that is not empty.
    pub fn list(&self, problems: &mut Problems) -> Option<Vec<Item<'a>>> {
        match self.value.get_ref().as_array() {
            Some(list) if !list.is_empty() => {
                let entry = |value: &'a Spanned<DeValue<'a>>| Item {
                    name_at: value.span().start,
                    value,
                    ..*self
                };
                Some(list.iter().map(entry).collect())
            }
            _ => self.refuse("a list that is not empty", problems),
        }
    }

    /// A table.
    pub fn section(&self, problems: &mut Problems) -> Option<Section<'a>> {
        match self.value.get_ref().as_table() {
            Some(table) => Some(Section::new(table, self.lines, self.line())),
            None => self.refuse("a table", problems),
        }
    }
}
