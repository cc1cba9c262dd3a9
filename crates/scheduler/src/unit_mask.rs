//! Sets of a device's units, as bits: cheap to copy, to compare and to intersect.

use std::fmt;

/// The most units that one device may have.
pub const MAX_UNITS: u32 = 256;

const WORD_BITS: u32 = 64;
const WORDS: usize = (MAX_UNITS / WORD_BITS) as usize;

/// A set of units of one device, by their numbers.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct UnitMask([u64; WORDS]);

impl UnitMask {
    /// No unit.
    pub const EMPTY: UnitMask = UnitMask([0; WORDS]);

    /// The units from one number on, so many; at most up to [`MAX_UNITS`].
    pub fn range(first: u32, count: u32) -> Self {
        (first..first.saturating_add(count).min(MAX_UNITS)).collect()
    }

    /// How many units are in it.
    #[inline]
    pub fn len(self) -> u32 {
        self.0.iter().map(|word| word.count_ones()).sum()
    }

    /// Whether there are none.
    pub fn is_empty(self) -> bool {
        self == Self::EMPTY
    }

    /// Whether no unit is in both.
    pub fn is_disjoint(self, other: Self) -> bool {
        self.0.iter().zip(other.0).all(|(mine, others)| mine & others == 0)
    }

    /// Units in either.
    pub fn union(self, other: Self) -> Self {
        let mut words = self.0;
        words.iter_mut().zip(other.0).for_each(|(word, others)| *word |= others);
        Self(words)
    }

    /// Units that the other does not have.
    pub fn without(self, other: Self) -> Self {
        let mut words = self.0;
        words.iter_mut().zip(other.0).for_each(|(word, others)| *word &= !others);
        Self(words)
    }

    /// The numbers, in increasing order.
    pub fn iter(self) -> impl Iterator<Item = u32> {
        (0..MAX_UNITS).filter(move |&unit| {
            self.0[(unit / WORD_BITS) as usize] & (1 << (unit % WORD_BITS)) != 0
        })
    }
}

impl FromIterator<u32> for UnitMask {
    /// Panics on a number of [`MAX_UNITS`] or more.
    fn from_iter<I: IntoIterator<Item = u32>>(units: I) -> Self {
        let mut words = [0; WORDS];
        for unit in units {
            words[(unit / WORD_BITS) as usize] |= 1 << (unit % WORD_BITS);
        }
        Self(words)
    }
}

impl fmt::Debug for UnitMask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_are_counted_joined_and_taken_apart() {
        let (low, high) = (UnitMask::range(60, 8), UnitMask::range(66, 100));
        assert_eq!((low.len(), high.len()), (8, 100));
        assert!(!low.is_disjoint(high) && low.is_disjoint(UnitMask::range(68, 9)));
        assert_eq!(low.union(high), UnitMask::range(60, 106));
        assert_eq!(low.without(high), UnitMask::range(60, 6));
        assert_eq!(low.iter().collect::<Vec<_>>(), (60..68).collect::<Vec<_>>());
        assert!(UnitMask::range(3, 0).is_empty());
        assert_eq!(UnitMask::range(250, 99).len(), 6);
        assert_eq!(format!("{:?}", UnitMask::range(1, 2)), "{1, 2}");
    }
}
