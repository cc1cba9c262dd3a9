//! Which models stay on the device when not all of them fit: a decision without side effects.

use std::collections::BTreeSet;

use super::loading::ModelVersion;

/// A version that is on the device, or would be.
#[derive(Clone, Debug)]
pub(super) struct Occupant {
    pub(super) version: ModelVersion,
    pub(super) memory_bytes: u64,
    /// Later is larger.
    pub(super) last_used: u64,
    /// Stays whatever happens.
    pub(super) is_kept: bool,
}

/// Who must leave so that everybody else fits: those that were not used for longest. `None` where even then it is too much.
pub(super) fn leaving(occupants: &[Occupant], budget_bytes: u64) -> Option<BTreeSet<ModelVersion>> {
    let mut taken: u64 = occupants.iter().map(|occupant| occupant.memory_bytes).sum();
    let mut by_use: Vec<&Occupant> = occupants.iter().filter(|one| !one.is_kept).collect();
    by_use.sort_by_key(|occupant| occupant.last_used);
    let mut leaving = BTreeSet::new();
    for occupant in by_use {
        if taken <= budget_bytes {
            break;
        }
        taken -= occupant.memory_bytes;
        leaving.insert(occupant.version.clone());
    }
    (taken <= budget_bytes).then_some(leaving)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn occupant(name: &str, memory_bytes: u64, last_used: u64, is_kept: bool) -> Occupant {
        let version = ModelVersion { name: name.into(), version: 1 };
        Occupant { version, memory_bytes, last_used, is_kept }
    }

    #[test]
    fn those_not_used_for_longest_leave_and_no_more_than_must() {
        let occupants = [
            occupant("new", 40, 9, true),
            occupant("old", 30, 1, false),
            occupant("older", 30, 0, true),
            occupant("recent", 30, 5, false),
        ];
        let names = |budget| {
            let leaving = leaving(&occupants, budget)?;
            Some(leaving.into_iter().map(|version| version.name).collect::<Vec<_>>())
        };
        assert_eq!(names(130), Some(vec![]));
        assert_eq!(names(129), Some(vec!["old".to_string()]));
        assert_eq!(names(100), Some(vec!["old".to_string()]));
        assert_eq!(names(99), Some(vec!["old".to_string(), "recent".to_string()]));
        assert_eq!(names(70), Some(vec!["old".to_string(), "recent".to_string()]));
        assert_eq!(names(69), None);
    }
}
