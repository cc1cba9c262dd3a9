//! One version of one model, as it is served.

use weft_engine::ModelKey;

use super::signature::Signature;
use crate::error::ServeError;
use crate::statistics::Statistics;

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
    pub(crate) statistics: Statistics,
}

impl ModelEntry {
    /// A version of a model that the engine serves.
    pub fn new(name: String, version: u64, signature: Signature, key: ModelKey) -> Self {
        let version_text = version.to_string();
        Self { name, version, version_text, signature, key, statistics: Statistics::default() }
    }

    /// A request that does not fit this model.
    pub(crate) fn mismatch(&self, problem: String) -> ServeError {
        ServeError::Mismatch { model: self.name.clone(), problem }
    }
}
