//! Shares as people write them.

use std::fmt;
use std::str::FromStr;

/// A part of a device, above nothing and at most all of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Share {
    percent: f64,
}

impl Share {
    /// In percent.
    pub(super) fn percent(self) -> f64 {
        self.percent
    }

    /// So much of a number of cores or SMs, in whole ones, at least one.
    pub(super) fn of(self, count: usize) -> usize {
        let part = (self.percent / 100.0 * count as f64).round() as usize;
        part.clamp(1, count.max(1))
    }
}

impl FromStr for Share {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let number = text.strip_suffix('%').and_then(|number| number.trim().parse::<f64>().ok());
        let number = number.ok_or_else(|| format!("'{text}' is not a share such as 30%"))?;
        if !(number > 0.0 && number <= 100.0) {
            return Err(format!("{text} is not above 0% and at most 100%"));
        }
        Ok(Self { percent: number })
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}%", self.percent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_percent() {
        for (text, percent) in [("30%", 30.0), ("100%", 100.0), ("0.5%", 0.5), ("12.5 %", 12.5)] {
            let share: Share = text.parse().unwrap();
            assert_eq!(share.percent(), percent, "{text}");
        }
        for text in ["", "%", "30", "0.3", "0%", "-5%", "101%", "nan%", "inf%", "x%", "30%%"] {
            assert!(text.parse::<Share>().is_err(), "{text}");
        }
    }

    #[test]
    fn parts_are_whole_and_never_nothing() {
        for (text, count, part) in [
            ("50%", 2, 1),
            ("30%", 2, 1),
            ("1%", 64, 1),
            ("75%", 2, 2),
            ("30%", 132, 40),
            ("100%", 3, 3),
            ("50%", 1, 1),
        ] {
            assert_eq!(text.parse::<Share>().unwrap().of(count), part, "{text} of {count}");
        }
    }
}
