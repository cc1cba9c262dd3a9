//! Texts in quotes, whose escapes stand for bytes.

use super::SyntaxProblem;

/// The bytes of a text, from behind its opening quote, and how many of the source they took with the closing one.
pub(super) fn unescape(
    source: &[u8],
    quote: u8,
    line: usize,
) -> Result<(Vec<u8>, usize), SyntaxProblem> {
    let mut bytes = Vec::new();
    let mut at = 0;
    loop {
        match source.get(at) {
            None | Some(b'\n') => {
                return Err(SyntaxProblem::new(line, "a text does not end on its line"));
            }
            Some(&byte) if byte == quote => return Ok((bytes, at + 1)),
            Some(b'\\') => {
                let taken = escape(&source[at + 1..], &mut bytes).ok_or_else(|| {
                    SyntaxProblem::new(line, "a text holds an escape that is not known")
                })?;
                at += 1 + taken;
            }
            Some(&byte) => {
                bytes.push(byte);
                at += 1;
            }
        }
    }
}

/// What stands behind a backslash, and how many bytes of the source it took.
fn escape(source: &[u8], bytes: &mut Vec<u8>) -> Option<usize> {
    let plain = match source.first()? {
        b'a' => 0x07,
        b'b' => 0x08,
        b'f' => 0x0c,
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'v' => 0x0b,
        &mark @ (b'\\' | b'\'' | b'"' | b'?') => mark,
        b'0'..=b'7' => {
            let (number, taken) = digits(source, 8, 3)?;
            bytes.push(u8::try_from(number).ok()?);
            return Some(taken);
        }
        b'x' | b'X' => {
            let (number, taken) = digits(&source[1..], 16, 2)?;
            bytes.push(u8::try_from(number).ok()?);
            return Some(1 + taken);
        }
        &kind @ (b'u' | b'U') => {
            let length = if kind == b'u' { 4 } else { 8 };
            let (number, taken) = digits(&source[1..], 16, length)?;
            let character = char::from_u32(number).filter(|_| taken == length)?;
            bytes.extend(character.encode_utf8(&mut [0; 4]).bytes());
            return Some(1 + taken);
        }
        _ => return None,
    };
    bytes.push(plain);
    Some(1)
}

/// A number of at least one digit and at most so many.
fn digits(source: &[u8], radix: u32, most: usize) -> Option<(u32, usize)> {
    let is_digit = |byte: &&u8| char::from(**byte).is_digit(radix);
    let length = source.iter().take(most).take_while(is_digit).count();
    let text = std::str::from_utf8(&source[..length]).ok()?;
    Some((u32::from_str_radix(text, radix).ok()?, length))
}
