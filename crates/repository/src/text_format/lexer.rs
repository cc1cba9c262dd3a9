//! A text as tokens, each with its line.

use super::SyntaxProblem;
use super::escapes::unescape;

/// The smallest parts of a text.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token {
    /// A name of a field or of an enumeration, `true`, `inf` and the like.
    Word(String),
    /// A whole number without its sign.
    Integer(u64),
    /// Another number without its sign.
    Float(f64),
    /// The bytes of a text in quotes.
    Text(Vec<u8>),
    /// Any other mark.
    Mark(char),
}

/// Reads tokens one by one, with one to look ahead at.
pub(super) struct Lexer<'a> {
    source: &'a str,
    at: usize,
    line: usize,
    ahead: Option<(Token, usize)>,
}

impl<'a> Lexer<'a> {
    pub(super) fn new(source: &'a str) -> Result<Self, SyntaxProblem> {
        // Editors of some systems begin a text with a mark of its encoding.
        let source = source.strip_prefix('\u{feff}').unwrap_or(source);
        let mut lexer = Self { source, at: 0, line: 1, ahead: None };
        lexer.advance()?;
        Ok(lexer)
    }

    /// The next token, which stays; `None` at the end.
    pub(super) fn peek(&self) -> Option<&Token> {
        self.ahead.as_ref().map(|(token, _)| token)
    }

    /// The line of the next token, or the last one.
    pub(super) fn line(&self) -> usize {
        self.ahead.as_ref().map_or(self.line, |&(_, line)| line)
    }

    /// Takes the next token.
    pub(super) fn next(&mut self) -> Result<Option<Token>, SyntaxProblem> {
        let token = self.ahead.take().map(|(token, _)| token);
        self.advance()?;
        Ok(token)
    }

    /// Takes the next token where it is this mark.
    pub(super) fn take(&mut self, mark: char) -> Result<bool, SyntaxProblem> {
        let is_mark = self.peek() == Some(&Token::Mark(mark));
        if is_mark {
            self.next()?;
        }
        Ok(is_mark)
    }

    fn advance(&mut self) -> Result<(), SyntaxProblem> {
        self.skip_blanks();
        let line = self.line;
        self.ahead = self.read()?.map(|token| (token, line));
        Ok(())
    }

    fn skip_blanks(&mut self) {
        let mut is_comment = false;
        for byte in self.source[self.at..].bytes() {
            match byte {
                b'\n' => {
                    self.line += 1;
                    is_comment = false;
                }
                b'#' => is_comment = true,
                _ if is_comment => {}
                b' ' | b'\t' | b'\r' | 0x0b | 0x0c => {}
                _ => return,
            }
            self.at += 1;
        }
    }

    fn read(&mut self) -> Result<Option<Token>, SyntaxProblem> {
        let rest = &self.source[self.at..];
        let Some(first) = rest.chars().next() else { return Ok(None) };
        let digit_follows = rest[first.len_utf8()..].starts_with(|c: char| c.is_ascii_digit());
        let token = match first {
            '"' | '\'' => {
                let (bytes, taken) = unescape(&rest.as_bytes()[1..], first as u8, self.line)?;
                self.at += 1 + taken;
                return Ok(Some(Token::Text(bytes)));
            }
            'a'..='z' | 'A'..='Z' | '_' => Token::Word(self.run_of(is_word)),
            '0'..='9' => self.number()?,
            '.' if digit_follows => self.number()?,
            mark => {
                self.at += mark.len_utf8();
                Token::Mark(mark)
            }
        };
        Ok(Some(token))
    }

    /// Takes characters as long as they belong.
    fn run_of(&mut self, belongs: impl Fn(char) -> bool) -> String {
        let rest = &self.source[self.at..];
        let length = rest.find(|c| !belongs(c)).unwrap_or(rest.len());
        self.at += length;
        rest[..length].to_string()
    }

    /// A number, with all that touches it: what is no number as a whole is not taken for a number and something else.
    fn number(&mut self) -> Result<Token, SyntaxProblem> {
        let start = self.at;
        let is_hexadecimal = self.source[start..].starts_with("0x");
        let mut before = ' ';
        for c in self.source[start..].chars() {
            let is_sign = matches!(c, '+' | '-') && matches!(before, 'e' | 'E') && !is_hexadecimal;
            if !(is_word(c) || c == '.' || is_sign) {
                break;
            }
            self.at += c.len_utf8();
            before = c;
        }
        let text = &self.source[start..self.at];
        whole(text)
            .map(Token::Integer)
            .or_else(|| fraction(text).map(Token::Float))
            .ok_or_else(|| SyntaxProblem::new(self.line, format!("'{text}' is no number")))
    }
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// Decimal, hexadecimal or, behind a zero, octal.
fn whole(text: &str) -> Option<u64> {
    let lower = text.to_ascii_lowercase();
    match lower.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None if lower.len() > 1 && lower.starts_with('0') => u64::from_str_radix(&lower, 8).ok(),
        None => lower.parse().ok(),
    }
}

/// With a point, an exponent or an `f` behind it, or longer than whole numbers can be; finite.
fn fraction(text: &str) -> Option<f64> {
    let digits = text.strip_suffix(['f', 'F']).unwrap_or(text);
    let is_octal = digits.len() > 1
        && digits.starts_with('0')
        && digits.bytes().all(|byte| byte.is_ascii_digit());
    let number: f64 = digits.parse().ok()?;
    (number.is_finite() && !is_octal).then_some(number)
}
