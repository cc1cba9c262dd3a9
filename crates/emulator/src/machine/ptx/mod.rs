//! PTX: the text that kernels are compiled to, as instructions.

mod argument;
mod decode;
pub(super) mod instruction;
mod parser;
mod token;

use thiserror::Error;

use instruction::Instruction;
pub(super) use parser::SHARED_START;

/// All kernels of one text.
#[derive(Debug)]
pub(crate) struct Program {
    kernels: Vec<Kernel>,
}

impl Program {
    /// Reads a text as the compiler writes it.
    pub(crate) fn parse(text: &str) -> Result<Self, ParseError> {
        parser::parse(text)
    }

    /// The kernel of a name.
    pub(crate) fn kernel(&self, name: &str) -> Option<&Kernel> {
        self.kernels.iter().find(|kernel| kernel.name == name)
    }
}

/// What a launch runs.
#[derive(Debug)]
pub(crate) struct Kernel {
    pub(crate) name: String,
    pub(crate) parameters: Vec<Parameter>,
    pub(crate) static_shared_bytes: u32,
    pub(crate) local_bytes: u32,
    /// What the program has in memory from the start, which nobody writes.
    pub(super) constants: Vec<u8>,
    /// The most threads of a block that it was compiled for, where it says.
    pub(crate) max_threads: Option<u32>,
    /// Where the shared memory begins that is asked for at launch.
    pub(super) dynamic_start: u32,
    pub(super) instructions: Vec<Instruction>,
    pub(super) registers: u32,
    pub(super) predicates: u32,
}

/// Where a parameter lies among the bytes of all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Parameter {
    pub(crate) offset_bytes: usize,
    pub(crate) size_bytes: usize,
}

/// A text that cannot be run.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("line {line} of the program: {problem}")]
pub(crate) struct ParseError {
    line: u32,
    problem: String,
}
