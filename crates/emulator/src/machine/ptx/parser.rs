//! A program's text: its kernels, their parameters and variables, and the names of registers in nested scopes.

use std::collections::HashMap;

use super::super::access::to_any;
use super::argument::{Argument, Arguments};
use super::decode::decode;
use super::instruction::{Address, Condition, Instruction, Operand, Operation, Space, Special};
use super::token::{Token, tokens};
use super::{Kernel, Parameter, ParseError, Program};

/// Where the shared memory of a block begins. What is below belongs to the system, as on a GPU.
pub(in crate::machine) const SHARED_START: u32 = 1024;

/// The program of a text.
pub(super) fn parse(text: &str) -> Result<Program, ParseError> {
    let tokens = tokens(text);
    let (globals, shared_end) = (HashMap::new(), SHARED_START);
    let (dynamic_alignment, constants) = (1, Vec::new());
    let mut parser =
        Parser { tokens: &tokens, at: 0, globals, shared_end, dynamic_alignment, constants };
    let mut kernels = Vec::new();
    while let Some(word) = parser.next_word() {
        match word {
            ".entry" => kernels.push(parser.kernel()?),
            ".shared" => parser.shared_of_module()?,
            ".extern" => parser.extern_of_module()?,
            ".global" | ".const" => parser.constants_of_module()?,
            ".version" | ".address_size" => parser.skip(1),
            ".target" => parser.skip_target(),
            ".visible" | ".weak" => {}
            other => return Err(parser.error(format!("{other} is not known here"))),
        }
    }
    if parser.at < tokens.len() {
        return Err(parser.error("a word is missing".to_string()));
    }
    Ok(Program { kernels })
}

/// What a name stands for.
#[derive(Clone, Copy)]
enum Named {
    Register(u32),
    Predicate(u32),
    /// An address of shared memory, or of a thread's own.
    Address(u64),
    /// The place behind all that is static in shared memory.
    Dynamic,
    /// Where it lies among the parameters.
    Parameter(usize),
}

struct Parser<'t> {
    tokens: &'t [(Token<'t>, u32)],
    at: usize,
    globals: HashMap<&'t str, Named>,
    /// The end of the shared memory that all kernels of the program have.
    shared_end: u32,
    /// What the place of the shared memory that is asked for at launch is a multiple of.
    dynamic_alignment: u32,
    /// The constants of all kernels of the program.
    constants: Vec<u8>,
}

/// A variable, or a parameter. A size of zero is one that is not known.
struct Variable<'t> {
    name: &'t str,
    size_bytes: u32,
    element_bytes: u32,
    alignment: u32,
}

/// A kernel that is being read.
struct Body<'t> {
    scopes: Vec<Scope<'t>>,
    instructions: Vec<Instruction>,
    registers: u32,
    predicates: u32,
    shared_end: u32,
    local_bytes: u32,
}

#[derive(Default)]
struct Scope<'t> {
    names: HashMap<&'t str, Named>,
    /// Names that end in a number below a count: what is before it, and what the first of them is.
    numbered: Vec<(&'t str, u32, Named)>,
    labels: HashMap<&'t str, u32>,
    /// Branches to labels that were not met yet.
    branches: Vec<(usize, &'t str)>,
}

impl<'t> Parser<'t> {
    fn line(&self) -> u32 {
        let at = self.at.min(self.tokens.len().saturating_sub(1));
        self.tokens.get(at).map_or(0, |(_, line)| *line)
    }

    fn error(&self, problem: String) -> ParseError {
        ParseError { line: self.line(), problem }
    }

    fn peek(&self) -> Option<Token<'t>> {
        self.tokens.get(self.at).map(|(token, _)| *token)
    }

    fn next_word(&mut self) -> Option<&'t str> {
        let Some(Token::Word(word)) = self.peek() else { return None };
        self.at += 1;
        Some(word)
    }

    fn word(&mut self) -> Result<&'t str, ParseError> {
        self.next_word().ok_or_else(|| self.error("a word is missing".to_string()))
    }

    fn is_mark(&self, mark: char) -> bool {
        self.peek() == Some(Token::Mark(mark))
    }

    fn take_mark(&mut self, mark: char) -> bool {
        let is_there = self.is_mark(mark);
        self.at += usize::from(is_there);
        is_there
    }

    fn expect(&mut self, mark: char) -> Result<(), ParseError> {
        if self.take_mark(mark) { Ok(()) } else { Err(self.error(format!("'{mark}' is missing"))) }
    }

    fn skip(&mut self, count: usize) {
        self.at += count;
    }

    fn skip_target(&mut self) {
        self.skip(1);
        while self.take_mark(',') {
            self.skip(1);
        }
    }

    fn count(&mut self) -> Result<u32, ParseError> {
        let word = self.word()?;
        word.parse().map_err(|_| self.error(format!("{word} is no count")))
    }

    /// `.align 8 .b8 name[40]`, of which some may be absent.
    fn variable(&mut self) -> Result<Variable<'t>, ParseError> {
        let (mut alignment, mut element_bytes, mut count) = (1, 1, 1);
        let name = loop {
            match self.word()? {
                ".align" => alignment = self.count()?,
                ".ptr" | ".global" | ".shared" => {}
                kind if kind.starts_with('.') => {
                    let bits = kind[1..].trim_start_matches(|c: char| !c.is_ascii_digit());
                    let bits: u32 =
                        bits.parse().map_err(|_| self.error(format!("{kind} is no type")))?;
                    element_bytes = bits / 8;
                }
                name => break name,
            }
        };
        while self.take_mark('[') {
            count *= if self.is_mark(']') { 0 } else { self.count()? };
            self.expect(']')?;
        }
        let size_bytes = element_bytes * count;
        Ok(Variable { name, size_bytes, element_bytes, alignment: alignment.max(element_bytes) })
    }

    fn shared_of_module(&mut self) -> Result<(), ParseError> {
        let Variable { name, size_bytes, alignment, .. } = self.variable()?;
        let start = self.shared_end.next_multiple_of(alignment);
        self.shared_end = start + size_bytes;
        self.globals.insert(name, Named::Address(start.into()));
        self.expect(';')
    }

    /// Shared memory that is asked for at launch.
    fn extern_of_module(&mut self) -> Result<(), ParseError> {
        if self.word()? != ".shared" {
            return Err(self.error("shared memory alone comes from elsewhere here".to_string()));
        }
        let Variable { name, alignment, .. } = self.variable()?;
        self.dynamic_alignment = self.dynamic_alignment.max(alignment);
        self.globals.insert(name, Named::Dynamic);
        self.expect(';')
    }

    /// What nobody writes. Where the compiler has put the value where it is used, nobody asks for it by its name.
    fn constants_of_module(&mut self) -> Result<(), ParseError> {
        let Variable { name, size_bytes, element_bytes, alignment } = self.variable()?;
        let mut bytes = Vec::new();
        if self.take_mark('=') {
            let is_list = self.take_mark('{');
            loop {
                bytes.extend_from_slice(&self.literal()?.to_le_bytes()[..element_bytes as usize]);
                if !self.take_mark(',') {
                    break;
                }
            }
            if is_list {
                self.expect('}')?;
            }
        }
        if bytes.len() > size_bytes as usize {
            return Err(self.error(format!("{name} has more values than room")));
        }
        // What is not given is zero.
        bytes.resize(size_bytes as usize, 0);
        let start = self.constants.len().next_multiple_of(alignment as usize);
        self.constants.resize(start, 0);
        self.constants.extend(bytes);
        self.globals.insert(name, Named::Address(to_any(Space::Constants, start as u64)));
        self.expect(';')
    }

    fn literal(&mut self) -> Result<u64, ParseError> {
        let is_negative = self.take_mark('-');
        let word = self.word()?;
        let value = number(word).ok_or_else(|| self.error(format!("{word} is no number")))?;
        Ok(if is_negative { value.wrapping_neg() } else { value })
    }

    fn kernel(&mut self) -> Result<Kernel, ParseError> {
        let name = self.word()?.to_string();
        let (mut parameters, mut end) = (Vec::new(), 0usize);
        let mut names = self.globals.clone();
        self.expect('(')?;
        while !self.take_mark(')') {
            if self.word()? != ".param" {
                return Err(self.error("a parameter is missing".to_string()));
            }
            let Variable { name, size_bytes, alignment, .. } = self.variable()?;
            let size_bytes = size_bytes as usize;
            let offset_bytes = end.next_multiple_of(alignment as usize);
            end = offset_bytes + size_bytes;
            parameters.push(Parameter { offset_bytes, size_bytes });
            names.insert(name, Named::Parameter(offset_bytes));
            self.take_mark(',');
        }
        let mut max_threads = None;
        while let Some(word) = self.next_word() {
            match word {
                ".maxntid" | ".reqntid" => {
                    let mut threads = self.count()?;
                    while self.take_mark(',') {
                        threads *= self.count()?;
                    }
                    max_threads = Some(threads);
                }
                ".minnctapersm" | ".maxnreg" => self.skip(1),
                other => return Err(self.error(format!("{other} is not known here"))),
            }
        }
        self.expect('{')?;
        let mut body = Body {
            scopes: vec![Scope { names, ..Scope::default() }],
            instructions: Vec::new(),
            registers: 0,
            predicates: 0,
            shared_end: self.shared_end,
            local_bytes: 0,
        };
        while !body.scopes.is_empty() {
            self.statement(&mut body)?;
        }
        Ok(Kernel {
            name,
            parameters,
            static_shared_bytes: body.shared_end - SHARED_START,
            local_bytes: body.local_bytes,
            constants: self.constants.clone(),
            max_threads,
            dynamic_start: body.shared_end.next_multiple_of(self.dynamic_alignment),
            instructions: body.instructions,
            registers: body.registers,
            predicates: body.predicates,
        })
    }

    fn statement(&mut self, body: &mut Body<'t>) -> Result<(), ParseError> {
        if self.take_mark('{') {
            body.scopes.push(Scope::default());
            return Ok(());
        }
        if self.take_mark('}') {
            return body.leave().map_err(|problem| self.error(problem));
        }
        if self.take_mark(';') {
            return Ok(());
        }
        let line = self.line();
        let guard = if self.take_mark('@') {
            let is_negated = self.take_mark('!');
            let name = self.word()?;
            Some(match (body.find(name), is_negated) {
                (Some(Named::Predicate(predicate)), false) => Condition::Is(predicate),
                (Some(Named::Predicate(predicate)), true) => Condition::IsNot(predicate),
                _ => return Err(self.error(format!("{name} is no predicate"))),
            })
        } else {
            None
        };
        let word = self.word()?;
        match word {
            ".reg" => return self.registers(body),
            ".shared" => {
                let Variable { name, size_bytes, alignment, .. } = self.variable()?;
                let start = body.shared_end.next_multiple_of(alignment);
                body.shared_end = start + size_bytes;
                body.name(name, Named::Address(start.into()));
                return self.expect(';');
            }
            ".local" => {
                let Variable { name, size_bytes, alignment, .. } = self.variable()?;
                let start = body.local_bytes.next_multiple_of(alignment);
                body.local_bytes = start + size_bytes;
                body.name(name, Named::Address(start.into()));
                return self.expect(';');
            }
            ".loc" | ".pragma" | ".file" => {
                while !matches!(self.peek(), None | Some(Token::Mark(';'))) && self.line() == line {
                    self.at += 1;
                }
                return Ok(());
            }
            _ => {}
        }
        if self.take_mark(':') {
            let next = body.instructions.len() as u32;
            body.scope().labels.insert(word, next);
            return Ok(());
        }
        let operation = if word == "bra" || word == "bra.uni" {
            let target = self.word()?;
            let index = body.instructions.len();
            body.scope().branches.push((index, target));
            Operation::Branch { target: u32::MAX }
        } else {
            let arguments = self.arguments(body)?;
            decode(word, &arguments).map_err(|problem| self.error(format!("{word}: {problem}")))?
        };
        self.expect(';')?;
        body.instructions.push(Instruction { guard, operation, line });
        Ok(())
    }

    /// `.reg .b32 %r<5>, name;`
    fn registers(&mut self, body: &mut Body<'t>) -> Result<(), ParseError> {
        let is_predicate = self.word()? == ".pred";
        loop {
            let name = self.word()?;
            if self.take_mark('<') {
                let count = self.count()?;
                self.expect('>')?;
                let first = body.declare(count, is_predicate);
                body.scope().numbered.push((name, count, first));
            } else {
                let register = body.declare(1, is_predicate);
                body.name(name, register);
            }
            if !self.take_mark(',') {
                return self.expect(';');
            }
        }
    }

    fn arguments(&mut self, body: &mut Body<'t>) -> Result<Arguments, ParseError> {
        let mut list = Vec::new();
        while !self.is_mark(';') {
            list.push(self.argument(body)?);
            if !self.take_mark(',') {
                break;
            }
        }
        Ok(Arguments::new(list))
    }

    fn argument(&mut self, body: &mut Body<'t>) -> Result<Argument, ParseError> {
        if self.take_mark('{') {
            let mut list = Vec::new();
            while !self.take_mark('}') {
                list.push(self.argument(body)?);
                self.take_mark(',');
            }
            return Ok(Argument::List(list));
        }
        if self.take_mark('[') {
            let base = self.operand(body)?;
            let mut offset = 0;
            if self.take_mark('+') {
                offset = match self.operand(body)? {
                    Operand::Immediate(value) => value as i64,
                    other => return Err(self.error(format!("{other:?} is no offset"))),
                };
            }
            let mut at = Vec::new();
            if self.take_mark(',') {
                self.expect('{')?;
                while !self.take_mark('}') {
                    at.push(self.operand(body)?);
                    self.take_mark(',');
                }
            }
            self.expect(']')?;
            return Ok(Argument::Address(Address { base, offset }, at));
        }
        if self.take_mark('!') {
            let name = self.word()?;
            return match body.find(name) {
                Some(Named::Predicate(predicate)) => {
                    Ok(Argument::Condition(Condition::IsNot(predicate)))
                }
                _ => Err(self.error(format!("{name} is no predicate"))),
            };
        }
        if let Some(Token::Word(word)) = self.peek() {
            let named = body.find(word);
            let after = self.tokens.get(self.at + 1).map(|(token, _)| *token);
            if after == Some(Token::Mark('|')) {
                self.at += 2;
                let register = match named {
                    Some(Named::Register(register)) => Some(register),
                    _ => None,
                };
                let name = self.word()?;
                return match body.find(name) {
                    Some(Named::Predicate(predicate)) => Ok(Argument::Pair(register, predicate)),
                    _ => Err(self.error(format!("{name} is no predicate"))),
                };
            }
            if word == "_" {
                self.at += 1;
                return Ok(Argument::Sink);
            }
            if let Some(Named::Predicate(predicate)) = named {
                self.at += 1;
                return Ok(Argument::Condition(Condition::Is(predicate)));
            }
        }
        self.operand(body).map(Argument::Operand)
    }

    fn operand(&mut self, body: &mut Body<'t>) -> Result<Operand, ParseError> {
        let is_number = matches!(self.peek(), Some(Token::Word(word)) if number(word).is_some());
        if is_number || self.is_mark('-') {
            return self.literal().map(Operand::Immediate);
        }
        let word = self.word()?;
        if let Some(special) = special(word) {
            return Ok(Operand::Special(special));
        }
        Ok(match body.find(word) {
            Some(Named::Register(register)) => Operand::Register(register),
            Some(Named::Address(address)) => Operand::Immediate(address),
            Some(Named::Parameter(offset)) => Operand::Immediate(offset as u64),
            Some(Named::Dynamic) => Operand::Special(Special::DynamicShared),
            _ => return Err(self.error(format!("{word} is not known"))),
        })
    }
}

impl<'t> Body<'t> {
    fn scope(&mut self) -> &mut Scope<'t> {
        self.scopes.last_mut().expect("a body is read while it has scopes")
    }

    fn find(&self, name: &str) -> Option<Named> {
        self.scopes.iter().rev().find_map(|scope| scope.find(name))
    }

    fn name(&mut self, name: &'t str, named: Named) {
        self.scope().names.insert(name, named);
    }

    /// So many registers, of which it says what the first is.
    fn declare(&mut self, count: u32, is_predicate: bool) -> Named {
        let all = if is_predicate { &mut self.predicates } else { &mut self.registers };
        let first = *all;
        *all += count;
        if is_predicate { Named::Predicate(first) } else { Named::Register(first) }
    }

    /// Ends a scope: branches within it have found their labels, or look for them outside.
    fn leave(&mut self) -> Result<(), String> {
        let scope = self.scopes.pop().expect("a body is read while it has scopes");
        for (index, name) in scope.branches {
            match (scope.labels.get(name), self.scopes.last_mut()) {
                (Some(&target), _) => {
                    self.instructions[index].operation = Operation::Branch { target };
                }
                (None, Some(outside)) => outside.branches.push((index, name)),
                (None, None) => return Err(format!("there is no label {name}")),
            }
        }
        Ok(())
    }
}

impl Scope<'_> {
    fn find(&self, name: &str) -> Option<Named> {
        if let Some(named) = self.names.get(name) {
            return Some(*named);
        }
        let stem = name.trim_end_matches(|c: char| c.is_ascii_digit());
        let number: u32 = name[stem.len()..].parse().ok()?;
        let (_, _, first) =
            self.numbered.iter().find(|(of, count, _)| *of == stem && number < *count)?;
        Some(match first {
            Named::Register(first) => Named::Register(first + number),
            Named::Predicate(first) => Named::Predicate(first + number),
            other => *other,
        })
    }
}

/// A number as it is written: whole, or the bits of a float.
fn number(word: &str) -> Option<u64> {
    if let Some(bits) = word.strip_prefix("0f").or_else(|| word.strip_prefix("0F")) {
        return u32::from_str_radix(bits, 16).ok().map(u64::from);
    }
    if let Some(bits) = word.strip_prefix("0d").or_else(|| word.strip_prefix("0D")) {
        return u64::from_str_radix(bits, 16).ok();
    }
    let word = word.trim_end_matches('U');
    match word.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => word.parse().ok(),
    }
}

fn special(word: &str) -> Option<Special> {
    let axis = |word: &str| match word {
        "x" => Some(0),
        "y" => Some(1),
        "z" => Some(2),
        _ => None,
    };
    if let Some((name, place)) = word.split_once('.') {
        let axis = axis(place)?;
        return Some(match name {
            "%tid" => Special::Thread(axis),
            "%ntid" => Special::Threads(axis),
            "%ctaid" => Special::Block(axis),
            "%nctaid" => Special::Blocks(axis),
            "%cluster_nctaid" => Special::ClusterShape(axis),
            _ => return None,
        });
    }
    Some(match word {
        "%laneid" => Special::Lane,
        "%warpid" => Special::Warp,
        "%smid" => Special::Sm,
        "%nsmid" => Special::SmCount,
        "%cluster_ctarank" => Special::RankInCluster,
        "%cluster_nctarank" => Special::BlocksOfCluster,
        "%lanemask_lt" => Special::LanesBelow,
        "%globaltimer" | "%clock64" | "%clock" | "%globaltimer_lo" => Special::Nanoseconds,
        _ => return None,
    })
}
