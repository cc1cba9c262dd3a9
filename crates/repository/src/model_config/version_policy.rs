//! Which versions a configuration wants served.

use super::reader::{Findings, Reader};
use crate::versions::VersionPolicy;

pub(super) fn read(root: &mut Reader<'_>, findings: &mut Findings) -> VersionPolicy {
    let Some(mut policy) = root.message("version_policy", findings) else {
        return VersionPolicy::default();
    };
    let line = policy.line();
    let latest = policy.message("latest", findings).map(|mut latest| {
        let count = latest.integer("num_versions", 1, findings);
        latest.close(findings);
        VersionPolicy::Latest(count.map_or(1, |found| found.value))
    });
    let all = policy.message("all", findings).map(|all| {
        all.close(findings);
        VersionPolicy::All
    });
    let specific = policy.message("specific", findings).map(|mut specific| {
        let versions = specific.integers::<u64>("versions", 1, findings);
        if versions.is_empty() {
            findings.problem(specific.line(), "'version_policy.specific' names no versions");
        }
        specific.close(findings);
        VersionPolicy::Specific(versions.iter().map(|found| found.value).collect())
    });
    policy.close(findings);
    let mut given = [latest, all, specific].into_iter().flatten();
    let chosen = given.next();
    if given.next().is_some() {
        findings.problem(line, "'version_policy' has one of latest, all and specific, not several");
    }
    chosen.unwrap_or_default()
}
