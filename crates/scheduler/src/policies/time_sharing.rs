//! Time sharing: all units are one partition, and models take turns on it, batched, by deadline.

use std::sync::Arc;

use crate::identity::ModelId;
use crate::policy::{Action, Event, Policy};
use crate::profile::Profile;
use crate::serving::{Serving, ServingPartition};
use crate::time::Time;

/// One model at a time on the whole device.
pub struct TimeSharing(Serving);

impl TimeSharing {
    /// For models with these profiles on a device of so many units.
    pub fn new(profiles: &[Arc<Profile>], units: u32) -> Self {
        let largest = |profile: &Arc<Profile>| profile.batches().last().copied().unwrap_or(1);
        let models = profiles.iter().enumerate();
        let models =
            models.map(|(index, profile)| (ModelId(index as u32), largest(profile))).collect();
        Self(Serving::new(profiles, &[ServingPartition { units, models }]))
    }
}

impl Policy for TimeSharing {
    fn name(&self) -> &'static str {
        "time-sharing"
    }

    fn react(&mut self, event: Event, now: Time, actions: &mut Vec<Action>) {
        self.0.react(event, now, actions);
    }
}
