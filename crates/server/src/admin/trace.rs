//! What the engine does for some seconds, as a timeline: Trace Event JSON, which Perfetto and Chrome show.
//!
//! The server is one process of the trace, with a track for each partition and a counter for each model's queue.

use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::time::{MissedTickBehavior, interval, sleep};
use weft_engine::{LaunchRecord, ModelKey};
use weft_scheduler::UnitMask;

use super::error::AdminError;
use crate::inference::Serving;
use crate::models::ModelTable;

/// The longest trace.
const MAX_SECONDS: f64 = 60.0;
const DEFAULT_SECONDS: f64 = 2.0;

/// How often queues are looked at.
const QUEUES_EVERY: Duration = Duration::from_millis(10);

/// The server's number among the processes of the trace.
const PROCESS: u32 = 1;

/// Records for as long as the query says, and writes the trace.
pub(super) async fn record(serving: &Serving, query: Option<&str>) -> Result<String, AdminError> {
    let length = length(query)?;
    let metrics = serving.models.metrics();
    let recording = metrics.recorder.record().ok_or(AdminError::Recording)?;
    let mut trace = Trace::begin(&serving.models);
    tokio::select! {
        () = sleep(length) => {}
        () = watch_queues(serving, &mut trace) => {}
    }
    let (launches, left_out) = recording.finish();
    launches.iter().for_each(|launch| trace.launch(launch));
    Ok(trace.finish(left_out))
}

fn length(query: Option<&str>) -> Result<Duration, AdminError> {
    let wrong = |what: String| Err(AdminError::WrongQuery(what));
    let mut seconds = DEFAULT_SECONDS;
    for pair in query.unwrap_or_default().split('&').filter(|pair| !pair.is_empty()) {
        match pair.split_once('=') {
            Some(("seconds", given)) => match given.parse() {
                Ok(given) => seconds = given,
                Err(_) => return wrong(format!("'{given}' is no number of seconds")),
            },
            _ => return wrong(format!("'{pair}' is not known; there is seconds=N")),
        }
    }
    if !(seconds > 0.0 && seconds <= MAX_SECONDS) {
        return wrong(format!("a trace takes more than 0 and at most {MAX_SECONDS} seconds"));
    }
    Ok(Duration::from_secs_f64(seconds))
}

/// Never ends.
async fn watch_queues(serving: &Serving, trace: &mut Trace<'_>) {
    let mut looks = interval(QUEUES_EVERY);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        looks.tick().await;
        let now = Instant::now();
        let models = serving.engine.status().models;
        trace.evicted(models.iter().filter(|model| model.is_evicted).count(), now);
        for model in models {
            trace.queue(model.model, model.waiting, now);
        }
    }
}

/// A trace in the making.
struct Trace<'a> {
    table: &'a ModelTable,
    began: Instant,
    events: Vec<Value>,
    /// The number of each partition's track, by whether it is in the background, its number and its units.
    tracks: BTreeMap<(bool, u32, UnitMask), usize>,
    /// What was last written of each queue.
    queues: HashMap<ModelKey, usize>,
    /// And of how many members of groups are evicted.
    evicted: usize,
}

impl<'a> Trace<'a> {
    fn begin(table: &'a ModelTable) -> Self {
        let name = json!({ "ph": "M", "pid": PROCESS, "name": "process_name", "args": { "name": "weft" } });
        Self {
            table,
            began: Instant::now(),
            events: vec![name],
            tracks: BTreeMap::new(),
            queues: HashMap::new(),
            evicted: 0,
        }
    }

    fn name(&self, model: ModelKey) -> String {
        self.table.name_of(model).unwrap_or_else(|| "served no more".into())
    }

    /// A queue is so long; written where that has changed.
    fn queue(&mut self, model: ModelKey, rows: usize, now: Instant) {
        if self.queues.insert(model, rows) == Some(rows) {
            return;
        }
        let name = format!("queue of {}", self.name(model));
        let at = micros(now.duration_since(self.began));
        self.events.push(json!({
            "ph": "C", "pid": PROCESS, "ts": at, "name": name, "args": { "rows": rows },
        }));
    }

    /// So many members of groups are served apart; written where that has changed.
    fn evicted(&mut self, members: usize, now: Instant) {
        if std::mem::replace(&mut self.evicted, members) == members {
            return;
        }
        let at = micros(now.duration_since(self.began));
        self.events.push(json!({
            "ph": "C", "pid": PROCESS, "ts": at, "name": "evicted members", "args": { "models": members },
        }));
    }

    fn launch(&mut self, launch: &LaunchRecord) {
        let track = self.track(launch);
        // What ran already when the recording began stands at its beginning as far as it is in it.
        let end =
            (launch.started + launch.took + launch.paused).saturating_duration_since(self.began);
        let start = launch.started.saturating_duration_since(self.began);
        self.events.push(json!({
            "ph": "X", "pid": PROCESS, "tid": track, "cat": "execution",
            "name": self.name(launch.model),
            "ts": micros(start), "dur": micros(end - start),
            "args": {
                "batch": launch.rows,
                "tenants": launch.tenants,
                "fused": launch.is_fused,
                "mixed": launch.is_mixed,
                "partition": launch.partition,
                "took_us": micros(launch.took),
                "expected_us": micros(launch.expected),
            },
        }));
    }

    /// The number of a partition's track; a new one is announced.
    fn track(&mut self, launch: &LaunchRecord) -> usize {
        let next = self.tracks.len() + 1;
        let key = (launch.is_background, launch.partition, launch.units);
        let track = *self.tracks.entry(key).or_insert(next);
        if track == next {
            let layer = if launch.is_background { ", background" } else { "" };
            let units: Vec<String> = launch.units.iter().map(|unit| unit.to_string()).collect();
            let name = format!("partition {}{layer}: units {}", launch.partition, units.join(", "));
            let first = launch.units.iter().next().unwrap_or_default();
            for (field, value) in [("name", json!(name)), ("sort_index", json!(first))] {
                self.events.push(json!({
                    "ph": "M", "pid": PROCESS, "tid": track, "name": format!("thread_{field}"),
                    "args": { field: value },
                }));
            }
        }
        track
    }

    fn finish(self, left_out: u64) -> String {
        json!({
            "displayTimeUnit": "ms",
            "otherData": { "launches_left_out": left_out },
            "traceEvents": self.events,
        })
        .to_string()
    }
}

fn micros(duration: Duration) -> f64 {
    duration.as_nanos() as f64 / 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_length_is_limited() {
        assert_eq!(length(None).unwrap(), Duration::from_secs(2));
        assert_eq!(length(Some("seconds=0.5")).unwrap(), Duration::from_millis(500));
        for query in ["seconds=0", "seconds=-1", "seconds=61", "seconds=NaN", "seconds=x", "a=b"] {
            assert!(length(Some(query)).is_err(), "{query}");
        }
    }
}
