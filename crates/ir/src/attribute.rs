//! Attributes: the constants that parametrise an operator in a model file.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::error::OperatorError;
use crate::graph::Graph;
use crate::tensor::Tensor;

/// One attribute's value.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub enum Attribute {
    Int(i64),
    Float(f32),
    String(String),
    Tensor(Tensor),
    /// A body of control flow. Values it captures from outside stand last in its inputs; [`Graph::captured`] counts them.
    Graph(Arc<Graph>),
    Ints(Vec<i64>),
    Floats(Vec<f32>),
    Strings(Vec<String>),
}

macro_rules! from {
    ($($rust:ty => $variant:ident),* $(,)?) => {$(
        impl From<$rust> for Attribute {
            fn from(value: $rust) -> Self {
                Attribute::$variant(value.into())
            }
        }
    )*};
}
from! {
    i64 => Int, f32 => Float, &str => String, String => String, Tensor => Tensor,
    Vec<i64> => Ints, Vec<f32> => Floats, Vec<String> => Strings, &[i64] => Ints,
}

/// The attributes of one node, by name.
#[derive(Clone, Debug, Default)]
pub struct Attributes(BTreeMap<String, Attribute>);

impl Attributes {
    /// No attributes.
    pub fn new() -> Self {
        Self::default()
    }

    /// The same with one more.
    pub fn with(mut self, name: &str, value: impl Into<Attribute>) -> Self {
        self.insert(name, value.into());
        self
    }

    /// Adds one, replacing one of the same name.
    pub fn insert(&mut self, name: &str, value: Attribute) {
        self.0.insert(name.to_string(), value);
    }

    /// All of them, in order of name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Attribute)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value))
    }

    /// One of them.
    pub fn get(&self, name: &str) -> Option<&Attribute> {
        self.0.get(name)
    }

    /// True where an attribute of that name is there.
    pub fn contains(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// True where one of them is a body of control flow.
    pub fn has_body(&self) -> bool {
        self.0.values().any(|value| matches!(value, Attribute::Graph(_)))
    }

    fn read<'a, T>(
        &'a self,
        name: &str,
        kind: &str,
        read: impl FnOnce(&'a Attribute) -> Option<T>,
    ) -> Result<Option<T>, OperatorError> {
        match self.get(name) {
            None => Ok(None),
            Some(value) => read(value).map(Some).ok_or_else(|| OperatorError::Attribute {
                name: name.to_string(),
                problem: format!("must be {kind}"),
            }),
        }
    }

    /// An integer, where given.
    pub fn int(&self, name: &str) -> Result<Option<i64>, OperatorError> {
        self.read(name, "an integer", |value| match value {
            Attribute::Int(value) => Some(*value),
            _ => None,
        })
    }

    /// An integer with a default.
    pub fn int_or(&self, name: &str, default: i64) -> Result<i64, OperatorError> {
        Ok(self.int(name)?.unwrap_or(default))
    }

    /// An integer used as a flag, with a default.
    pub fn flag_or(&self, name: &str, default: bool) -> Result<bool, OperatorError> {
        Ok(self.int(name)?.map_or(default, |value| value != 0))
    }

    /// A float, where given.
    pub fn float(&self, name: &str) -> Result<Option<f32>, OperatorError> {
        self.read(name, "a float", |value| match value {
            Attribute::Float(value) => Some(*value),
            _ => None,
        })
    }

    /// A float with a default.
    pub fn float_or(&self, name: &str, default: f32) -> Result<f32, OperatorError> {
        Ok(self.float(name)?.unwrap_or(default))
    }

    /// A string, where given.
    pub fn string(&self, name: &str) -> Result<Option<&str>, OperatorError> {
        self.read(name, "a string", |value| match value {
            Attribute::String(value) => Some(value.as_str()),
            _ => None,
        })
    }

    /// A string with a default.
    pub fn string_or<'a>(&'a self, name: &str, default: &'a str) -> Result<&'a str, OperatorError> {
        Ok(self.string(name)?.unwrap_or(default))
    }

    /// A tensor, where given.
    pub fn tensor(&self, name: &str) -> Result<Option<&Tensor>, OperatorError> {
        self.read(name, "a tensor", |value| match value {
            Attribute::Tensor(value) => Some(value),
            _ => None,
        })
    }

    /// A body of control flow, which must be there.
    pub fn graph(&self, name: &str) -> Result<Arc<Graph>, OperatorError> {
        self.read(name, "a graph", |value| match value {
            Attribute::Graph(value) => Some(value.clone()),
            _ => None,
        })?
        .ok_or_else(|| OperatorError::Attribute {
            name: name.to_string(),
            problem: "is missing".into(),
        })
    }

    /// Integers, where given. An empty list may have lost its type in the file, so any empty list will do.
    pub fn ints(&self, name: &str) -> Result<Option<&[i64]>, OperatorError> {
        self.read(name, "a list of integers", |value| match value {
            Attribute::Ints(value) => Some(value.as_slice()),
            Attribute::Floats(value) if value.is_empty() => Some(&[] as &[i64]),
            Attribute::Strings(value) if value.is_empty() => Some(&[]),
            _ => None,
        })
    }

    /// Floats, where given.
    pub fn floats(&self, name: &str) -> Result<Option<&[f32]>, OperatorError> {
        self.read(name, "a list of floats", |value| match value {
            Attribute::Floats(value) => Some(value.as_slice()),
            Attribute::Ints(value) if value.is_empty() => Some(&[] as &[f32]),
            _ => None,
        })
    }

    /// Strings, where given.
    pub fn strings(&self, name: &str) -> Result<Option<&[String]>, OperatorError> {
        self.read(name, "a list of strings", |value| match value {
            Attribute::Strings(value) => Some(value.as_slice()),
            Attribute::Ints(value) if value.is_empty() => Some(&[] as &[String]),
            _ => None,
        })
    }
}
