//! How long ago, as people write it.

use std::time::Duration;

const MINUTE: u64 = 60;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;
const WEEK: u64 = 7 * DAY;

/// A whole number and a unit: `90m`, `12h`, `30d`, `8w`.
pub(super) fn parse(text: &str) -> Result<Duration, String> {
    let problem = || format!("'{text}' is not a whole number and a unit: 90m, 12h, 30d or 8w");
    let unit = text.chars().last().ok_or_else(problem)?;
    let seconds = match unit {
        'm' => MINUTE,
        'h' => HOUR,
        'd' => DAY,
        'w' => WEEK,
        _ => return Err(problem()),
    };
    let digits = &text[..text.len() - unit.len_utf8()];
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(problem());
    }
    let count: u64 = digits.parse().map_err(|_| problem())?;
    count.checked_mul(seconds).map(Duration::from_secs).ok_or_else(problem)
}

/// An age, roughly.
pub(super) fn ago(age: Duration) -> String {
    let seconds = age.as_secs();
    let (count, unit) = match seconds {
        0..MINUTE => return "just now".into(),
        MINUTE..HOUR => (seconds / MINUTE, "min"),
        HOUR..DAY => (seconds / HOUR, "h"),
        DAY.. => (seconds / DAY, "d"),
    };
    format!("{count} {unit} ago")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_read() {
        assert_eq!(parse("90m"), Ok(Duration::from_secs(5400)));
        assert_eq!(parse("0h"), Ok(Duration::ZERO));
        assert_eq!(parse("30d"), Ok(Duration::from_secs(30 * 86400)));
        assert_eq!(parse("2w"), parse("14d"));
        for bad in [
            "",
            "d",
            "30",
            "-3d",
            "+3d",
            "3.5d",
            "3 d",
            "3y",
            "3ä",
            "99999999999999999999w",
            "9999999999999999999w",
        ] {
            assert!(parse(bad).is_err_and(|problem| problem.contains(bad)), "{bad}");
        }
    }

    #[test]
    fn ages_are_told() {
        let cases =
            [(3, "just now"), (119, "1 min ago"), (7200, "2 h ago"), (90 * 86400, "90 d ago")];
        for (seconds, expected) in cases {
            assert_eq!(ago(Duration::from_secs(seconds)), expected);
        }
    }
}
