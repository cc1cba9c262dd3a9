//! The policies, one short file each, and the list of them that everything iterates over.

mod clockwork;
mod equal_partitions;
mod gpulets;
mod knee_partitions;
#[cfg(test)]
mod random_devices;
mod round_robin;
mod shares;
mod time_sharing;
mod weft;
mod whole_device;
mod working_batch;

pub use clockwork::Clockwork;
pub use equal_partitions::equal_partitions;
pub use gpulets::Gpulets;
pub use knee_partitions::knee_partitions;
pub use round_robin::RoundRobin;
pub use time_sharing::time_sharing;
pub use weft::Weft;

#[cfg(test)]
pub(crate) use random_devices::device_with;

use crate::policy::Policy;
use crate::served::ServedDevice;

/// What a policy can divide a device by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sharing {
    /// Time: one execution at a time has all units.
    TimeOnly,
    /// Space: partitions that are fixed before the first request comes.
    StaticSpatial,
    /// Both: partitions that follow the load, and turns in each.
    SpaceAndTime,
}

/// A policy that can be chosen by name.
#[derive(Clone, Copy, Debug)]
pub struct KnownPolicy {
    /// The name to select and report it by.
    pub name: &'static str,
    /// What it does, in one line.
    pub description: &'static str,
    /// What it divides the device by.
    pub sharing: Sharing,
    /// Whether launches interrupt others, where the device can do that.
    pub interrupts: bool,
    make: fn(ServedDevice) -> Box<dyn Policy>,
}

impl KnownPolicy {
    /// The policy on a device with its models.
    pub fn make(&self, device: ServedDevice) -> Box<dyn Policy> {
        let can_interrupt = device.can_interrupt && self.interrupts;
        (self.make)(ServedDevice { can_interrupt, ..device })
    }
}

/// Every policy, in the order in which results are shown.
pub const ALL: &[KnownPolicy] = &[
    KnownPolicy {
        name: "time-sharing",
        description: "All units are one partition; models take turns by deadline",
        sharing: Sharing::TimeOnly,
        interrupts: false,
        make: |device| Box::new(time_sharing(device)),
    },
    KnownPolicy {
        name: "round-robin",
        description: "All units are one partition; models take turns in a fixed order",
        sharing: Sharing::TimeOnly,
        interrupts: false,
        make: |device| Box::new(RoundRobin::new(device)),
    },
    KnownPolicy {
        name: "clockwork",
        description: "All units are one partition; the batch that must start first runs first",
        sharing: Sharing::TimeOnly,
        interrupts: false,
        make: |device| Box::new(Clockwork::new(device)),
    },
    KnownPolicy {
        name: "equal-partitions",
        description: "An equal share of the units for each model",
        sharing: Sharing::StaticSpatial,
        interrupts: false,
        make: |device| Box::new(equal_partitions(device)),
    },
    KnownPolicy {
        name: "knee-partitions",
        description: "A share of the units for each model, as large as is useful to it",
        sharing: Sharing::StaticSpatial,
        interrupts: false,
        make: |device| Box::new(knee_partitions(device)),
    },
    KnownPolicy {
        name: "gpulets",
        description: "Partitions of six sizes, at most three models in each, divided anew every 20 s",
        sharing: Sharing::SpaceAndTime,
        interrupts: false,
        make: |device| Box::new(Gpulets::new(device)),
    },
    KnownPolicy {
        name: "weft",
        description: "A pool of partitions laid out for the load, and laid out anew as it changes",
        sharing: Sharing::SpaceAndTime,
        interrupts: true,
        make: |device| Box::new(Weft::new(device)),
    },
];

/// The policy of a name.
pub fn named(name: &str) -> Option<&'static KnownPolicy> {
    ALL.iter().find(|known| known.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_policy_is_found_by_the_name_that_it_reports() {
        let device = ServedDevice {
            models: Vec::new(),
            units: 4,
            bandwidth_bytes_per_s: 1e12,
            memory_bytes: 1 << 30,
            can_interrupt: false,
        };
        for known in ALL {
            assert_eq!(known.make(device.clone()).name(), known.name);
            assert_eq!(named(known.name).map(|found| found.description), Some(known.description));
        }
        assert!(named("unheard").is_none());
    }
}
