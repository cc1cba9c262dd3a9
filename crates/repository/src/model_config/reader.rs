//! The fields of a message, asked for one by one; what nobody asks for is not known.

use crate::text_format::{Field, Located, Message, Value};

/// What was noted while a configuration was read, by line.
#[derive(Debug, Default)]
pub(super) struct Findings {
    pub(super) problems: Vec<(usize, String)>,
    pub(super) notes: Vec<(usize, String)>,
}

impl Findings {
    pub(super) fn problem(&mut self, line: usize, what: impl Into<String>) {
        self.problems.push((line, what.into()));
    }

    pub(super) fn note(&mut self, line: usize, what: impl Into<String>) {
        self.notes.push((line, what.into()));
    }
}

/// A message and the way to it from the root, such as `dynamic_batching.`.
pub(super) struct Reader<'a> {
    message: &'a Message,
    path: String,
    line: usize,
    asked: Vec<&'static str>,
}

/// A value that was asked for, and where it stands.
#[derive(Clone, Copy)]
pub(super) struct Found<T> {
    pub(super) value: T,
    pub(super) line: usize,
}

impl<'a> Reader<'a> {
    pub(super) fn root(message: &'a Message) -> Self {
        Self { message, path: String::new(), line: 1, asked: Vec::new() }
    }

    /// The line that the message begins on.
    pub(super) fn line(&self) -> usize {
        self.line
    }

    /// The name of a field, with the way to it.
    pub(super) fn path_of(&self, name: &str) -> String {
        format!("{}{name}", self.path)
    }

    fn fields(&mut self, name: &'static str) -> impl Iterator<Item = &'a Field> + use<'a> {
        self.asked.push(name);
        self.message.fields.iter().filter(move |field| field.name == name)
    }

    fn values(&mut self, name: &'static str) -> Vec<&'a Located> {
        self.fields(name).flat_map(|field| &field.values).collect()
    }

    /// The one value of a field; that there are several is a problem.
    fn value(&mut self, name: &'static str, findings: &mut Findings) -> Option<&'a Located> {
        let values = self.values(name);
        if let Some(second) = values.get(1) {
            findings.problem(second.line, format!("'{}' is given twice", self.path_of(name)));
        }
        values.first().copied()
    }

    fn refuse(&self, name: &str, wanted: &str, found: &Located, findings: &mut Findings) {
        let what = match &found.value {
            Value::Word(word) => format!("'{word}'"),
            Value::Integer(number) => number.to_string(),
            other => other.kind().to_string(),
        };
        let path = self.path_of(name);
        findings.problem(found.line, format!("'{path}' must be {wanted}, not {what}"));
    }

    /// A text; an empty one is none.
    pub(super) fn text(
        &mut self,
        name: &'static str,
        findings: &mut Findings,
    ) -> Option<Found<&'a str>> {
        let found = self.value(name, findings)?;
        match &found.value {
            Value::Text(text) => Some(Found { value: text.as_str(), line: found.line })
                .filter(|found| !found.value.is_empty()),
            _ => {
                self.refuse(name, "a text in quotes", found, findings);
                None
            }
        }
    }

    /// A whole number of at least `least`, at most what fits into `T`.
    pub(super) fn integer<T: TryFrom<i128>>(
        &mut self,
        name: &'static str,
        least: i128,
        findings: &mut Findings,
    ) -> Option<Found<T>> {
        let found = self.value(name, findings)?;
        self.as_integer(name, least, found, findings)
    }

    /// Any number of such whole numbers.
    pub(super) fn integers<T: TryFrom<i128>>(
        &mut self,
        name: &'static str,
        least: i128,
        findings: &mut Findings,
    ) -> Vec<Found<T>> {
        let values = self.values(name);
        let read =
            values.into_iter().filter_map(|found| self.as_integer(name, least, found, findings));
        read.collect()
    }

    fn as_integer<T: TryFrom<i128>>(
        &self,
        name: &str,
        least: i128,
        found: &Located,
        findings: &mut Findings,
    ) -> Option<Found<T>> {
        let number = match found.value {
            Value::Integer(number) if number >= least => T::try_from(number).ok(),
            _ => None,
        };
        if number.is_none() {
            self.refuse(name, &format!("a whole number of at least {least}"), found, findings);
        }
        number.map(|value| Found { value, line: found.line })
    }

    /// `true` or `false`, in any of the spellings that protobuf knows.
    pub(super) fn flag(
        &mut self,
        name: &'static str,
        findings: &mut Findings,
    ) -> Option<Found<bool>> {
        let found = self.value(name, findings)?;
        let value = match &found.value {
            Value::Word(word) if ["true", "True", "t"].contains(&word.as_str()) => true,
            Value::Word(word) if ["false", "False", "f"].contains(&word.as_str()) => false,
            Value::Integer(1) => true,
            Value::Integer(0) => false,
            _ => {
                self.refuse(name, "true or false", found, findings);
                return None;
            }
        };
        Some(Found { value, line: found.line })
    }

    /// One of an enumeration, by its name or by its number: the place in the list.
    pub(super) fn choice<T: Copy>(
        &mut self,
        name: &'static str,
        names: &[(&str, T)],
        findings: &mut Findings,
    ) -> Option<Found<T>> {
        let found = self.value(name, findings)?;
        let chosen = match &found.value {
            Value::Word(word) => names.iter().find(|(name, _)| name == word),
            Value::Integer(number) => usize::try_from(*number).ok().and_then(|at| names.get(at)),
            _ => None,
        };
        if chosen.is_none() {
            let known: Vec<&str> = names.iter().map(|&(name, _)| name).collect();
            self.refuse(name, &format!("one of {}", known.join(", ")), found, findings);
        }
        chosen.map(|&(_, value)| Found { value, line: found.line })
    }

    /// Any number of messages.
    pub(super) fn messages(
        &mut self,
        name: &'static str,
        findings: &mut Findings,
    ) -> Vec<Reader<'a>> {
        let mut messages = Vec::new();
        for found in self.values(name) {
            match &found.value {
                Value::Message(message) => messages.push(Reader {
                    message,
                    path: format!("{}{name}.", self.path),
                    line: found.line,
                    asked: Vec::new(),
                }),
                _ => self.refuse(name, "fields in brackets", found, findings),
            }
        }
        messages
    }

    /// One message; that there are several is a problem.
    pub(super) fn message(
        &mut self,
        name: &'static str,
        findings: &mut Findings,
    ) -> Option<Reader<'a>> {
        let messages = self.messages(name, findings);
        if let Some(second) = messages.get(1) {
            findings.problem(second.line, format!("'{}' is given twice", self.path_of(name)));
        }
        messages.into_iter().next()
    }

    /// Notes that these fields are known and not used, where they are given.
    pub(super) fn ignore(&mut self, names: &[&'static str], findings: &mut Findings) {
        for &name in names {
            if let Some(field) = self.fields(name).next() {
                findings.note(field.line, format!("ignored: {}", self.path_of(name)));
            }
        }
    }

    /// Says that what these fields ask for is not done here, where they are given.
    pub(super) fn refuse_all(&mut self, names: &[(&'static str, &str)], findings: &mut Findings) {
        for &(name, reason) in names {
            if let Some(field) = self.fields(name).next() {
                let path = self.path_of(name);
                findings.problem(field.line, format!("'{path}' is not supported: {reason}"));
            }
        }
    }

    /// Notes the fields that nobody asked for.
    pub(super) fn close(self, findings: &mut Findings) {
        for field in &self.message.fields {
            if !self.asked.contains(&field.name.as_str()) {
                findings
                    .problem(field.line, format!("unknown field '{}'", self.path_of(&field.name)));
            }
        }
    }
}
