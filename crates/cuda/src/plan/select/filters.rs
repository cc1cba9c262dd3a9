//! The filters of a dense convolution as matrices, with a row for each.

use std::sync::Arc;

use weft_device::DeviceError;

use super::conv::Windows;
use crate::kernels::stored::stored_rows;
use crate::launch::DeviceWeights;
use crate::plan::site::Site;

/// How the numbers of one filter lie: by tap, each with its channels, zero where there is none.
#[derive(Clone, Copy, Debug)]
pub(super) struct FilterLayout {
    /// Of each tap.
    pub(super) channels: usize,
    /// Taps in a row of the filter, some of which may be zero.
    pub(super) width: usize,
    /// The tap at which the filter's own begin.
    pub(super) first_tap: usize,
    /// From filter to filter.
    pub(super) stride: usize,
}

impl FilterLayout {
    /// A convolution's filters, on the device.
    pub(super) fn filters(
        self,
        site: &Site<'_>,
        windows: &Windows<'_>,
    ) -> Result<Arc<DeviceWeights>, DeviceError> {
        let [height, width] = windows.image.kernel;
        let channels = windows.image.channels;
        let storage = site.precision.storage();
        let form = format!("filters {:?} as {self:?} {storage:?}", windows.weights.shape());
        site.weights.get_or_make(windows.weights, form, |weights| {
            stored_rows(windows.filters, self.stride, storage, |filter, row| {
                let taps = height * width;
                let weights = &weights[filter * channels * taps..][..channels * taps];
                for tap in 0..taps {
                    let place = tap / width * self.width + self.first_tap + tap % width;
                    let to = &mut row[place * self.channels..][..channels];
                    let from = weights[tap..].iter().step_by(taps);
                    to.iter_mut().zip(from).for_each(|(to, from)| *to = *from);
                }
            })
        })
    }
}
