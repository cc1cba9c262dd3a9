//! Finds the fastest kernels for the share of a device that a model will get.

pub mod cost_model;
pub mod search;
