//! Execution plans: the launches that run one model at fixed shapes, and where its values lie.

pub(crate) mod select;
pub(crate) mod site;
