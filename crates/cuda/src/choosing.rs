//! Which of the ways to compute something are made, before one of them is chosen.

use std::sync::Arc;

use weft_device::{KernelChoices, OperatorKey};

use crate::library_call::LibrarySet;
use crate::{Chip, Precision};

/// How a plan comes by its candidates.
#[derive(Clone, Copy)]
pub(crate) enum Choosing<'a> {
    /// The few that are expected to be fastest.
    Ranked,
    /// Every legal one, described for a search.
    All,
    /// The few that are expected to be fastest where one launch computes so many requests, each of which has the
    /// partition's share of one.
    ForEntries(u32),
    /// Those that were found to be fastest on partitions of this many SMs.
    Known { choices: &'a dyn KernelChoices, sm_count: u32 },
}

impl Choosing<'_> {
    /// What is wanted of an operator's candidates.
    pub(crate) fn wanted(self, operator: &str, precision: Precision) -> Wanted {
        match self {
            Self::Ranked => Wanted::Ranked,
            Self::All => Wanted::All,
            Self::ForEntries(count) => Wanted::ForEntries(count),
            Self::Known { choices, sm_count } => {
                let key = operator_key(operator, precision);
                choices.choice(&key, sm_count as usize).map_or(Wanted::Ranked, Wanted::Named)
            }
        }
    }
}

/// What an operator's choices are kept under.
pub(crate) fn operator_key(operator: &str, precision: Precision) -> OperatorKey {
    OperatorKey { operator: operator.to_string(), precision: precision.name().to_string() }
}

/// The candidates of one operator that are made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// The few that are expected to be fastest, the best first.
    Ranked,
    /// Every legal one, described for a search, in the order in which they are expected to be fast.
    All,
    /// The few that are expected to be fastest where one launch computes so many requests, each on its share of the chip.
    ForEntries(u32),
    /// The one of this name where it is legal, after the one that is expected to be fastest.
    Named(Arc<str>),
}

/// How the names of candidates begin that a library computes.
pub(crate) const CUBLAS_LT: &str = "cublaslt";
pub(crate) const CUDNN: &str = "cudnn";

impl Wanted {
    /// How many entries a launch computes together, and the SMs that all of them have, where each has those of `chip`.
    pub(crate) fn entries_on(&self, chip: Chip) -> (usize, Chip) {
        match self {
            Self::ForEntries(count) => (*count as usize, chip.with_sms(chip.sm_count * count)),
            _ => (1, chip),
        }
    }

    /// True where a candidate of the name may be chosen in the end.
    pub(crate) fn includes(&self, name: &str) -> bool {
        match self {
            Self::Ranked | Self::All | Self::ForEntries(_) => true,
            Self::Named(wanted) => **wanted == *name,
        }
    }

    /// True where a candidate may be chosen whose name begins like this.
    fn includes_some(&self, beginning: &str) -> bool {
        match self {
            Self::Ranked | Self::All | Self::ForEntries(_) => true,
            Self::Named(wanted) => wanted.starts_with(beginning),
        }
    }
}

/// The libraries whose calls are candidates, where they are installed.
#[derive(Clone, Copy)]
pub(crate) enum LibraryAccess<'a> {
    /// These.
    Given(LibrarySet),
    /// Those that a wanted candidate calls: they are opened for its sake alone.
    AsWanted(&'a dyn Fn() -> LibrarySet),
}

impl From<LibrarySet> for LibraryAccess<'_> {
    fn from(set: LibrarySet) -> Self {
        Self::Given(set)
    }
}

impl LibraryAccess<'_> {
    /// Those that an operator's candidates may call.
    pub(crate) fn of(self, wanted: &Wanted) -> LibrarySet {
        let (cublas_lt, cudnn) = (wanted.includes_some(CUBLAS_LT), wanted.includes_some(CUDNN));
        let installed = match self {
            Self::Given(set) => set,
            Self::AsWanted(open) if cublas_lt || cudnn => open(),
            Self::AsWanted(_) => LibrarySet::default(),
        };
        LibrarySet { cublas_lt: cublas_lt && installed.cublas_lt, cudnn: cudnn && installed.cudnn }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_are_opened_for_candidates_that_call_them_alone() {
        let both = LibrarySet { cublas_lt: true, cudnn: true };
        let opened = std::cell::Cell::new(0);
        let open = || {
            opened.set(opened.get() + 1);
            both
        };
        let access = LibraryAccess::AsWanted(&open);
        let named = |name: &str| Wanted::Named(name.into());
        assert_eq!(access.of(&named("gemm 64x64")), LibrarySet::default());
        assert_eq!(opened.get(), 0);
        let cublas_lt = LibrarySet { cublas_lt: true, cudnn: false };
        assert_eq!(access.of(&named("cublaslt 2")), cublas_lt);
        assert_eq!(LibraryAccess::from(both).of(&named("cublaslt")), cublas_lt);
        assert_eq!(LibraryAccess::from(both).of(&Wanted::All), both);
        assert!(named("a").includes("a") && !named("a").includes("ab"));
    }
}
