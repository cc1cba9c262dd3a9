//! The commands, one file each.

pub(crate) mod check;
pub(crate) mod demo;
pub(crate) mod devices;
pub(crate) mod infer;
pub(crate) mod inspect;
pub(crate) mod key;
pub(crate) mod load;
pub(crate) mod plan;
pub(crate) mod profile;
pub(crate) mod regulate;
pub(crate) mod run;
pub(crate) mod serve;
pub(crate) mod simulate;
pub(crate) mod top;
pub(crate) mod tune;
pub(crate) mod tuning;
pub(crate) mod zoo;
