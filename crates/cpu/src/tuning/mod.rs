//! Tuning of the CPU's kernels: what can be varied, and benches that measure it.

mod bench;
mod candidate;
mod control;
mod device;
mod features;
mod fused_operator;
mod kernel;
mod operator;
mod packed_weights;
mod platform;
mod random;
mod sample;
mod sources;
mod statistics;
mod subject;
mod subjects;
mod temperature;
mod timeline;

pub(crate) use candidate::Candidate;
pub(crate) use fused_operator::{FusedOperator, Product};
