//! How long a client waits, as it says itself.

use std::time::Duration;

use tonic::metadata::MetadataMap;

/// The most digits that the protocol allows.
const MAX_DIGITS: usize = 8;

/// What `grpc-timeout` says; nothing where it is absent or makes no sense.
pub(super) fn of(metadata: &MetadataMap) -> Option<Duration> {
    let text = metadata.get("grpc-timeout")?.to_str().ok()?;
    let (digits, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    if digits.is_empty() || digits.len() > MAX_DIGITS {
        return None;
    }
    let count: u64 = digits.parse().ok()?;
    match unit {
        "H" => Some(Duration::from_secs(count * 3600)),
        "M" => Some(Duration::from_secs(count * 60)),
        "S" => Some(Duration::from_secs(count)),
        "m" => Some(Duration::from_millis(count)),
        "u" => Some(Duration::from_micros(count)),
        "n" => Some(Duration::from_nanos(count)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &'static str) -> Option<Duration> {
        let mut metadata = MetadataMap::new();
        metadata.insert("grpc-timeout", text.parse().unwrap());
        of(&metadata)
    }

    #[test]
    fn every_unit_is_read_and_nonsense_is_not() {
        assert_eq!(read("2H"), Some(Duration::from_secs(7200)));
        assert_eq!(read("250m"), Some(Duration::from_millis(250)));
        assert_eq!(read("99999999n"), Some(Duration::from_nanos(99_999_999)));
        for nonsense in ["", "m", "12", "1x", "-1S", "123456789S", "+5S "] {
            assert_eq!(read(nonsense), None, "{nonsense}");
        }
        assert_eq!(of(&MetadataMap::new()), None);
    }
}
