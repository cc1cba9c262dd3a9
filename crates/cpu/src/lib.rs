//! The CPU device: a unit is a core, a partition is a worker pool pinned to a set of cores.
