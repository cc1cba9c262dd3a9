//! The process, as the operating system sees it.

use std::fs;

/// What the process takes; `None` where the operating system does not say.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Process {
    pub(crate) resident_bytes: Option<u64>,
    pub(crate) open_files: Option<u64>,
}

impl Process {
    /// As it is now.
    pub(crate) fn now() -> Self {
        let status = fs::read_to_string("/proc/self/status").ok();
        let files = fs::read_dir("/proc/self/fd").ok();
        Self {
            resident_bytes: status.as_deref().and_then(resident_bytes),
            // The folder is open while it is read.
            open_files: files.map(|files| (files.count() as u64).saturating_sub(1)),
        }
    }
}

fn resident_bytes(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_of_resident_memory_is_read() {
        let status = "Name:\tweft\nVmHWM:\t    9999 kB\nVmRSS:\t    1234 kB\n";
        assert_eq!(resident_bytes(status), Some(1234 << 10));
        assert_eq!(resident_bytes("VmRSS: many"), None);
    }
}
