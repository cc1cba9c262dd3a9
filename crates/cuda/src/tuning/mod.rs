//! The CUDA device as a tuner sees it: operators with all their candidates, and partitions to time them on.

mod bench;
mod collect;
mod control;
mod device;
mod operator;
mod part;
mod single_launch;
mod trial_memory;
