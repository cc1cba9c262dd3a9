//! Records as bytes: what checksums are taken of, and what decides between records that are equal in rank.

use xxhash_rust::xxh3::xxh3_64;

/// Bytes that are equal only for equal records: every field is preceded by its length, or has a fixed one.
pub(super) struct Canonical(Vec<u8>);

impl Default for Canonical {
    fn default() -> Self {
        // Most records fit, so that reading thousands of them does not grow thousands of buffers step by step.
        Self(Vec::with_capacity(512))
    }
}

impl Canonical {
    pub(super) fn text(self, text: &str) -> Self {
        self.bytes(text.as_bytes())
    }

    pub(super) fn bytes(self, bytes: &[u8]) -> Self {
        let mut with_length = self.number(bytes.len() as u64);
        with_length.0.extend(bytes);
        with_length
    }

    pub(super) fn number(mut self, number: u64) -> Self {
        self.0.extend(number.to_le_bytes());
        self
    }

    pub(super) fn float(self, value: f64) -> Self {
        self.number(plain(value).to_bits())
    }

    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    /// As the database keeps it: its integers have a sign.
    pub(super) fn checksum(&self) -> i64 {
        xxh3_64(&self.0).cast_signed()
    }
}

/// One bit pattern for every number that the database keeps as one: all that is not finite is the same, and zero has no
/// sign.
pub(super) fn plain(value: f64) -> f64 {
    if value.is_finite() { value + 0.0 } else { f64::NAN }
}

/// As [`plain`], for features.
pub(super) fn plain_feature(value: f32) -> f32 {
    if value.is_finite() { value + 0.0 } else { f32::NAN }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_do_not_run_into_each_other() {
        let one = Canonical::default().text("ab").text("c").into_bytes();
        let other = Canonical::default().text("a").text("bc").into_bytes();
        assert_ne!(one, other);
    }

    #[test]
    fn numbers_that_are_kept_as_one_are_one() {
        let bytes = |value| Canonical::default().float(value).into_bytes();
        assert_eq!(bytes(f64::NAN), bytes(f64::NEG_INFINITY));
        assert_eq!(bytes(0.0), bytes(-0.0));
        assert_ne!(bytes(1.0), bytes(-1.0));
    }
}
