//! The profiles of one device.

use std::collections::BTreeMap;

use super::table::Profile;

/// A device, and the profiles of models on it.
#[derive(Clone, Debug, PartialEq)]
pub struct ProfileSet {
    /// The device they were measured on.
    pub device: ProfiledDevice,
    /// By the name of the model.
    pub profiles: BTreeMap<String, Profile>,
}

/// What profiles say of the device as a whole.
#[derive(Clone, Debug, PartialEq)]
pub struct ProfiledDevice {
    /// The product name.
    pub name: String,
    /// How many units it has.
    pub units: u32,
    /// What one unit is, in words.
    pub unit: String,
    /// What its memory moves at most, which all units share.
    pub bandwidth_bytes_per_s: f64,
    /// Memory that models can use.
    pub memory_bytes: u64,
}
