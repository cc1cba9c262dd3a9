//! Lengths of time as people write them: a number and its unit.

use weft_scheduler::Span;

/// Reads a length of time above zero, such as `50ms`, `1.5s` or `200us`.
pub(crate) fn parse(text: &str) -> Result<Span, String> {
    let unit_at = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let (number, unit) = text.split_at(unit_at);
    let seconds = match unit {
        "us" => 1e-6,
        "ms" => 1e-3,
        "s" => 1.0,
        "m" => 60.0,
        _ => return Err("it must be a number with its unit: us, ms, s or m".to_string()),
    };
    let span = number.trim().parse::<f64>().ok().map(|number| Span::from_s(number * seconds));
    let is_usable = |span: &Span| *span > Span::ZERO && *span < Span::MAX;
    span.filter(is_usable).ok_or_else(|| "it must be a length of time above 0".to_string())
}

/// The same, where a number without a unit is seconds.
pub(crate) fn parse_or_seconds(text: &str) -> Result<Span, String> {
    match text.trim().ends_with(|last: char| last.is_ascii_digit()) {
        true => parse(&format!("{text}s")),
        false => parse(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units() {
        for (text, us) in [("50ms", 5e4), ("1.5s", 1.5e6), ("200 us", 200.0), ("2m", 1.2e8)] {
            assert_eq!(parse(text), Ok(Span::from_us(us)), "{text}");
        }
        for text in ["", "50", "ms", "-1s", "0ms", "nan s", "infs", "1h", "1e30s", "5 ms 3"] {
            assert!(parse(text).is_err(), "{text}");
        }
        for (text, s) in [("8", 8.0), ("0.5", 0.5), ("8s", 8.0), ("20ms", 0.02)] {
            assert_eq!(parse_or_seconds(text), Ok(Span::from_s(s)), "{text}");
        }
        for text in ["", "0", "-1", "s", "nan"] {
            assert!(parse_or_seconds(text).is_err(), "{text}");
        }
    }
}
