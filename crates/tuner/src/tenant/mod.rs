//! Tuning as a tenant of a device that serves: a trial is a request for a model of its own, which runs when it is its turn
//! like any other.
//!
//! The device that serves is wrapped in a [`HostDevice`], whose partitions can run the [`TrialModel`]. A session tunes a
//! [`TenantDevice`], whose benches hand each trial in as one request and wait for what comes of it.

mod bench;
mod executable;
mod host_device;
mod host_partition;
mod tenant_device;
mod trial_model;
mod trials;

pub use host_device::HostDevice;
pub use tenant_device::{TenantDevice, Turns};
pub use trial_model::TrialModel;
