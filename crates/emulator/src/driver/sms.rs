//! The device's SMs, and how they are split into groups.

/// How many SMs the device has.
pub(super) const SM_COUNT: u32 = 132;

/// How many SMs each part of the chip has whose SMs can run one cluster of blocks together. As on an H200, groups of 8 leave 12 over.
const PARTS: [u32; 8] = [18, 18, 18, 18, 18, 16, 16, 10];

/// The smallest groups: where their SMs have to run clusters together, and where they need not.
const SMALLEST_TOGETHER: u32 = 8;
const SMALLEST: u32 = 2;

/// How many words the bits of a set take.
pub(super) const WORDS: usize = SM_COUNT.div_ceil(u32::BITS) as usize;

/// A set of SMs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct SmSet([u32; WORDS]);

impl SmSet {
    /// Every SM of the device.
    pub(super) fn all() -> Self {
        (0..SM_COUNT).collect()
    }

    /// The set of these bits; `None` where one of them is no SM.
    pub(super) fn from_words(words: [u32; WORDS]) -> Option<Self> {
        let set = Self(words);
        (set.without(Self::all()).len() == 0).then_some(set)
    }

    /// A bit for each SM.
    pub(super) fn words(self) -> [u32; WORDS] {
        self.0
    }

    /// How many there are.
    pub(super) fn len(self) -> u32 {
        self.0.iter().map(|word| word.count_ones()).sum()
    }

    /// The numbers of the SMs, in order.
    pub(super) fn iter(self) -> impl Iterator<Item = u32> {
        (0..SM_COUNT).filter(move |&sm| self.contains(sm))
    }

    pub(super) fn contains(self, sm: u32) -> bool {
        self.0[(sm / u32::BITS) as usize] >> (sm % u32::BITS) & 1 == 1
    }

    /// Those of both.
    pub(super) fn with(self, other: Self) -> Self {
        Self(std::array::from_fn(|word| self.0[word] | other.0[word]))
    }

    /// Those that the other set lacks.
    pub(super) fn without(self, other: Self) -> Self {
        Self(std::array::from_fn(|word| self.0[word] & !other.0[word]))
    }

    /// Disjoint groups of at least `minimum` SMs, as many as there can be. SMs of a group that runs clusters of blocks together come in
    /// eights of one part of the chip.
    pub(super) fn groups(self, minimum: u32, is_together: bool) -> Vec<Self> {
        let smallest = if is_together { SMALLEST_TOGETHER } else { SMALLEST };
        let Some(each) = minimum.max(1).checked_next_multiple_of(smallest) else {
            return Vec::new();
        };
        let mut first = 0;
        let mut pieces = Vec::new();
        for part in PARTS {
            let sms: Vec<u32> = (first..first + part).filter(|&sm| self.contains(sm)).collect();
            let chunks = sms.chunks_exact(smallest as usize);
            pieces.extend(chunks.map(|chunk| chunk.iter().copied().collect::<Self>()));
            first += part;
        }
        let united = |pieces: &[Self]| pieces.iter().copied().fold(Self::default(), Self::with);
        pieces.chunks_exact((each / smallest) as usize).map(united).collect()
    }
}

impl FromIterator<u32> for SmSet {
    fn from_iter<I: IntoIterator<Item = u32>>(sms: I) -> Self {
        let mut set = Self::default();
        for sm in sms {
            set.0[(sm / u32::BITS) as usize] |= 1 << (sm % u32::BITS);
        }
        set
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_disjoint_and_as_large_as_was_asked_for() {
        for (minimum, is_together, count, each) in [
            (8, true, 15, 8),
            (1, true, 15, 8),
            (9, true, 7, 16),
            (64, true, 1, 64),
            (120, true, 1, 120),
            (121, true, 0, 128),
            (2, false, 66, 2),
            (3, false, 33, 4),
            (132, false, 1, 132),
            (u32::MAX, true, 0, 0),
        ] {
            let groups = SmSet::all().groups(minimum, is_together);
            assert_eq!(groups.len(), count, "groups of {minimum}");
            let mut seen = SmSet::default();
            for group in groups {
                assert_eq!(group.len(), each);
                assert_eq!(group.without(seen), group, "groups share an SM");
                seen = seen.with(group);
            }
            assert_eq!(SmSet::all().without(seen).len(), SM_COUNT - count as u32 * each);
        }
    }

    #[test]
    fn groups_that_run_clusters_lie_in_one_part_of_the_chip() {
        let part_of = |sm: u32| {
            let ends = PARTS.iter().scan(0, |end, part| {
                *end += part;
                Some(*end)
            });
            ends.take_while(|&end| end <= sm).count()
        };
        for group in SmSet::all().groups(8, true) {
            let parts: Vec<usize> = group.iter().map(part_of).collect();
            assert!(parts.iter().all(|&part| part == parts[0]), "{parts:?}");
        }
        assert_eq!(PARTS.iter().sum::<u32>(), SM_COUNT);
    }

    #[test]
    fn a_part_of_the_sms_can_be_split_again() {
        let some: SmSet = (0..20).collect();
        assert_eq!(some.groups(8, true).len(), 2);
        assert_eq!(some.groups(2, false).len(), 10);
        assert_eq!(SmSet::from_words(some.words()), Some(some));
        assert_eq!(SmSet::from_words([u32::MAX; WORDS]), None);
    }
}
