//! Texts between a process and those that compile for it: how many there are, and each with its length.

use std::io::{self, Read, Write};

/// The most texts of one message.
const MAX_TEXTS: u32 = 256;

/// The longest text.
const MAX_TEXT_BYTES: u32 = 256 << 20;

/// Writes a message.
pub(super) fn write(to: &mut impl Write, texts: &[&[u8]]) -> io::Result<()> {
    to.write_all(&(texts.len() as u32).to_le_bytes())?;
    for text in texts {
        to.write_all(&(text.len() as u32).to_le_bytes())?;
        to.write_all(text)?;
    }
    to.flush()
}

/// Reads a message; `None` where the other side has ended.
pub(super) fn read(from: &mut impl Read) -> io::Result<Option<Vec<Vec<u8>>>> {
    let mut count = [0; 4];
    match from.read_exact(&mut count) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        other => other?,
    }
    let count = bounded(u32::from_le_bytes(count), MAX_TEXTS)?;
    let mut text = || {
        let mut length = [0; 4];
        from.read_exact(&mut length)?;
        let mut text = vec![0; bounded(u32::from_le_bytes(length), MAX_TEXT_BYTES)?];
        from.read_exact(&mut text)?;
        Ok(text)
    };
    (0..count).map(|_| text()).collect::<io::Result<_>>().map(Some)
}

fn bounded(value: u32, most: u32) -> io::Result<usize> {
    match value <= most {
        true => Ok(value as usize),
        false => Err(io::Error::other(format!("{value} is more than {most}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_come_through_and_nonsense_does_not() {
        let mut bytes = Vec::new();
        write(&mut bytes, &[b"one", b"", b"three"]).unwrap();
        write(&mut bytes, &[]).unwrap();
        let mut from = &bytes[..];
        let texts = read(&mut from).unwrap().unwrap();
        assert_eq!(texts, [&b"one"[..], b"", b"three"]);
        assert_eq!(read(&mut from).unwrap().unwrap().len(), 0);
        assert!(read(&mut from).unwrap().is_none());
        assert!(read(&mut &bytes[..9]).is_err(), "cut short");
        assert!(read(&mut &[0xFF; 8][..]).is_err(), "too long");
    }
}
