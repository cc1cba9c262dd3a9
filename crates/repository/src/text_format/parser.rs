//! Tokens as a tree of fields.

use super::SyntaxProblem;
use super::lexer::{Lexer, Token};
use super::tree::{Field, Located, Message, Value};

/// How deep messages may stand in messages. Triton's own need eight; the reading of one calls itself for the next.
const MAX_DEPTH: usize = 32;

/// Reads a text as the fields of one message.
pub(crate) fn parse(source: &str) -> Result<Message, SyntaxProblem> {
    let mut lexer = Lexer::new(source)?;
    let mut message = Message::default();
    while lexer.peek().is_some() {
        message.fields.push(field(&mut lexer, 0)?);
    }
    Ok(message)
}

fn field(lexer: &mut Lexer<'_>, depth: usize) -> Result<Field, SyntaxProblem> {
    let line = lexer.line();
    let name = match lexer.next()? {
        Some(Token::Word(name)) => name,
        Some(Token::Mark('[')) => {
            return Err(SyntaxProblem::new(line, "extensions in '[...]' are not known here"));
        }
        other => {
            let what = format!("a field's name is expected, not {}", described(other.as_ref()));
            return Err(SyntaxProblem::new(line, what));
        }
    };
    let has_colon = lexer.take(':')?;
    let values = if lexer.take('[')? { list(lexer, depth)? } else { vec![value(lexer, depth)?] };
    let all_messages = values.iter().all(|located| matches!(located.value, Value::Message(_)));
    if !has_colon && !all_messages {
        return Err(SyntaxProblem::new(line, format!("':' is missing behind '{name}'")));
    }
    if !lexer.take(',')? {
        lexer.take(';')?;
    }
    Ok(Field { name, line, values })
}

fn list(lexer: &mut Lexer<'_>, depth: usize) -> Result<Vec<Located>, SyntaxProblem> {
    let mut values = Vec::new();
    if lexer.take(']')? {
        return Ok(values);
    }
    loop {
        values.push(value(lexer, depth)?);
        if lexer.take(']')? {
            return Ok(values);
        }
        if !lexer.take(',')? {
            let what = format!("',' or ']' is expected, not {}", described(lexer.peek()));
            return Err(SyntaxProblem::new(lexer.line(), what));
        }
    }
}

fn value(lexer: &mut Lexer<'_>, depth: usize) -> Result<Located, SyntaxProblem> {
    let line = lexer.line();
    let value = match lexer.next()? {
        Some(Token::Mark('{')) => Value::Message(message(lexer, '}', line, depth + 1)?),
        Some(Token::Mark('<')) => Value::Message(message(lexer, '>', line, depth + 1)?),
        Some(Token::Mark('-')) => negative(lexer)?,
        Some(Token::Integer(number)) => Value::Integer(number.into()),
        Some(Token::Float(number)) => Value::Float(number),
        Some(Token::Word(word)) => Value::Word(word),
        Some(Token::Text(bytes)) => Value::Text(text(lexer, bytes, line)?),
        other => {
            let what = format!("a value is expected, not {}", described(other.as_ref()));
            return Err(SyntaxProblem::new(line, what));
        }
    };
    Ok(Located { line, value })
}

fn message(
    lexer: &mut Lexer<'_>,
    end: char,
    line: usize,
    depth: usize,
) -> Result<Message, SyntaxProblem> {
    if depth > MAX_DEPTH {
        let what = format!("messages stand in each other more than {MAX_DEPTH} deep");
        return Err(SyntaxProblem::new(line, what));
    }
    let mut message = Message::default();
    while !lexer.take(end)? {
        if lexer.peek().is_none() {
            return Err(SyntaxProblem::new(line, format!("what begins here has no '{end}'")));
        }
        message.fields.push(field(lexer, depth)?);
    }
    Ok(message)
}

fn negative(lexer: &mut Lexer<'_>) -> Result<Value, SyntaxProblem> {
    let line = lexer.line();
    match lexer.next()? {
        Some(Token::Integer(number)) if number <= i64::MIN.unsigned_abs() => {
            Ok(Value::Integer(-i128::from(number)))
        }
        Some(Token::Integer(number)) => Ok(Value::Float(-(number as f64))),
        Some(Token::Float(number)) => Ok(Value::Float(-number)),
        other => {
            let word = match &other {
                Some(Token::Word(word)) => special_number(word),
                _ => None,
            };
            word.map(|number| Value::Float(-number)).ok_or_else(|| {
                let found = described(other.as_ref());
                SyntaxProblem::new(line, format!("a number is expected behind '-', not {found}"))
            })
        }
    }
}

/// What bare words mean where a number may stand.
fn special_number(word: &str) -> Option<f64> {
    match word.to_ascii_lowercase().as_str() {
        "inf" | "infinity" => Some(f64::INFINITY),
        "nan" => Some(f64::NAN),
        _ => None,
    }
}

/// A text in quotes, with those that follow it: they are one.
fn text(lexer: &mut Lexer<'_>, mut bytes: Vec<u8>, line: usize) -> Result<String, SyntaxProblem> {
    while let Some(Token::Text(more)) = lexer.peek() {
        bytes.extend_from_slice(more);
        lexer.next()?;
    }
    String::from_utf8(bytes).map_err(|_| SyntaxProblem::new(line, "a text is not UTF-8"))
}

fn described(token: Option<&Token>) -> String {
    match token {
        None => "the end of the file".into(),
        Some(Token::Word(word)) => format!("'{word}'"),
        Some(Token::Integer(number)) => number.to_string(),
        Some(Token::Float(number)) => number.to_string(),
        Some(Token::Text(_)) => "a text in quotes".into(),
        Some(Token::Mark(mark)) => format!("'{}'", mark.escape_debug()),
    }
}
