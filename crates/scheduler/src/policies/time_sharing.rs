//! Time sharing: all units are one partition, and models take turns on it, batched, by deadline.

use crate::served::ServedDevice;
use crate::serving::FixedServing;

/// One model at a time on the whole device.
pub fn time_sharing(device: ServedDevice) -> FixedServing {
    let whole = vec![(device.units, device.all_models())];
    FixedServing::new("time-sharing", device, whole)
}
