//! What stands behind the name of an instruction.

use std::cell::Cell;

use super::instruction::{Address, Condition, Operand, Predicate, Register};

/// One argument as it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Argument {
    Operand(Operand),
    Condition(Condition),
    /// Two destinations: of a value, and of a truth value.
    Pair(Option<Register>, Predicate),
    /// An address, and where in a tensor.
    Address(Address, Vec<Operand>),
    List(Vec<Argument>),
    /// Nobody wants it.
    Sink,
}

/// All arguments of one instruction, and which of them were looked at.
pub(super) struct Arguments(Vec<(Argument, Cell<bool>)>);

type Found<T> = Result<T, String>;

impl Arguments {
    pub(super) fn new(all: Vec<Argument>) -> Self {
        Self(all.into_iter().map(|argument| (argument, Cell::new(false))).collect())
    }

    fn get(&self, index: usize) -> Option<&Argument> {
        let (argument, is_read) = self.0.get(index)?;
        is_read.set(true);
        Some(argument)
    }

    fn at(&self, index: usize) -> Found<&Argument> {
        self.get(index).ok_or_else(|| format!("argument {index} is missing"))
    }

    /// Refuses arguments that nobody has looked at.
    pub(super) fn check_all_read(&self) -> Found<()> {
        let unread = self.0.iter().position(|(_, is_read)| !is_read.get());
        unread.map_or(Ok(()), |index| Err(format!("argument {index} means nothing here")))
    }

    /// What is said changes nothing.
    pub(super) fn ignore(&self) {
        self.0.iter().for_each(|(_, is_read)| is_read.set(true));
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn operand(&self, index: usize) -> Found<Operand> {
        operand(self.at(index)?)
    }

    pub(super) fn optional_operand(&self, index: usize) -> Found<Option<Operand>> {
        self.get(index).map(operand).transpose()
    }

    pub(super) fn register(&self, index: usize) -> Found<Register> {
        register(self.at(index)?)
    }

    /// A register that is written, or none.
    pub(super) fn destination(&self, index: usize) -> Found<Option<Register>> {
        match self.at(index)? {
            Argument::Sink => Ok(None),
            found => register(found).map(Some),
        }
    }

    /// A result that nobody wants.
    pub(super) fn nobody(&self, index: usize) -> Found<()> {
        match self.at(index)? {
            Argument::Sink => Ok(()),
            other => Err(format!("{other:?} is not told anything here")),
        }
    }

    pub(super) fn condition(&self, index: usize) -> Found<Condition> {
        match self.at(index)? {
            Argument::Condition(condition) => Ok(*condition),
            Argument::Operand(Operand::Immediate(value)) => Ok(Condition::Known(*value != 0)),
            other => Err(format!("{other:?} is no predicate")),
        }
    }

    pub(super) fn predicate(&self, index: usize) -> Found<Predicate> {
        match self.condition(index)? {
            Condition::Is(predicate) => Ok(predicate),
            other => Err(format!("{other:?} cannot be written")),
        }
    }

    /// Where a value goes, and where a truth value beside it goes.
    pub(super) fn pair(&self, index: usize) -> Found<(Option<Register>, Option<Predicate>)> {
        match self.at(index)? {
            Argument::Pair(register, predicate) => Ok((*register, Some(*predicate))),
            found => register(found).map(|register| (Some(register), None)),
        }
    }

    /// Bare addresses are those of whole operands.
    pub(super) fn address(&self, index: usize) -> Found<Address> {
        match self.at(index)? {
            Argument::Address(address, _) => Ok(*address),
            other => Err(format!("{other:?} is no address")),
        }
    }

    /// An address without an offset.
    pub(super) fn plain_address(&self, index: usize) -> Found<Operand> {
        let Address { base, offset } = self.address(index)?;
        if offset == 0 { Ok(base) } else { Err("an offset where none can be".to_string()) }
    }

    /// A description of a tensor, and where in the tensor.
    pub(super) fn tensor(&self, index: usize) -> Found<(Operand, Vec<Operand>)> {
        match self.at(index)? {
            Argument::Address(address, at) if address.offset == 0 => Ok((address.base, at.clone())),
            other => Err(format!("{other:?} is no place in a tensor")),
        }
    }

    /// A list, or one alone.
    pub(super) fn operands(&self, index: usize) -> Found<Vec<Operand>> {
        match self.at(index)? {
            Argument::List(list) => list.iter().map(operand).collect(),
            found => Ok(vec![operand(found)?]),
        }
    }

    pub(super) fn registers(&self, index: usize) -> Found<Vec<Register>> {
        match self.at(index)? {
            Argument::List(list) => list.iter().map(register).collect(),
            found => Ok(vec![register(found)?]),
        }
    }

    pub(super) fn destinations(&self, index: usize) -> Found<Vec<Option<Register>>> {
        let one = |argument: &Argument| match argument {
            Argument::Sink => Ok(None),
            found => register(found).map(Some),
        };
        match self.at(index)? {
            Argument::List(list) => list.iter().map(one).collect(),
            found => Ok(vec![one(found)?]),
        }
    }

    pub(super) fn is_list(&self, index: usize) -> bool {
        matches!(self.0.get(index), Some((Argument::List(_), _)))
    }

    pub(super) fn is_condition(&self, index: usize) -> bool {
        matches!(self.0.get(index), Some((Argument::Condition(_), _)))
    }

    /// A number that is written out.
    pub(super) fn number(&self, index: usize) -> Found<u32> {
        match self.operand(index)? {
            Operand::Immediate(value) => {
                u32::try_from(value).map_err(|_| format!("{value} is too large"))
            }
            other => Err(format!("{other:?} is no number")),
        }
    }
}

fn operand(argument: &Argument) -> Found<Operand> {
    match argument {
        Argument::Operand(operand) => Ok(*operand),
        other => Err(format!("{other:?} is no operand")),
    }
}

fn register(argument: &Argument) -> Found<Register> {
    match argument {
        Argument::Operand(Operand::Register(register)) => Ok(*register),
        other => Err(format!("{other:?} is no register")),
    }
}
