//! How a configuration wants requests gathered, and how long they may wait.

use std::time::Duration;

use super::reader::{Findings, Reader};

/// How requests of a model are gathered into batches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DynamicBatching {
    /// Sizes of batches that are to be run at once.
    pub preferred_batch_sizes: Vec<u32>,
    /// How long a request may wait for others.
    pub max_queue_delay: Duration,
    /// How many levels of priority there are; 1 is the most urgent. 0 where there are none.
    pub priority_levels: u64,
    /// The level of requests that name none; 0 where there are no levels.
    pub default_priority_level: u64,
    /// How requests wait.
    pub queue: QueuePolicy,
}

/// How requests wait.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueuePolicy {
    /// What happens to a request that waited too long.
    pub timeout_action: TimeoutAction,
    /// How long a request that says nothing of it may wait; `None` is forever.
    pub default_timeout: Option<Duration>,
    /// Whether a request may ask for a shorter time.
    pub allow_timeout_override: bool,
    /// The most requests that wait; `None` where it sets no limit.
    pub max_queue_size: Option<u32>,
}

/// What happens to a request that waited too long.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TimeoutAction {
    /// It is refused.
    #[default]
    Reject,
    /// It is served after those that are in time.
    Delay,
}

const TIMEOUT_ACTIONS: [(&str, TimeoutAction); 2] =
    [("REJECT", TimeoutAction::Reject), ("DELAY", TimeoutAction::Delay)];

/// Fields that are checked and kept, and that steer nothing: batches and turns follow from deadlines, and a request's own
/// timeout always counts.
const UNUSED: [&str; 6] = [
    "preferred_batch_size",
    "max_queue_delay_microseconds",
    "priority_levels",
    "default_priority_level",
    "preserve_ordering",
    "priority_queue_policy",
];
const UNUSED_OF_QUEUES: [&str; 2] = ["timeout_action", "allow_timeout_override"];

pub(super) fn read(
    root: &mut Reader<'_>,
    max_batch_size: Option<u32>,
    findings: &mut Findings,
) -> Option<DynamicBatching> {
    let mut message = root.message("dynamic_batching", findings)?;
    let preferred = message.integers::<u32>("preferred_batch_size", 1, findings);
    for found in &preferred {
        if let Some(most) = max_batch_size.filter(|&most| found.value > most) {
            let what =
                format!("a preferred batch of {} is above max_batch_size, {most}", found.value);
            findings.problem(found.line, what);
        }
    }
    let delay = message.integer::<u64>("max_queue_delay_microseconds", 0, findings);
    let levels = message.integer::<u64>("priority_levels", 0, findings);
    let default_level = message.integer::<u64>("default_priority_level", 0, findings);
    let levels = levels.map_or(0, |found| found.value);
    let has_default = default_level.is_some_and(|found| (1..=levels).contains(&found.value));
    if levels > 0 && !has_default {
        let line = default_level.map_or(message.line(), |found| found.line);
        let what = format!("'dynamic_batching.default_priority_level' must be from 1 to {levels}");
        findings.problem(line, what);
    }
    let queue = message.message("default_queue_policy", findings);
    let queue = queue.map(|queue| read_queue(queue, findings)).unwrap_or_default();
    message.ignore(&UNUSED, findings);
    message.close(findings);
    Some(DynamicBatching {
        preferred_batch_sizes: preferred.iter().map(|found| found.value).collect(),
        max_queue_delay: Duration::from_micros(delay.map_or(0, |found| found.value)),
        priority_levels: levels,
        default_priority_level: default_level.map_or(0, |found| found.value),
        queue,
    })
}

fn read_queue(mut message: Reader<'_>, findings: &mut Findings) -> QueuePolicy {
    let action = message.choice("timeout_action", &TIMEOUT_ACTIONS, findings);
    let timeout = message.integer::<u64>("default_timeout_microseconds", 0, findings);
    let may_override = message.flag("allow_timeout_override", findings);
    let most = message.integer::<u32>("max_queue_size", 0, findings);
    message.ignore(&UNUSED_OF_QUEUES, findings);
    message.close(findings);
    QueuePolicy {
        timeout_action: action.map_or(TimeoutAction::Reject, |found| found.value),
        default_timeout: timeout
            .filter(|found| found.value > 0)
            .map(|found| Duration::from_micros(found.value)),
        allow_timeout_override: may_override.is_some_and(|found| found.value),
        max_queue_size: most.filter(|found| found.value > 0).map(|found| found.value),
    }
}
