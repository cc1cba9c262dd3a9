//! What a text holds.

/// Fields in the order of the text; a name may come again.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Message {
    pub(crate) fields: Vec<Field>,
}

/// A name and what stands behind it: one value, or a list of any length.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Field {
    pub(crate) name: String,
    pub(crate) line: usize,
    pub(crate) values: Vec<Located>,
}

/// A value and the line it begins on.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Located {
    pub(crate) line: usize,
    pub(crate) value: Value,
}

/// One value, as far as it can be told without a schema.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    /// In quotes.
    Text(String),
    /// A whole number that fits into 64 bits, with or without a sign.
    Integer(i128),
    /// Any other number.
    Float(f64),
    /// A bare word: a name of an enumeration, or `true` or `false`.
    Word(String),
    /// Fields in brackets.
    Message(Message),
}

impl Value {
    /// What it is, for messages about values of another kind.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Value::Text(_) => "a text in quotes",
            Value::Integer(_) => "a whole number",
            Value::Float(_) => "a number that is not whole",
            Value::Word(_) => "a word without quotes",
            Value::Message(_) => "fields in brackets",
        }
    }
}
