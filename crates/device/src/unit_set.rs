//! Sets of units.

use std::fmt;
use std::str::FromStr;

/// A sorted set of unit numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct UnitSet(Vec<usize>);

impl UnitSet {
    /// The units from 0 up to, not including, `count`.
    pub fn first(count: usize) -> Self {
        Self((0..count).collect())
    }

    /// The units in increasing order.
    pub fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        self.0.iter().copied()
    }

    /// The units in increasing order.
    pub fn as_slice(&self) -> &[usize] {
        &self.0
    }

    /// How many units there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// True where there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// True where no unit is in both sets.
    pub fn is_disjoint(&self, other: &Self) -> bool {
        self.iter().all(|unit| other.0.binary_search(&unit).is_err())
    }
}

impl FromIterator<usize> for UnitSet {
    fn from_iter<I: IntoIterator<Item = usize>>(units: I) -> Self {
        let mut units: Vec<usize> = units.into_iter().collect();
        units.sort_unstable();
        units.dedup();
        Self(units)
    }
}

impl fmt::Display for UnitSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units: Vec<String> = self.iter().map(|unit| unit.to_string()).collect();
        f.write_str(&units.join(","))
    }
}

/// A text that is not a list of units.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not a list of units such as 0,1 or 0-3")]
pub struct ParseUnitsError(String);

/// More units than any device has; a guard against a range that would fill memory.
const MAX_UNITS: usize = 65_536;

impl FromStr for UnitSet {
    type Err = ParseUnitsError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let refuse = || ParseUnitsError(text.to_string());
        let number = |part: &str| {
            part.trim().parse::<usize>().ok().filter(|&n| n < MAX_UNITS).ok_or_else(refuse)
        };
        let mut units = Vec::new();
        for part in text.split(',') {
            match part.split_once('-') {
                None => units.push(number(part)?),
                Some((first, last)) => {
                    let (first, last) = (number(first)?, number(last)?);
                    if first > last {
                        return Err(refuse());
                    }
                    units.extend(first..=last);
                }
            }
        }
        Ok(units.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_and_ranges_are_read() {
        for (text, units) in [
            ("0", vec![0]),
            ("1,0", vec![0, 1]),
            ("0-2,2,5", vec![0, 1, 2, 5]),
            (" 3 , 4 ", vec![3, 4]),
        ] {
            assert_eq!(text.parse::<UnitSet>().unwrap().as_slice(), units);
        }
        for text in ["", "a", "1-", "3-1", "-1", "1,,2", "99999999999999999999", "0-99999999"] {
            assert!(text.parse::<UnitSet>().is_err(), "{text}");
        }
    }

    #[test]
    fn disjoint_sets_share_no_unit() {
        let set = |units: &[usize]| units.iter().copied().collect::<UnitSet>();
        assert!(set(&[0, 2]).is_disjoint(&set(&[1, 3])));
        assert!(!set(&[0, 2]).is_disjoint(&set(&[2])));
    }
}
