//! Days as people write them.

const MS_PER_DAY: u64 = 24 * 60 * 60 * 1000;
/// From the first of March of the year 0 to the first of January 1970.
const DAYS_BEFORE: u64 = 719_468;
const DAYS_PER_ERA: u64 = 146_097;

/// The day of an instant in milliseconds since 1970, in universal time: `2026-03-01`.
pub(crate) fn day(unix_ms: u64) -> String {
    // Years are counted from March on, so that a leap day is the last of its year; 400 of them repeat.
    let days = unix_ms / MS_PER_DAY + DAYS_BEFORE;
    let (era, day) = (days / DAYS_PER_ERA, days % DAYS_PER_ERA);
    let year = (day - day / 1460 + day / 36_524 - day / (DAYS_PER_ERA - 1)) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let year = era * 400 + year + u64::from(month >= 10);
    let month = if month < 10 { month + 3 } else { month - 9 };
    format!("{year:04}-{month:02}-{day:02}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_told() {
        for (unix_s, expected) in [
            (0, "1970-01-01"),
            (86_399, "1970-01-01"),
            (951_782_399, "2000-02-28"),
            (951_782_400, "2000-02-29"),
            (951_868_800, "2000-03-01"),
            (1_700_000_000, "2023-11-14"),
            (1_735_689_599, "2024-12-31"),
            (4_107_542_400, "2100-03-01"),
        ] {
            assert_eq!(day(unix_s * 1000), expected);
        }
        day(u64::MAX);
    }
}
