//! Where the tuning database lies unless it is named.

use std::ffi::OsString;
use std::path::PathBuf;

/// The file that the environment names: `WEFT_TUNING_DB`, or `tuning.db` in `WEFT_CACHE_DIR`, or in `weft` in the user's
/// folder of caches. `None` where there is no such folder.
pub(super) fn of_process() -> Option<PathBuf> {
    of_environment(|name| std::env::var_os(name))
}

fn of_environment(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let set = |name| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    if let Some(file) = set("WEFT_TUNING_DB") {
        return Some(file);
    }
    let home = || Some(set("HOME")?.join(".cache"));
    let folder = set("WEFT_CACHE_DIR")
        .or_else(|| Some(set("XDG_CACHE_HOME").or_else(home)?.join("weft")))?;
    Some(folder.join("tuning.db"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_particular_variable_that_is_set_decides() {
        let check = |variables: &[(&str, &str)], expected: Option<&str>| {
            let variable = |name: &str| {
                variables.iter().find(|(set, _)| *set == name).map(|(_, value)| (*value).into())
            };
            assert_eq!(of_environment(variable), expected.map(PathBuf::from), "{variables:?}");
        };
        check(&[("WEFT_TUNING_DB", "/a.db"), ("WEFT_CACHE_DIR", "/b")], Some("/a.db"));
        check(&[("WEFT_CACHE_DIR", "/b"), ("XDG_CACHE_HOME", "/c")], Some("/b/tuning.db"));
        check(&[("XDG_CACHE_HOME", "/c"), ("HOME", "/d")], Some("/c/weft/tuning.db"));
        check(&[("HOME", "/d")], Some("/d/.cache/weft/tuning.db"));
        check(&[("WEFT_TUNING_DB", ""), ("HOME", "/d")], Some("/d/.cache/weft/tuning.db"));
        check(&[], None);
    }
}
