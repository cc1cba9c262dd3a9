//! Models of the zoo as an engine serves them, with profiles that are made up.

use std::sync::Arc;

use weft_cpu::CpuDevice;
use weft_device::Device;
use weft_engine::{EngineModel, ModelKey, ModelLimits};
use weft_ir::Dimensions;
use weft_scheduler::plan::Slo;
use weft_scheduler::{Profile, ProfilePoint, ServedModel, Span};
use weft_zoo::{ZooOptions, build};

/// A model up to a batch size, each of which is said to take so long.
pub(crate) fn model(
    device: &CpuDevice,
    name: &str,
    slo_ms: Option<f64>,
    largest_batch: u32,
    latency: impl Fn(u32) -> Span,
) -> EngineModel {
    let graph = build(name, &ZooOptions::default()).expect("the zoo has it");
    let point = |batch| ProfilePoint { batch, units: 1, latency: latency(batch), dram_bytes: 0.0 };
    let points = [point(1), point(largest_batch)];
    EngineModel {
        key: ModelKey::unused(),
        loaded: device.load(name, &graph).expect("it loads"),
        dimensions: Dimensions::batch(1),
        served: ServedModel {
            profile: Arc::new(Profile::new(&points, 1 << 20).expect("a full grid")),
            slo: slo_ms.map(|ms| Slo { percentile: 0.99, latency: Span::from_us(ms * 1e3) }),
            expected_per_s: 100.0,
            weight: 1.0,
            priority: 0,
            group: None,
        },
        limits: ModelLimits::default(),
        group: None,
    }
}
