//! What the tuning database keeps, as values.

use std::time::{Duration, SystemTime};

use weft_device::{Measurement, OperatorKey, Platform, Trial};

use super::canonical::{Canonical, plain, plain_feature};
use super::error::DatabaseError;

/// How long a name may be: of a chip, an operator, a candidate.
pub(super) const MAX_NAME_BYTES: usize = 16 << 10;
/// How much is kept of the reason for a failure.
pub(super) const MAX_REASON_BYTES: usize = 1 << 10;
/// How many features a candidate may have.
pub(super) const MAX_FEATURES: usize = 4096;

/// What candidates compete for: an operator on partitions of one size of one platform.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskKey {
    /// What results hold for.
    pub platform: Platform,
    /// What is computed.
    pub operator: OperatorKey,
    /// How many cores or SMs the partition has; at least one.
    pub partition_size: usize,
}

impl TaskKey {
    /// The other is the same operator on the same platform, on partitions of another size.
    pub(crate) fn differs_in_size_from(&self, other: &Self) -> bool {
        self.partition_size != other.partition_size
            && self.operator == other.operator
            && self.platform == other.platform
    }
}

/// How a candidate was tried; the later one is trusted more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Method {
    /// While others were, or on a part of the partition that it is for.
    Screened,
    /// With the device to itself, on a partition of the size that it is for.
    Alone,
}

/// What came of trying a candidate.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// Its results are right, and this is how long it takes.
    Measured(Measurement),
    /// Its results differ from the reference by this share of their norm.
    Wrong {
        /// Not a number where results are none.
        error: f64,
    },
    /// It cannot be run here, and why.
    Failed(String),
    /// It did not end within the limit that it was given.
    Hung,
}

impl From<Trial> for Outcome {
    fn from(trial: Trial) -> Self {
        match trial {
            Trial::Measured(measurement) => Self::Measured(measurement),
            Trial::Wrong { error } => Self::Wrong { error },
            Trial::Failed(reason) => Self::Failed(reason),
        }
    }
}

/// A candidate that was tried.
#[derive(Clone, Debug, PartialEq)]
pub struct TrialRecord {
    /// What came of it.
    pub outcome: Outcome,
    /// How it was tried.
    pub method: Method,
    /// What its time depends on, for a model that learns it.
    pub features: Vec<f32>,
    /// When, in milliseconds since 1970.
    pub recorded_unix_ms: u64,
}

/// The candidate that was picked for a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// Its name.
    pub candidate: String,
    /// How long it takes.
    pub time: Duration,
    /// What would be taken if nothing were known.
    pub untuned_candidate: String,
    /// How long that takes.
    pub untuned_time: Duration,
    /// How many candidates were tried before it was picked.
    pub trials: u32,
    /// When, in milliseconds since 1970.
    pub recorded_unix_ms: u64,
}

/// Now, as records keep it.
pub fn unix_ms_now() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

impl TaskKey {
    pub(super) fn canonical(&self) -> Canonical {
        Canonical::default()
            .text(&self.platform.chip)
            .text(&self.platform.driver)
            .text(&self.platform.kernels)
            .text(&self.operator.operator)
            .text(&self.operator.precision)
            .number(self.partition_size as u64)
    }

    pub(super) fn check(&self) -> Result<(), DatabaseError> {
        check_platform(&self.platform)?;
        check_name("operator", &self.operator.operator)?;
        check_name("precision", &self.operator.precision)?;
        match u32::try_from(self.partition_size) {
            Ok(1..) => Ok(()),
            _ => Err(DatabaseError::Refused(format!(
                "a partition of size {} cannot be",
                self.partition_size
            ))),
        }
    }
}

pub(super) fn check_platform(platform: &Platform) -> Result<(), DatabaseError> {
    check_name("chip", &platform.chip)?;
    check_name("driver", &platform.driver)?;
    check_name("kernels", &platform.kernels)
}

pub(super) fn check_name(what: &str, name: &str) -> Result<(), DatabaseError> {
    if name.len() > MAX_NAME_BYTES {
        let length = name.len();
        let refusal = format!("the {what} has {length} bytes and may have {MAX_NAME_BYTES}");
        return Err(DatabaseError::Refused(refusal));
    }
    Ok(())
}

impl TrialRecord {
    /// A record of what has just come of a candidate.
    pub fn now(outcome: impl Into<Outcome>, method: Method, features: &[f32]) -> Self {
        let recorded_unix_ms = unix_ms_now();
        Self { outcome: outcome.into(), method, features: features.to_vec(), recorded_unix_ms }
    }

    /// The record as it will be read back.
    pub(super) fn plain(mut self) -> Result<Self, DatabaseError> {
        if self.features.len() > MAX_FEATURES {
            let count = self.features.len();
            let refusal = format!("a candidate has {count} features and may have {MAX_FEATURES}");
            return Err(DatabaseError::Refused(refusal));
        }
        for feature in &mut self.features {
            *feature = plain_feature(*feature);
        }
        match &mut self.outcome {
            Outcome::Measured(Measurement { time, spread, interference }) => {
                *time = storable(*time);
                *spread = plain(*spread);
                *interference = plain(*interference);
            }
            Outcome::Wrong { error } => *error = plain(*error),
            Outcome::Failed(reason) => {
                let is_end = |&length: &usize| reason.is_char_boundary(length);
                let length = (0..=MAX_REASON_BYTES).rev().find(is_end).unwrap_or(0);
                reason.truncate(length);
            }
            Outcome::Hung => {}
        }
        self.recorded_unix_ms = self.recorded_unix_ms.min(i64::MAX as u64);
        Ok(self)
    }

    /// What stands above all else between two records of a candidate: that it is wrong, then how it was tried.
    pub(super) fn rank(&self) -> (bool, Method) {
        (matches!(self.outcome, Outcome::Wrong { .. }), self.method)
    }

    /// Of two records of one candidate from two databases, the one that stays is the greater by this.
    pub(super) fn precedence(&self) -> ((bool, Method), u64, Vec<u8>) {
        let bytes = self.append_to(Canonical::default()).into_bytes();
        (self.rank(), self.recorded_unix_ms, bytes)
    }

    pub(super) fn append_to(&self, canonical: Canonical) -> Canonical {
        let canonical = match &self.outcome {
            Outcome::Measured(Measurement { time, spread, interference }) => {
                canonical.number(0).number(nanoseconds(*time)).float(*spread).float(*interference)
            }
            Outcome::Wrong { error } => canonical.number(1).float(*error),
            Outcome::Failed(reason) => canonical.number(2).text(reason),
            Outcome::Hung => canonical.number(3),
        };
        canonical
            .number(self.method as u64)
            .bytes(&features_to_bytes(&self.features))
            .number(self.recorded_unix_ms)
    }
}

impl Choice {
    /// How many times faster it is than what would be taken if nothing were known.
    pub fn gain(&self) -> f64 {
        self.untuned_time.as_secs_f64() / self.time.as_secs_f64()
    }

    /// The choice as it will be read back.
    pub(super) fn plain(mut self) -> Result<Self, DatabaseError> {
        check_name("candidate", &self.candidate)?;
        check_name("untuned candidate", &self.untuned_candidate)?;
        self.time = storable(self.time);
        self.untuned_time = storable(self.untuned_time);
        self.recorded_unix_ms = self.recorded_unix_ms.min(i64::MAX as u64);
        Ok(self)
    }

    /// Of two choices for one task from two databases, the one that stays is the greater by this: the later one, then the
    /// one for which more was tried.
    pub(super) fn precedence(&self) -> (u64, u32, Vec<u8>) {
        let bytes = self.append_to(Canonical::default()).into_bytes();
        (self.recorded_unix_ms, self.trials, bytes)
    }

    pub(super) fn append_to(&self, canonical: Canonical) -> Canonical {
        canonical
            .text(&self.candidate)
            .number(nanoseconds(self.time))
            .text(&self.untuned_candidate)
            .number(nanoseconds(self.untuned_time))
            .number(self.trials.into())
            .number(self.recorded_unix_ms)
    }
}

pub(super) fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// The database's integers have a sign: no time is longer than they hold.
pub(super) fn storable(time: Duration) -> Duration {
    time.min(Duration::from_nanos(i64::MAX as u64))
}

pub(super) fn features_to_bytes(features: &[f32]) -> Vec<u8> {
    features.iter().flat_map(|feature| feature.to_le_bytes()).collect()
}

/// `None` where the bytes are not a whole number of features.
pub(super) fn features_from_bytes(bytes: &[u8]) -> Option<Vec<f32>> {
    let (features, rest) = bytes.as_chunks();
    rest.is_empty().then(|| features.iter().map(|&feature| f32::from_le_bytes(feature)).collect())
}
