//! Finds the fastest kernels for the share of a device that a model will get.

pub mod search;
