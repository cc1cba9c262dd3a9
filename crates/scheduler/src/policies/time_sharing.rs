//! Time sharing: all units are one partition, and models take turns on it, batched, by deadline.

use crate::latency::PredictionError;
use crate::policy::{Action, Event, Policy};
use crate::served::ServedDevice;
use crate::serving::FixedServing;
use crate::time::Time;

/// One model at a time on the whole device.
pub struct TimeSharing(FixedServing);

impl TimeSharing {
    /// On a device with its models.
    pub fn new(device: ServedDevice) -> Self {
        let whole = (device.units, device.all_models());
        Self(FixedServing::new(device, &[whole]))
    }
}

impl Policy for TimeSharing {
    fn name(&self) -> &'static str {
        "time-sharing"
    }

    fn prediction_error(&self) -> Option<PredictionError> {
        self.0.prediction_error()
    }

    fn react(&mut self, event: Event, now: Time, actions: &mut Vec<Action>) {
        self.0.react(event, now, actions);
    }
}
