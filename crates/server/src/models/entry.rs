//! One version of one model, as it is served.

use std::sync::Arc;

use weft_engine::ModelKey;

use super::signature::Signature;
use crate::error::ServeError;
use crate::statistics::{Statistics, now_ms};

/// One version of one model: what it is called, what it takes and gives, and who runs it.
#[derive(Debug)]
pub struct ModelEntry {
    /// What clients call it.
    pub name: String,
    /// Counted from 1.
    pub version: u64,
    /// The same, as answers carry it.
    pub(crate) version_text: String,
    /// What it takes and gives.
    pub signature: Signature,
    /// What the engine knows it by.
    pub key: ModelKey,
    pub(crate) statistics: Arc<Statistics>,
    made_ms: u64,
}

impl ModelEntry {
    /// A version of a model that the engine serves.
    pub fn new(name: String, version: u64, signature: Signature, key: ModelKey) -> Self {
        let version_text = version.to_string();
        let statistics = Arc::<Statistics>::default();
        Self { name, version, version_text, signature, key, statistics, made_ms: now_ms() }
    }

    /// The same version, with what was counted of it, under another key of the engine's.
    pub(crate) fn under(&self, key: ModelKey) -> Self {
        Self {
            name: self.name.clone(),
            version: self.version,
            version_text: self.version_text.clone(),
            signature: self.signature.clone(),
            key,
            statistics: self.statistics.clone(),
            made_ms: self.made_ms,
        }
    }

    /// When it last answered, or else when it was made, in milliseconds since 1970.
    pub(crate) fn last_used_ms(&self) -> u64 {
        self.statistics.last_ms().max(self.made_ms)
    }

    /// A request that does not fit this model.
    pub(crate) fn mismatch(&self, problem: String) -> ServeError {
        ServeError::Mismatch { model: self.name.clone(), problem }
    }
}
