//! What `/status` answers, for people and for `weft top`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// A server at one moment. What is called recent was counted over the last [`window_s`](Self::window_s) seconds.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct StatusDocument {
    /// Of the program.
    pub version: String,
    /// Since it started.
    pub uptime_s: f64,
    /// How far back recent goes.
    pub window_s: f64,
    /// Units that are computed on.
    pub units: u32,
    /// A layout is searched for, or partitions are made ready.
    pub is_changing: bool,
    /// How often partitions have got their units.
    pub repartitions: u64,
    /// The share of all units' time that was used of late, but for what ran in the background.
    pub utilisation: f64,
    /// Likewise, of what ran in the background; time that it waited for its units is in it.
    pub background_utilisation: f64,
    /// How far predictions were off of late.
    pub prediction_error: Option<PredictionDocument>,
    /// Of the device.
    pub memory: Option<MemoryDocument>,
    /// Of the host, by the process.
    pub resident_bytes: Option<u64>,
    /// Of clients.
    pub connections: usize,
    /// Requests for inference that were let in and have not ended.
    pub requests_in_flight: usize,
    /// Those that have their units.
    pub partitions: Vec<PartitionDocument>,
    /// Every model of the repository, by name.
    pub models: Vec<ModelDocument>,
}

/// How far predictions were off, as ratios: 0.1 is a tenth too much or too little.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PredictionDocument {
    /// Half of them were off by no more.
    pub median: f64,
    /// 95 of a hundred were.
    pub p95: f64,
}

/// Memory of the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryDocument {
    /// By models, at their largest batches.
    pub taken_bytes: u64,
    /// What they may take.
    pub budget_bytes: u64,
}

/// A partition.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PartitionDocument {
    /// Its number, among those of its layer.
    pub id: u32,
    /// It runs while others leave its units idle.
    pub is_background: bool,
    /// Their numbers.
    pub units: Vec<u32>,
    /// Models that are ready on it.
    pub models: Vec<String>,
    /// What it runs.
    pub running: Option<RunningDocument>,
}

/// A batch that runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunningDocument {
    /// What runs; in a group, the model of the first request.
    pub model: String,
    /// Entries of the batch.
    pub rows: u32,
    /// Models whose requests are in it.
    #[serde(default)]
    pub tenants: u32,
    /// Entries of a group run in one launch.
    #[serde(default)]
    pub is_fused: bool,
    /// Batches of different models run together, by a schedule.
    #[serde(default)]
    pub is_mixed: bool,
    /// For how long it has run.
    pub elapsed_ms: f64,
    /// How long it was expected to take.
    pub expected_ms: f64,
}

/// A model, whatever its versions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ModelDocument {
    /// What clients call it.
    pub name: String,
    /// ready, asleep, unloaded or failed.
    pub state: String,
    /// What was promised.
    pub objective: Option<ObjectiveDocument>,
    /// The recent share of requests with a deadline that were answered before it.
    pub attainment: Option<f64>,
    /// Recent requests, however they ended.
    pub requests_per_s: f64,
    /// Recent requests that were refused.
    pub refused_per_s: f64,
    /// Of requests that were answered of late.
    pub latency: Option<LatencyDocument>,
    /// Entries that wait.
    pub queue_rows: usize,
    /// Entries of a recent batch, on average.
    pub batch_rows: Option<f64>,
    /// The group that it is in.
    #[serde(default)]
    pub group: Option<MembershipDocument>,
    /// Units of the partitions that have it ready.
    pub units_held: u32,
    /// Units that the recent load would keep busy.
    pub units_asked: f64,
    /// How far recent predictions of its durations were off, on average.
    pub prediction_error: Option<f64>,
    /// Requests by outcome since the server started.
    pub requests: BTreeMap<String, u64>,
    /// Refused requests by reason since the server started.
    pub refusals: BTreeMap<String, u64>,
}

/// A model's place in a group of models that differ in their weights alone.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct MembershipDocument {
    /// The same for all members.
    pub id: u32,
    /// Entries of a recent launch that had some of the model's, on average, whosever they were.
    pub launch_rows: Option<f64>,
    /// It is served apart from the others, since it held them up.
    pub is_evicted: bool,
}

/// A latency objective.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ObjectiveDocument {
    /// The share of requests that must hold it.
    pub percentile: f64,
    /// From arrival to answer.
    pub latency_ms: f64,
}

/// Latencies, taken from a histogram.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LatencyDocument {
    /// Half of the answers came sooner.
    pub p50_ms: f64,
    /// 99 of a hundred did.
    pub p99_ms: f64,
}
