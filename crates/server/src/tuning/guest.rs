//! The model of trials, as the engine serves it beside the others.

use std::sync::Arc;
use std::time::Duration;

use weft_device::DeviceError;
use weft_engine::{Engine, EngineModel, ModelKey, ModelLimits};
use weft_ir::{Dimensions, Value};
use weft_scheduler::{Profile, ProfileError, ProfilePoint, ServedModel, Span};
use weft_tuner::tenant::{TrialModel, Turns};

/// Its share among models without an objective, in relation to theirs.
const WEIGHT: f64 = 0.1;

/// What a trial is said to take on a partition that is too small for it, so that none is sent there.
const NEVER: Span = Span::from_nanos(3_600_000_000_000);

/// The trial model for partitions of at least so many units, whose requests take so long.
pub(super) fn guest(
    model: Arc<TrialModel>,
    units: u32,
    takes: Duration,
) -> Result<EngineModel, ProfileError> {
    let point = |units, latency| ProfilePoint { batch: 1, units, latency, dram_bytes: 0.0 };
    let takes = Span::from_s(takes.as_secs_f64());
    let too_small = (units > 1).then(|| point(units - 1, NEVER));
    let points: Vec<ProfilePoint> = too_small.into_iter().chain([point(units, takes)]).collect();
    Ok(EngineModel {
        key: ModelKey::unused(),
        loaded: model,
        dimensions: Dimensions::batch(1),
        served: ServedModel {
            // It takes no place from a model, whatever there is.
            profile: Arc::new(Profile::new(&points, 0)?),
            slo: None,
            expected_per_s: 1.0,
            weight: WEIGHT,
            priority: 0,
        },
        limits: ModelLimits::default(),
    })
}

/// Turns that an engine gives.
pub(super) struct EngineTurns {
    pub(super) engine: Arc<Engine>,
    pub(super) model: ModelKey,
}

impl Turns for EngineTurns {
    fn take(&self, inputs: Vec<Value>) -> Result<(), DeviceError> {
        match self.engine.infer(self.model, inputs) {
            Ok(_) => Ok(()),
            Err(error) => Err(DeviceError::Failed(format!("a trial got no turn: {error}"))),
        }
    }
}
