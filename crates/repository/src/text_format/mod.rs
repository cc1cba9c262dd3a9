//! Protobuf's text format: any message as a tree of named values with the lines they stand on, and no schema.

mod escapes;
mod lexer;
mod parser;
mod tree;

pub(crate) use parser::parse;
pub(crate) use tree::{Field, Located, Message, Value};

/// What is wrong with a text, and on which line. Past it nobody knows what was meant, so there is one for each text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SyntaxProblem {
    pub(crate) line: usize,
    pub(crate) what: String,
}

impl SyntaxProblem {
    fn new(line: usize, what: impl Into<String>) -> Self {
        Self { line, what: what.into() }
    }
}

#[cfg(test)]
mod tests;
