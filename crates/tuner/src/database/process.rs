//! Which process tries a candidate, and whether it still can.

use std::fs;
use std::time::Duration;

/// How long a trial may be under way in a process that cannot be seen from here, in another container for example, before
/// that process is taken to have ended.
pub(super) const MAX_UNSEEN: Duration = Duration::from_secs(10 * 60);

/// A process, told from all others that had its number, and from those of other namespaces and before the last boot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Process {
    boot: String,
    namespace: String,
    id: u32,
    start: String,
}

impl Process {
    /// This process.
    pub(super) fn current() -> Self {
        let id = std::process::id();
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        let namespace = fs::read_link("/proc/self/ns/pid").unwrap_or_default();
        Self {
            boot: boot.trim().into(),
            namespace: namespace.to_string_lossy().into_owned(),
            id,
            start: start_of(id).unwrap_or_default(),
        }
    }

    pub(super) fn to_text(&self) -> String {
        format!("{} {} {} {}", self.boot, self.namespace, self.id, self.start)
    }

    fn from_text(text: &str) -> Option<Self> {
        let mut parts = text.split(' ').map(str::to_string);
        Some(Self {
            boot: parts.next()?,
            namespace: parts.next()?,
            id: parts.next()?.parse().ok()?,
            start: parts.next()?,
        })
    }

    /// Whether the process that `text` names, which began a trial `age` ago, can still end it, as seen from this one.
    pub(super) fn sees_alive(&self, text: &str, age: Duration) -> bool {
        let Some(other) = Self::from_text(text) else { return false };
        if other == *self {
            return true;
        }
        if other.boot != self.boot {
            return false;
        }
        if other.namespace != self.namespace || other.start.is_empty() {
            return age < MAX_UNSEEN;
        }
        start_of(other.id).as_deref() == Some(other.start.as_str())
    }
}

/// When a process started, in the kernel's ticks; `None` where there is no such process, or where it has ended and its
/// parent has not asked for its status yet.
fn start_of(id: u32) -> Option<String> {
    const STATE: usize = 0;
    const START: usize = 19;
    let stat = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    // The name before it is in parentheses and may hold anything.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let has_ended = matches!(*fields.get(STATE)?, "Z" | "X" | "x");
    (!has_ended).then(|| fields.get(START).map(ToString::to_string)).flatten()
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    const NOW: Duration = Duration::ZERO;

    #[test]
    fn a_process_lives_until_it_ends_even_if_nobody_has_asked_for_its_status() {
        let us = Process::current();
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        let its = Process { id: child.id(), start: start_of(child.id()).unwrap(), ..us.clone() };
        assert!(us.sees_alive(&its.to_text(), NOW));
        child.kill().unwrap();
        while start_of(child.id()).is_some() {
            std::thread::yield_now();
        }
        assert!(!us.sees_alive(&its.to_text(), NOW));
        child.wait().unwrap();
        assert!(!us.sees_alive(&its.to_text(), NOW));
    }

    #[test]
    fn a_number_that_is_used_again_is_another_process() {
        let us = Process::current();
        assert!(us.sees_alive(&us.to_text(), MAX_UNSEEN * 2));
        let earlier = Process { start: "1".into(), ..us.clone() };
        assert!(!us.sees_alive(&earlier.to_text(), NOW));
        let before_the_boot = Process { boot: "other".into(), ..us.clone() };
        assert!(!us.sees_alive(&before_the_boot.to_text(), NOW));
    }

    #[test]
    fn a_process_that_cannot_be_seen_has_a_while() {
        let us = Process::current();
        let elsewhere = Process { namespace: "pid:[1]".into(), ..us.clone() };
        assert!(us.sees_alive(&elsewhere.to_text(), MAX_UNSEEN / 2));
        assert!(!us.sees_alive(&elsewhere.to_text(), MAX_UNSEEN));
    }

    #[test]
    fn what_names_no_process_is_not_alive() {
        for text in ["", "a b c d", "a b 1", "\u{0} \u{0}"] {
            assert!(!Process::current().sees_alive(text, NOW), "{text:?}");
        }
    }
}
