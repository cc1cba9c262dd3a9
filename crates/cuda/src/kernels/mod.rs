//! The kernels: for each, its parameters, when it can be used, its candidates and how they are launched.

pub(crate) mod activation;
