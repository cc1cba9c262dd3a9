//! Plans without a GPU: run on a fake device, and looked at for every model of the zoo.

mod fake_device;
mod groups;
mod libraries;
pub(crate) mod parameters;
mod shared;
mod sides;
mod zoo;
