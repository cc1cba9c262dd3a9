//! The device as [`weft_device::TunableDevice`] describes it.

use std::sync::Arc;

use weft_device::{
    Bench, DeviceError, KernelChoices, LoadedModel, Platform, TunableDevice, TunableOperator,
    UnitSet,
};
use xxhash_rust::xxh3::Xxh3;

use super::bench::CudaBench;
use super::collect::operators;
use crate::CudaDevice;
use crate::driver::StreamPriority;
use crate::kernels::sample_sources;
use crate::model::CudaModel;

/// Raised when candidates of the same name come to do their work in another way while the templates stay the same.
const CANDIDATES_FORMAT: u32 = 1;

/// Where the kernel's part of the driver says which version it is.
const DRIVER_VERSION_FILE: &str = "/proc/driver/nvidia/version";

impl TunableDevice for CudaDevice {
    fn platform(&self) -> Platform {
        let gpu = self.gpu();
        let chip = gpu.context.chip();
        let versions = (gpu.kernels.compiler().version(), gpu.context.driver_version());
        let cuda = format!("CUDA {}, NVRTC {}", versions.1, versions.0);
        Platform {
            chip: format!(
                "{}, {}, {} SMs",
                gpu.context.name(),
                chip.architecture(true),
                chip.sm_count
            ),
            driver: match driver_version() {
                Some(version) => format!("driver {version}, {cuda}"),
                None => cuda,
            },
            kernels: templates_version(),
        }
    }

    fn size(&self) -> usize {
        self.layout().total_sms() as usize
    }

    fn size_of(&self, units: &UnitSet) -> usize {
        self.layout().sm_count_of(units) as usize
    }

    fn disjoint_partitions(&self, size: usize) -> Vec<UnitSet> {
        if size == self.size() {
            return vec![self.layout().all()];
        }
        self.layout().disjoint_sets(u32::try_from(size).unwrap_or(u32::MAX))
    }

    fn screening_size(&self, size: usize) -> usize {
        size.min(self.gpu().options.sms_per_unit as usize)
    }

    fn operators(
        &self,
        model: &dyn LoadedModel,
        shapes: &[Vec<usize>],
        size: usize,
    ) -> Result<Vec<Arc<dyn TunableOperator>>, DeviceError> {
        let Some(model) = model.as_any().downcast_ref::<CudaModel>() else {
            return Err(DeviceError::ForeignModel { model: model.name().to_string() });
        };
        let sm_count = u32::try_from(size).unwrap_or(u32::MAX);
        let all = operators(self.gpu(), model, shapes, sm_count)?;
        Ok(all.into_iter().map(|operator| Arc::new(operator) as Arc<dyn TunableOperator>).collect())
    }

    fn bench(&self, units: &UnitSet) -> Result<Box<dyn Bench>, DeviceError> {
        Ok(Box::new(CudaBench::new(self.gpu(), self.gpu().lane(units)?)?))
    }

    fn background_bench(&self, units: &UnitSet) -> Option<Result<Box<dyn Bench>, DeviceError>> {
        let bench = || -> Result<Box<dyn Bench>, DeviceError> {
            let lane = self.gpu().lane_at(units, StreamPriority::Background)?;
            Ok(Box::new(CudaBench::new(self.gpu(), lane)?))
        };
        Some(bench())
    }

    fn use_choices(&self, choices: Arc<dyn KernelChoices>) {
        self.gpu().use_choices(choices);
    }
}

/// Another text for other templates.
fn templates_version() -> String {
    let mut texts: Vec<(&str, &str)> =
        sample_sources().iter().map(|source| (source.template, source.text)).collect();
    texts.sort_unstable();
    texts.dedup();
    let mut hash = Xxh3::new();
    hash.update(&CANDIDATES_FORMAT.to_le_bytes());
    for (name, text) in texts {
        hash.update(name.as_bytes());
        hash.update(text.as_bytes());
    }
    format!("{:016x}", hash.digest())
}

/// The version in the second line's words, such as `580.65.06`.
fn driver_version() -> Option<String> {
    let text = std::fs::read_to_string(DRIVER_VERSION_FILE).ok()?;
    let is_version = |word: &&str| {
        word.contains('.') && word.chars().all(|letter| letter.is_ascii_digit() || letter == '.')
    };
    text.lines().next()?.split_whitespace().find(is_version).map(str::to_string)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_of_templates_is_the_same_each_time() {
        assert_eq!(templates_version(), templates_version());
    }
}
