//! The model of trials, as the engine serves it beside the others.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
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
            group: None,
        },
        limits: ModelLimits::default(),
        group: None,
    })
}

/// How many trials may take longer than they may, and which share of all, before the session ends: the first of an operator
/// has more to do, and now and then something else holds one up.
const MAX_OVERLONG: usize = 8;
const MAX_OVERLONG_SHARE: f64 = 0.2;

/// Turns that an engine gives.
pub(super) struct EngineTurns {
    engine: Arc<Engine>,
    model: ModelKey,
    patience: Patience,
}

impl EngineTurns {
    /// Turns for the model of trials, each of which may take so long.
    pub(super) fn new(engine: Arc<Engine>, model: ModelKey, longest: Option<Duration>) -> Self {
        Self { engine, model, patience: Patience::new(longest) }
    }
}

impl Turns for EngineTurns {
    fn take(&self, inputs: Vec<Value>) -> Result<(), DeviceError> {
        match self.engine.infer(self.model, inputs) {
            Ok(answer) => self.patience.endure(answer.ran).map_err(DeviceError::Failed),
            Err(error) => Err(DeviceError::Failed(format!("a trial got no turn: {error}"))),
        }
    }
}

/// Counts trials that hold others up for longer than their objectives leave room for.
struct Patience {
    /// `None` where trials yield at once.
    longest: Option<Duration>,
    taken: AtomicUsize,
    overlong: AtomicUsize,
}

impl Patience {
    fn new(longest: Option<Duration>) -> Self {
        Self { longest, taken: AtomicUsize::new(0), overlong: AtomicUsize::new(0) }
    }

    /// Fails where too many have taken too long.
    fn endure(&self, took: Duration) -> Result<(), String> {
        let taken = self.taken.fetch_add(1, Ordering::Relaxed) + 1;
        let Some(longest) = self.longest.filter(|&longest| took > longest) else { return Ok(()) };
        let overlong = self.overlong.fetch_add(1, Ordering::Relaxed) + 1;
        if overlong <= MAX_OVERLONG || overlong as f64 <= taken as f64 * MAX_OVERLONG_SHARE {
            return Ok(());
        }
        let ms = |time: Duration| time.as_secs_f64() * 1e3;
        Err(format!(
            "trials hold up what is served: one took {:.1} ms, and {:.1} ms are a quarter of the tightest objective",
            ms(took),
            ms(longest)
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patience_ends_after_some_trials_that_take_too_long() {
        let ms = Duration::from_millis;
        let strict = Patience::new(Some(ms(3)));
        assert!((0..MAX_OVERLONG).all(|_| strict.endure(ms(9)).is_ok()));
        let ended = strict.endure(ms(9)).unwrap_err();
        assert!(ended.contains("took 9.0 ms") && ended.contains("3.0 ms"), "{ended}");
        let used_to_it = Patience::new(Some(ms(3)));
        assert!((0..100).all(|_| used_to_it.endure(ms(3)).is_ok()));
        assert!((0..25).all(|_| used_to_it.endure(ms(9)).is_ok()), "a fifth of all");
        assert!(used_to_it.endure(ms(9)).is_err());
        let without = Patience::new(None);
        assert!((0..100).all(|_| without.endure(ms(900)).is_ok()));
    }
}
