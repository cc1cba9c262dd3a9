//! What is agreed about one model, once every source was asked.

use std::collections::BTreeMap;
use std::time::Duration;

use weft_scheduler::plan::Slo;

use super::device::Precision;

/// What is agreed about one model.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelSettings {
    /// What is promised; `None` is best effort.
    pub slo: Option<Slo>,
    /// How long a request may take that says nothing of it, where nothing is promised.
    pub timeout: Option<Duration>,
    /// Requests per second that are expected before any has come.
    pub rate_per_s: Option<f64>,
    /// What an answer in time is worth, in relation to the other models'.
    pub weight: f64,
    /// Under overload, models of a higher priority are served before those of a lower one.
    pub priority: u8,
    /// Whose it is; `None` is everybody's.
    pub tenant: Option<String>,
    /// Whether other tenants may use it.
    pub is_shared: bool,
    /// The most items that run together; what the model and the device allow where it is not said.
    pub max_batch: Option<u32>,
    /// The most requests that wait; past it they are refused.
    pub max_queue: u32,
    /// How long named open dimensions are.
    pub dimensions: BTreeMap<String, u32>,
    /// How much of the device's memory it may take.
    pub memory_limit_bytes: Option<u64>,
    /// Whether it stays loaded when others need its memory.
    pub keep_loaded: bool,
    /// How long it stays loaded without a request; forever where it is not said.
    pub idle_timeout: Option<Duration>,
    /// What it runs at; the device's where it is not said.
    pub precision: Option<Precision>,
}
