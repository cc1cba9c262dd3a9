//! The text of a program as words and marks, each with its line.

/// A word or a mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Token<'a> {
    /// A name, a number, or an instruction with all that is said behind its dots.
    Word(&'a str),
    Mark(char),
}

/// The tokens of a text, and the lines they are on, counted from one.
pub(super) fn tokens(text: &str) -> Vec<(Token<'_>, u32)> {
    let bytes = text.as_bytes();
    let mut found = Vec::new();
    let (mut at, mut line) = (0, 1);
    while at < bytes.len() {
        match bytes[at] {
            b'\n' => {
                line += 1;
                at += 1;
            }
            b if b.is_ascii_whitespace() => at += 1,
            b'/' if bytes[at..].starts_with(b"//") => {
                at += bytes[at..].iter().position(|b| *b == b'\n').unwrap_or(bytes.len() - at);
            }
            b'/' if bytes[at..].starts_with(b"/*") => {
                let end = text[at..].find("*/").map_or(bytes.len(), |end| at + end + 2);
                line += bytes[at..end].iter().filter(|b| **b == b'\n').count() as u32;
                at = end;
            }
            b'"' => {
                let end = text[at + 1..].find('"').map_or(bytes.len(), |end| at + end + 2);
                found.push((Token::Word(&text[at..end]), line));
                at = end;
            }
            _ => {
                let end = word_end(bytes, at);
                let token = match end {
                    end if end > at => Token::Word(&text[at..end]),
                    _ => Token::Mark(text[at..].chars().next().unwrap_or(' ')),
                };
                found.push((token, line));
                at = end.max(at + 1);
            }
        }
    }
    found
}

/// Where the word that begins at a byte ends: there, where none does. Two colons belong to a word, one ends it.
fn word_end(bytes: &[u8], start: usize) -> usize {
    let mut at = start;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b if b.is_ascii_alphanumeric() || b"_$%.".contains(b) => at += 1,
            b':' if bytes.get(at + 1) == Some(&b':') => at += 2,
            _ => break,
        }
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_words_and_marks() {
        let text = "$L__1: // a label\n@!%p1 ld.shared::cluster.v2.f32 {%f1, %f2}, [%rd3+-8];\n/* two\nlines */ ret;";
        let found = tokens(text);
        let words: Vec<String> = found
            .iter()
            .map(|(token, line)| match token {
                Token::Word(word) => format!("{line}{word}"),
                Token::Mark(mark) => format!("{line}{mark}"),
            })
            .collect();
        let expected = "1$L__1 1: 2@ 2! 2%p1 2ld.shared::cluster.v2.f32 2{ 2%f1 2, 2%f2 2} 2, 2[ 2%rd3 2+ 2- 28 2] 2; 4ret 4;";
        assert_eq!(words.join(" "), expected);
    }
}
