//! A number of a JSON text, and the float that is nearest to it.

/// The largest power of ten that a float of 64 bits holds exactly.
const MAX_EXACT_POWER: usize = 22;

/// The integers up to this are floats of 64 bits.
const MAX_EXACT_INTEGER: u64 = 1 << 53;

/// More digits than this may overflow 64 bits.
const MAX_DIGITS: usize = 19;

const POWERS: [f64; MAX_EXACT_POWER + 1] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16,
    1e17, 1e18, 1e19, 1e20, 1e21, 1e22,
];

/// A number as it is written.
#[derive(Clone, Copy, Debug)]
pub(super) struct Number<'a> {
    pub(super) text: &'a str,
    /// Its digits as one integer, where they are few enough.
    digits: Option<u64>,
    /// How many of its digits are behind the point.
    fraction_digits: usize,
    has_exponent: bool,
}

impl<'a> Number<'a> {
    /// `mantissa` is what its `digit_count` digits before the exponent make, modulo 2^64.
    pub(super) fn new(
        text: &'a str,
        mantissa: u64,
        digit_count: usize,
        fraction_digits: usize,
        has_exponent: bool,
    ) -> Self {
        let digits = (digit_count <= MAX_DIGITS).then_some(mantissa);
        Self { text, digits, fraction_digits, has_exponent }
    }

    /// One that is no number of JSON: not finite.
    pub(super) fn named(text: &'a str) -> Self {
        Self { text, digits: None, fraction_digits: 0, has_exponent: false }
    }

    /// The nearest float, where two exact floats and one operation give it.
    fn quotient(&self) -> Option<f64> {
        let mantissa = self.digits.filter(|&digits| digits <= MAX_EXACT_INTEGER)?;
        let power = POWERS.get(self.fraction_digits).filter(|_| !self.has_exponent)?;
        let value = mantissa as f64 / power;
        Some(if self.text.starts_with('-') { -value } else { value })
    }

    pub(super) fn to_f64(self) -> Option<f64> {
        self.quotient().or_else(|| self.text.parse().ok())
    }

    pub(super) fn to_f32(self) -> Option<f32> {
        // Rounding twice goes wrong only where the first result lies half way between two floats of 32 bits: at any other
        // place the number itself lies on the same side of that half as the result. Quotients are neither so small nor so
        // large that there would be fewer bits.
        let is_half_way = |wide: &f64| wide.to_bits() & ((1 << 29) - 1) == 1 << 28;
        match self.quotient().filter(|wide| !is_half_way(wide)) {
            Some(wide) => Some(wide as f32),
            None => self.text.parse().ok(),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::json::cursor::Cursor;

    fn check(text: &str) {
        let number = Cursor::new(text).number().unwrap();
        assert_eq!(number.to_f32().unwrap().to_bits(), text.parse::<f32>().unwrap().to_bits());
        assert_eq!(number.to_f64().unwrap().to_bits(), text.parse::<f64>().unwrap().to_bits());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4000))]

        #[test]
        fn floats_are_the_nearest(text in "-?(0|[1-9][0-9]{0,21})(\\.[0-9]{1,24})?(e[+-]?[0-9]{1,2})?") {
            check(&text);
        }

        #[test]
        fn floats_beside_half_ways_are_the_nearest(bits in 0x6400_0000u32 >> 1..0x7f00_0000 >> 1, more in 0usize..9) {
            let low = f32::from_bits(bits);
            let half_way = (f64::from(low) + f64::from(low.next_up())) / 2.0;
            check(&format!("{half_way}"));
            check(&format!("{half_way:.*}", more));
            check(&format!("-{half_way:.1}{}", "0".repeat(more) + "1"));
        }
    }

    #[test]
    fn the_half_way_itself_goes_to_the_even_one() {
        for text in ["16777217", "16777217.0", "16777219", "16777217.000001", "16777216.999999"] {
            check(text);
            check(&format!("-{text}"));
        }
    }
}
