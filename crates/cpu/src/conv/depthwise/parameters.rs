//! Owns what can be varied in a depthwise convolution without changing what it computes.

use std::fmt;

use super::{CHANNEL_MULTIPLE, Geometry};

/// Fewest channels worth a task of their own.
const CHANNELS_PER_TASK: usize = 64;

/// How many tasks each worker should find, so that none waits long for the last.
const TASKS_PER_WORKER: usize = 8;

/// How a depthwise convolution is cut into tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct DepthwiseParameters {
    /// How many rows of the output are computed together; by default, as many as leave every worker enough tasks.
    pub rows: Option<usize>,
    /// How many channels are computed together; by default, all, or fewer where there would be too few tasks.
    pub channels: Option<usize>,
}

/// The size of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::conv) struct TaskSize {
    pub(in crate::conv) rows: usize,
    pub(in crate::conv) channels: usize,
}

impl fmt::Display for DepthwiseParameters {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |size: Option<usize>| size.map_or("auto".into(), |size| size.to_string());
        write!(formatter, "rows {} channels {}", text(self.rows), text(self.channels))
    }
}

impl DepthwiseParameters {
    /// The parameters that convolutions are tuned over.
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        const ROWS: [Option<usize>; 6] = [None, Some(1), Some(4), Some(8), Some(16), Some(64)];
        const CHANNELS: [Option<usize>; 6] =
            [None, Some(16), Some(32), Some(64), Some(128), Some(256)];
        ROWS.into_iter()
            .flat_map(|rows| CHANNELS.into_iter().map(move |channels| Self { rows, channels }))
    }

    /// The size of every task that is not cut short by the end of the output.
    pub(in crate::conv) fn task_size(self, geometry: &Geometry, workers: usize) -> TaskSize {
        let Geometry { problem, output_height, .. } = geometry;
        let (channels_in, rows) = (problem.channels_in, problem.batch * output_height);
        // A task is some rows of all channels, or, where rows are few, one row of some channels.
        let wanted_tasks = TASKS_PER_WORKER * workers;
        let usual_rows = (rows / (2 * wanted_tasks)).max(1);
        let rows_per_task = self.rows.unwrap_or(usual_rows).clamp(1, rows);
        let channel_blocks = wanted_tasks
            .div_ceil(rows.div_ceil(rows_per_task))
            .min(channels_in.div_ceil(CHANNELS_PER_TASK))
            .max(1);
        let usual_channels = channels_in.div_ceil(channel_blocks);
        let channels = self.channels.unwrap_or(usual_channels).clamp(1, channels_in);
        TaskSize { rows: rows_per_task, channels: channels.next_multiple_of(CHANNEL_MULTIPLE) }
    }
}
