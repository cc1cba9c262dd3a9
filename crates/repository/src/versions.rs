//! Which versions of a model are to be served.

use std::collections::BTreeSet;

/// A rule that chooses among the versions that are there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VersionPolicy {
    /// The so many highest ones.
    Latest(u32),
    /// Every one.
    All,
    /// These, as far as they are there.
    Specific(BTreeSet<u64>),
}

impl Default for VersionPolicy {
    fn default() -> Self {
        Self::Latest(1)
    }
}

impl VersionPolicy {
    /// The chosen ones, in rising order.
    pub fn choose(&self, available: impl IntoIterator<Item = u64>) -> BTreeSet<u64> {
        let available: BTreeSet<u64> = available.into_iter().collect();
        match self {
            Self::Latest(count) => available
                .into_iter()
                .rev()
                .take(usize::try_from(*count).unwrap_or(usize::MAX))
                .collect(),
            Self::All => available,
            Self::Specific(wanted) => available.intersection(wanted).copied().collect(),
        }
    }

    /// The versions that it names and that are not there.
    pub fn missing(&self, available: &BTreeSet<u64>) -> Vec<u64> {
        match self {
            Self::Specific(wanted) => wanted.difference(available).copied().collect(),
            Self::Latest(_) | Self::All => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn each_policy_chooses_what_its_name_says() {
        let there = [1, 2, 9, 10];
        let chosen = |policy: VersionPolicy| policy.choose(there).into_iter().collect::<Vec<_>>();
        assert_eq!(chosen(VersionPolicy::default()), [10]);
        assert_eq!(chosen(VersionPolicy::Latest(3)), [2, 9, 10]);
        assert_eq!(chosen(VersionPolicy::Latest(u32::MAX)), there);
        assert_eq!(chosen(VersionPolicy::All), there);
        let specific = VersionPolicy::Specific([9, 1, 7].into());
        assert_eq!(chosen(specific.clone()), [1, 9]);
        assert_eq!(specific.missing(&there.into()), [7]);
    }

    proptest! {
        #[test]
        fn nothing_is_chosen_that_is_not_there_and_nothing_higher_is_left(
            available: BTreeSet<u64>, count: u32,
        ) {
            let chosen = VersionPolicy::Latest(count).choose(available.iter().copied());
            prop_assert!(chosen.is_subset(&available));
            prop_assert_eq!(chosen.len(), available.len().min(count as usize));
            if let Some(lowest) = chosen.first() {
                prop_assert!(available.range(lowest..).all(|version| chosen.contains(version)));
            }
        }
    }
}
