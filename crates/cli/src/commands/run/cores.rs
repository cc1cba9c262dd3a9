//! Which cores a program gets.

use anyhow::{Context, Result, ensure};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use weft_device::UnitSet;

use super::share::Share;

/// The cores that this thread, and what it starts, may use.
pub(crate) fn allowed() -> Result<UnitSet> {
    let set = sched_getaffinity(None).context("which cores may be used is not known")?;
    Ok((0..CpuSet::MAX_CPU).filter(|&core| set.is_set(core)).collect())
}

/// Keeps this thread, and what it starts from now on, on these cores.
pub(super) fn keep_to(cores: &UnitSet) -> Result<()> {
    let mut set = CpuSet::new();
    cores.iter().for_each(|core| set.set(core));
    sched_setaffinity(None, &set).with_context(|| format!("cannot keep to cores {cores}"))
}

/// The last cores, so many as the share is: servers fill a machine from the first.
pub(super) fn last(allowed: &UnitSet, share: Share) -> UnitSet {
    let spared = allowed.len() - share.of(allowed.len()).min(allowed.len());
    allowed.iter().skip(spared).collect()
}

/// The cores that somebody has named, where all of them may be used.
pub(super) fn named(allowed: &UnitSet, named: &UnitSet) -> Result<UnitSet> {
    ensure!(!named.is_empty(), "--cores names no core");
    let missing: UnitSet =
        named.iter().filter(|core| !allowed.iter().any(|c| c == *core)).collect();
    ensure!(missing.is_empty(), "--cores: {missing} may not be used here; these may: {allowed}");
    Ok(named.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(cores: &[usize]) -> UnitSet {
        cores.iter().copied().collect()
    }

    #[test]
    fn a_share_is_the_last_of_the_cores_that_may_be_used() {
        for (allowed, share, cores) in [
            (&[0, 1][..], "50%", &[1][..]),
            (&[0, 1, 2, 3], "50%", &[2, 3]),
            (&[2, 5, 7], "40%", &[7]),
            (&[2, 5, 7], "60%", &[5, 7]),
            (&[4], "10%", &[4]),
            (&[0, 1], "100%", &[0, 1]),
        ] {
            assert_eq!(last(&set(allowed), share.parse().unwrap()), set(cores), "{share}");
        }
    }

    #[test]
    fn named_cores_must_be_there() {
        let allowed = set(&[1, 2, 3]);
        assert_eq!(named(&allowed, &set(&[3, 1])).unwrap(), set(&[1, 3]));
        let refusal = named(&allowed, &set(&[0, 2, 9])).unwrap_err().to_string();
        assert!(refusal.contains("0,9 may not be used here; these may: 1,2,3"), "{refusal}");
        assert!(named(&allowed, &UnitSet::default()).is_err());
    }
}
