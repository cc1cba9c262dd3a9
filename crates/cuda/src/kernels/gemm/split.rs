//! Splits: over how many blocks a sum is spread.

/// Over how many blocks the sum over k is split, and how their parts are added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Split {
    None,
    Cluster(usize),
    Workspace(usize),
}

impl Split {
    pub(super) const ALL: [Split; 8] = [
        Split::None,
        Split::Cluster(2),
        Split::Cluster(4),
        Split::Cluster(8),
        Split::Workspace(2),
        Split::Workspace(4),
        Split::Workspace(8),
        Split::Workspace(16),
    ];

    pub(super) fn count(self) -> usize {
        match self {
            Split::None => 1,
            Split::Cluster(parts) | Split::Workspace(parts) => parts,
        }
    }

    pub(super) fn define(self) -> &'static str {
        match self {
            Split::None => "REDUCTION_NONE",
            Split::Cluster(_) => "REDUCTION_CLUSTER",
            Split::Workspace(_) => "REDUCTION_WORKSPACE",
        }
    }

    pub(super) fn name(self) -> String {
        match self {
            Split::None => String::new(),
            Split::Cluster(parts) => format!(" cluster of {parts}"),
            Split::Workspace(parts) => format!(" {parts} parts"),
        }
    }
}
