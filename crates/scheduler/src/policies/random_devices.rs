//! Devices for tests of how policies divide them.

use std::sync::Arc;

use crate::plan::Slo;
use crate::policies::shares::Share;
use crate::profile::{Profile, ProfilePoint};
use crate::served::{ServedDevice, ServedModel};
use crate::time::Span;

/// Models with a rate per second and an objective in milliseconds each. One item takes about a millisecond on any number
/// of units, and further items are divided among these.
pub(crate) fn device_with(models: &[(f64, f64)], units: u32) -> ServedDevice {
    let grid =
        [1u32, 8, 32].into_iter().flat_map(|batch| [1u32, 4, 16].map(|units| (batch, units)));
    let point = |(batch, units): (u32, u32)| {
        let us = 900.0 + 100.0 / f64::from(units) + 500.0 * f64::from(batch - 1) / f64::from(units);
        ProfilePoint { batch, units, latency: Span::from_us(us), dram_bytes: 1e8 }
    };
    let points: Vec<ProfilePoint> = grid.map(point).collect();
    let profile = Arc::new(Profile::new(&points, 1 << 20).expect("the grid is full"));
    let model = |&(expected_per_s, slo_ms): &(f64, f64)| ServedModel {
        profile: profile.clone(),
        slo: Some(Slo { percentile: 0.99, latency: Span::from_us(slo_ms * 1e3) }),
        expected_per_s,
        weight: 1.0,
        priority: 0,
        group: None,
    };
    ServedDevice {
        models: models.iter().map(model).collect(),
        units,
        bandwidth_bytes_per_s: 1e12,
        memory_bytes: 1 << 30,
        can_interrupt: false,
    }
}

/// Whether shares give every unit and every model of a device away, once, and nothing is empty.
pub(super) fn divides(shares: &[Share], device: &ServedDevice) -> bool {
    let mut models: Vec<u32> =
        shares.iter().flat_map(|share| share.models.iter().map(|model| model.0)).collect();
    models.sort_unstable();
    let all: Vec<u32> = (0..device.models.len() as u32).collect();
    let units: u32 = shares.iter().map(|share| share.units).sum();
    let is_full = units == device.units || device.models.is_empty();
    let none_is_empty = shares.iter().all(|share| share.units > 0 && !share.models.is_empty());
    models == all && is_full && none_is_empty
}
