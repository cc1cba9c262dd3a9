//! How many files, and so connections, the process may have open.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Files that are open beside connections: models, libraries, shared memory.
const BESIDE_CONNECTIONS: u64 = 256;

/// Asks the system for as many as the connections need, and says how many connections there is room for.
pub(super) fn room_for(connections: usize) -> usize {
    let wanted = connections as u64 + BESIDE_CONNECTIONS;
    let limit = getrlimit(Resource::Nofile);
    let allowed = limit.maximum.unwrap_or(u64::MAX);
    let given = limit.current.unwrap_or(u64::MAX);
    if given < wanted {
        let raised = Rlimit { current: Some(wanted.min(allowed)), maximum: limit.maximum };
        // Where the system declines, what it gave before stays.
        let _ = setrlimit(Resource::Nofile, raised);
    }
    let given = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    let room = given.saturating_sub(BESIDE_CONNECTIONS).max(1);
    connections.min(usize::try_from(room).unwrap_or(usize::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_never_more_room_than_was_asked_for() {
        assert_eq!(room_for(1), 1);
        assert!(room_for(usize::MAX / 2) < usize::MAX / 2);
    }
}
