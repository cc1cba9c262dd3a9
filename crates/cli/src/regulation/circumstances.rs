//! What besides its models decides which schedule a mix is best run by.

use weft_device::Platform;
use weft_tuner::database::ScheduleKey;

use crate::device::OpenDevice;

/// The device as schedules are kept for it.
#[derive(Clone)]
pub(crate) struct Circumstances {
    platform: Platform,
    /// The kind of device, the precision, and how kernels are chosen.
    manner: String,
}

impl Circumstances {
    /// Of a device whose kernels are chosen in a way that a word tells from others.
    pub(crate) fn of(device: &OpenDevice, kernels: &str) -> Self {
        let precision = device.precision().name();
        let manner = match device {
            OpenDevice::Cpu(_) => format!("cpu {precision}"),
            OpenDevice::Cuda(_) => format!("cuda {precision} {kernels}"),
        };
        Self { platform: device.as_tunable().platform(), manner }
    }

    /// What the schedule of a mix is kept by.
    pub(crate) fn key(&self, likeness: &str, units: u32) -> ScheduleKey {
        let mix = format!("{}; {likeness}", self.manner);
        ScheduleKey { platform: self.platform.clone(), mix, units }
    }
}
