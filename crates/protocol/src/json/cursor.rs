//! A place in a JSON text that moves forward as values are read.

use std::borrow::Cow;

use super::number::Number;
use crate::parameters::ParameterValue;

/// How deep values that mean nothing here may be nested.
const MAX_DEPTH: usize = 128;

/// Reads JSON from front to back. Errors say what is wrong and at which byte.
#[derive(Clone)]
pub(super) struct Cursor<'a> {
    text: &'a str,
    place: usize,
    /// `NaN`, `Infinity` and `-Infinity` count as numbers.
    reads_non_finite: bool,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, place: 0, reads_non_finite: false }
    }

    /// One that also takes numbers that JSON has no form for.
    pub(super) fn with_non_finite(text: &'a str) -> Self {
        Self { reads_non_finite: true, ..Self::new(text) }
    }

    /// Bytes that are not read yet.
    pub(super) fn remaining_bytes(&self) -> usize {
        self.text.len() - self.place
    }

    pub(super) fn error(&self, problem: &str) -> String {
        format!("{problem} at byte {} of the JSON", self.place)
    }

    fn byte(&self) -> Option<u8> {
        self.text.as_bytes().get(self.place).copied()
    }

    /// The first byte of what comes next, behind white space.
    pub(super) fn peek(&mut self) -> Option<u8> {
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.byte() {
            self.place += 1;
        }
        self.byte()
    }

    /// Takes `byte` where it comes next.
    pub(super) fn takes(&mut self, byte: u8) -> bool {
        let next = self.peek() == Some(byte);
        self.place += usize::from(next);
        next
    }

    fn take(&mut self, byte: u8) -> Result<(), String> {
        match self.takes(byte) {
            true => Ok(()),
            false => Err(self.error(&format!("'{}' is missing", byte as char))),
        }
    }

    /// Nothing but white space may be left.
    pub(super) fn end(&mut self) -> Result<(), String> {
        match self.peek() {
            None => Ok(()),
            Some(_) => Err(self.error("something follows the value")),
        }
    }

    /// After an entry: true where another one follows, false where `close` ends them.
    pub(super) fn another(&mut self, close: u8) -> Result<bool, String> {
        if self.takes(b',') {
            return Ok(true);
        }
        match self.takes(close) {
            true => Ok(false),
            false => Err(self.error(&format!("',' or '{}' is missing", close as char))),
        }
    }

    /// Reads an object; `member` reads each value.
    pub(super) fn object<E: From<String>>(
        &mut self,
        mut member: impl FnMut(&mut Self, &str) -> Result<(), E>,
    ) -> Result<(), E> {
        self.take(b'{')?;
        if self.takes(b'}') {
            return Ok(());
        }
        loop {
            let name = self.text()?;
            self.take(b':')?;
            member(self, &name)?;
            if !self.another(b'}')? {
                return Ok(());
            }
        }
    }

    /// Reads an array; `entry` reads each value.
    pub(super) fn array<E: From<String>>(
        &mut self,
        mut entry: impl FnMut(&mut Self) -> Result<(), E>,
    ) -> Result<(), E> {
        self.take(b'[')?;
        if self.takes(b']') {
            return Ok(());
        }
        loop {
            entry(self)?;
            if !self.another(b']')? {
                return Ok(());
            }
        }
    }

    /// Reads a text.
    pub(super) fn text(&mut self) -> Result<Cow<'a, str>, String> {
        if self.peek() != Some(b'"') {
            return Err(self.error("a text is missing"));
        }
        let start = self.place;
        let is_plain = self.skip_text()?;
        if is_plain {
            return Ok(Cow::Borrowed(&self.text[start + 1..self.place - 1]));
        }
        match serde_json::from_str(&self.text[start..self.place]) {
            Ok(text) => Ok(Cow::Owned(text)),
            Err(_) => Err(self.error("a text with a wrong escape ends")),
        }
    }

    /// Passes over a text, up to its closing quote; true where it has no escape.
    fn skip_text(&mut self) -> Result<bool, String> {
        self.place += 1;
        let mut is_plain = true;
        loop {
            match self.byte() {
                Some(b'"') => {
                    self.place += 1;
                    return Ok(is_plain);
                }
                Some(b'\\') => {
                    is_plain = false;
                    // Whatever follows, a quote does not end the text.
                    self.place += 2;
                }
                Some(0..0x20) => return Err(self.error("a control character is in a text")),
                Some(_) => self.place += 1,
                None => {
                    self.place = self.text.len();
                    return Err(self.error("a text does not end"));
                }
            }
        }
    }

    /// Reads a number.
    pub(super) fn number(&mut self) -> Result<Number<'a>, String> {
        self.peek();
        let start = self.place;
        if self.byte() == Some(b'-') {
            self.place += 1;
        }
        let mut mantissa = 0;
        let whole_digits = self.digits(&mut mantissa);
        if whole_digits == 0 {
            return self.non_finite(start);
        }
        if whole_digits > 1 && self.text.as_bytes()[self.place - whole_digits] == b'0' {
            return Err(self.error("a number with a leading zero ends"));
        }
        let mut fraction_digits = 0;
        if self.byte() == Some(b'.') {
            self.place += 1;
            fraction_digits = self.digits(&mut mantissa);
            if fraction_digits == 0 {
                return Err(self.error("a digit is missing"));
            }
        }
        let has_exponent = matches!(self.byte(), Some(b'e' | b'E'));
        if has_exponent {
            self.place += 1;
            if let Some(b'+' | b'-') = self.byte() {
                self.place += 1;
            }
            if self.digits(&mut 0) == 0 {
                return Err(self.error("a digit is missing"));
            }
        }
        let text = &self.text[start..self.place];
        let digits = whole_digits + fraction_digits;
        Ok(Number::new(text, mantissa, digits, fraction_digits, has_exponent))
    }

    /// Passes over digits, appends them to `mantissa` and says how many there were.
    fn digits(&mut self, mantissa: &mut u64) -> usize {
        let start = self.place;
        while let Some(digit @ b'0'..=b'9') = self.byte() {
            *mantissa = mantissa.wrapping_mul(10).wrapping_add(u64::from(digit - b'0'));
            self.place += 1;
        }
        self.place - start
    }

    fn non_finite(&mut self, start: usize) -> Result<Number<'a>, String> {
        for name in ["NaN", "-NaN", "Infinity", "-Infinity", "Inf", "-Inf"] {
            if !self.text[start..].starts_with(name) {
                continue;
            }
            self.place = start;
            if self.reads_non_finite {
                self.place += name.len();
                return Ok(Number::named(name));
            }
            return Err(self.error(&format!(
                "{name} is not JSON: numbers that are not finite must be sent as binary data; found"
            )));
        }
        Err(self.error("a number is missing"))
    }

    /// Takes `word` where it comes next.
    fn takes_word(&mut self, word: &str) -> bool {
        self.peek();
        let next = self.text[self.place..].starts_with(word);
        self.place += if next { word.len() } else { 0 };
        next
    }

    /// Reads `true` or `false`, where one of them comes next.
    pub(super) fn bool(&mut self) -> Option<bool> {
        match self.takes_word("true") {
            true => Some(true),
            false => self.takes_word("false").then_some(false),
        }
    }

    /// Reads any value as that of a parameter.
    pub(super) fn parameter(&mut self) -> Result<ParameterValue<'a>, String> {
        Ok(match self.peek() {
            Some(b'"') => ParameterValue::Text(self.text()?),
            Some(b't' | b'f') => match self.bool() {
                Some(value) => ParameterValue::Bool(value),
                None => return Err(self.error("a value is missing")),
            },
            Some(b'-' | b'0'..=b'9') => {
                let number = self.number()?.text;
                match number.parse() {
                    Ok(integer) => ParameterValue::Integer(integer),
                    Err(_) => ParameterValue::Float(number.parse().unwrap_or(f64::NAN)),
                }
            }
            _ => {
                self.skip()?;
                ParameterValue::Other
            }
        })
    }

    /// Passes over any value.
    pub(super) fn skip(&mut self) -> Result<(), String> {
        // One bit for each value that is open: set for an object, clear for an array.
        let mut open = 0u128;
        let mut depth = 0;
        loop {
            match self.peek() {
                Some(bracket @ (b'{' | b'[')) => {
                    if depth == MAX_DEPTH {
                        return Err(self.error("values are nested too deep"));
                    }
                    self.place += 1;
                    depth += 1;
                    let is_object = bracket == b'{';
                    open = open << 1 | u128::from(is_object);
                    if !self.takes(if is_object { b'}' } else { b']' }) {
                        self.skip_name(is_object)?;
                        continue;
                    }
                    depth -= 1;
                    open >>= 1;
                }
                Some(b'"') => {
                    self.text()?;
                }
                Some(b't' | b'f' | b'n') => {
                    if self.bool().is_none() && !self.takes_word("null") {
                        return Err(self.error("a value is missing"));
                    }
                }
                _ => {
                    self.number()?;
                }
            }
            loop {
                if depth == 0 {
                    return Ok(());
                }
                let is_object = open & 1 == 1;
                if self.another(if is_object { b'}' } else { b']' })? {
                    self.skip_name(is_object)?;
                    break;
                }
                depth -= 1;
                open >>= 1;
            }
        }
    }

    /// Passes over the name of an object's member.
    fn skip_name(&mut self, is_object: bool) -> Result<(), String> {
        if is_object {
            self.text()?;
            self.take(b':')?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
