//! Owns the kernels other than convolution and matrix product: functions of slices that know nothing of graphs.

mod activate;
#[cfg(test)]
pub(crate) mod testing;

pub(crate) use activate::activate;
