//! The records of a database as lines of JSON.

use std::io::{BufRead, Read, Write};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use weft_device::{Measurement, OperatorKey, Platform};

use super::merge::{Merged, Record};
use super::record::{Choice, Method, Outcome, TaskKey, TrialRecord, check_name, nanoseconds};
use super::schedules::{RecordedSchedule, ScheduleKey};
use super::trials::{TrialRow, method_from_name, method_name};
use super::{Database, DatabaseError};

/// The version of the lines below.
const VERSION: u32 = 2;
/// The version of an export without schedules, which came with the second: whoever knows only the first can read it.
const VERSION_WITHOUT_SCHEDULES: u32 = 1;
/// How long a line of an import may be.
const MAX_LINE_BYTES: usize = 1 << 20;
/// How many records an import may have.
const MAX_RECORDS: usize = 1_000_000;

/// The first line. A file that lost its end has fewer records than it says.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    weft_tuning_export: u32,
    records: usize,
}

/// Every other line. What is not a number is `null`.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum Line {
    Trial {
        task: Task,
        candidate: String,
        method: String,
        outcome: LineOutcome,
        features: Vec<Option<f32>>,
        recorded_unix_ms: u64,
    },
    Crashes {
        task: Task,
        candidate: String,
        crashes: u32,
    },
    Choice {
        task: Task,
        candidate: String,
        time_ns: u64,
        untuned_candidate: String,
        untuned_time_ns: u64,
        trials: u32,
        recorded_unix_ms: u64,
    },
    Schedule {
        mix: LineMix,
        stages: String,
        time_ns: u64,
        in_turns_time_ns: u64,
        recorded_unix_ms: u64,
    },
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct LineMix {
    chip: String,
    driver: String,
    kernels: String,
    mix: String,
    units: u32,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Task {
    chip: String,
    driver: String,
    kernels: String,
    operator: String,
    precision: String,
    partition_size: usize,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum LineOutcome {
    Measured { time_ns: u64, spread: Option<f64>, interference: Option<f64> },
    Wrong { error: Option<f64> },
    Failed { reason: String },
    Hung,
}

impl Database {
    /// Writes all records as lines of JSON, which [`Self::import`] reads; how many.
    pub fn export(&self, mut to: impl Write) -> Result<usize, DatabaseError> {
        let records = self.records()?;
        let has_schedules = records.iter().any(|record| matches!(record, Record::Schedule(..)));
        let version = if has_schedules { VERSION } else { VERSION_WITHOUT_SCHEDULES };
        let header = Header { weft_tuning_export: version, records: records.len() };
        write_line(&mut to, &header)?;
        for record in &records {
            write_line(&mut to, &Line::from(record))?;
        }
        to.flush()?;
        Ok(records.len())
    }

    /// Takes in the lines that [`Self::export`] wrote, as [`Self::merge`] would. All of them are read and checked before
    /// the first one is taken in.
    pub fn import(&self, from: impl BufRead) -> Result<Merged, DatabaseError> {
        self.take_in(&read(from)?)
    }
}

fn write_line(to: &mut impl Write, line: &impl Serialize) -> Result<(), DatabaseError> {
    let mut text = serde_json::to_vec(line).map_err(std::io::Error::from)?;
    text.push(b'\n');
    Ok(to.write_all(&text)?)
}

fn read(mut from: impl BufRead) -> Result<Vec<Record>, DatabaseError> {
    let mut number = 1;
    let first = next_line(&mut from, number)?.unwrap_or_default();
    let wrong = |line, what: String| Err(DatabaseError::Import { line, what });
    let header: Header = match parse(&first, number) {
        Ok(header) => header,
        Err(DatabaseError::Import { what, .. }) => {
            return wrong(number, format!("this is not an export of a tuning database ({what})"));
        }
        Err(error) => return Err(error),
    };
    if !(1..=VERSION).contains(&header.weft_tuning_export) {
        let found = header.weft_tuning_export;
        let what = format!(
            "this is version {found} of the format, and those up to {VERSION} are known here"
        );
        return wrong(number, what);
    }
    if header.records > MAX_RECORDS {
        let what = format!("{} records are more than the {MAX_RECORDS} allowed", header.records);
        return wrong(number, what);
    }
    let mut records = Vec::new();
    while let Some(line) = next_line(&mut from, number + 1)? {
        number += 1;
        if records.len() == header.records {
            return wrong(number, format!("the file says it has {} records", header.records));
        }
        let line: Line = parse(&line, number)?;
        match Record::try_from(line) {
            Ok(record) => records.push(record),
            Err(DatabaseError::Refused(what)) => return wrong(number, what),
            Err(error) => return Err(error),
        }
    }
    if records.len() < header.records {
        let (has, says) = (records.len(), header.records);
        return wrong(number, format!("the file ends after {has} of {says} records"));
    }
    Ok(records)
}

/// The next line without its end; `None` where there is none.
fn next_line(from: &mut impl BufRead, number: usize) -> Result<Option<Vec<u8>>, DatabaseError> {
    let mut line = Vec::new();
    from.by_ref().take(MAX_LINE_BYTES as u64 + 1).read_until(b'\n', &mut line)?;
    if line.is_empty() {
        return Ok(None);
    }
    if line.last() == Some(&b'\n') {
        line.pop();
    }
    if line.len() > MAX_LINE_BYTES {
        let what = format!("it has more than the {MAX_LINE_BYTES} bytes allowed");
        return Err(DatabaseError::Import { line: number, what });
    }
    Ok(Some(line))
}

fn parse<'a, T: Deserialize<'a>>(line: &'a [u8], number: usize) -> Result<T, DatabaseError> {
    serde_json::from_slice(line).map_err(|error| {
        let text = error.to_string();
        // The parser sees one line at a time, and counts from there.
        let what = text.rsplit_once(" at line ").map_or(text.as_str(), |(what, _)| what);
        let what = format!("{what} at column {}", error.column());
        DatabaseError::Import { line: number, what }
    })
}

impl From<&Record> for Line {
    fn from(record: &Record) -> Self {
        match record {
            Record::Trial(TrialRow { task, candidate, record }) => Self::Trial {
                task: task.into(),
                candidate: candidate.clone(),
                method: method_name(record.method).into(),
                outcome: (&record.outcome).into(),
                features: record.features.iter().map(|&feature| Some(feature)).collect(),
                recorded_unix_ms: record.recorded_unix_ms,
            },
            Record::Crashes { task, candidate, crashes } => {
                Self::Crashes { task: task.into(), candidate: candidate.clone(), crashes: *crashes }
            }
            Record::Choice(task, choice) => Self::Choice {
                task: task.into(),
                candidate: choice.candidate.clone(),
                time_ns: nanoseconds(choice.time),
                untuned_candidate: choice.untuned_candidate.clone(),
                untuned_time_ns: nanoseconds(choice.untuned_time),
                trials: choice.trials,
                recorded_unix_ms: choice.recorded_unix_ms,
            },
            Record::Schedule(key, schedule) => Self::Schedule {
                mix: key.into(),
                stages: schedule.stages.clone(),
                time_ns: nanoseconds(schedule.time),
                in_turns_time_ns: nanoseconds(schedule.in_turns_time),
                recorded_unix_ms: schedule.recorded_unix_ms,
            },
        }
    }
}

impl TryFrom<Line> for Record {
    type Error = DatabaseError;

    fn try_from(line: Line) -> Result<Self, DatabaseError> {
        match line {
            Line::Trial { task, candidate, method, outcome, features, recorded_unix_ms } => {
                check_name("candidate", &candidate)?;
                let method: Method = method_from_name(&method).ok_or_else(|| {
                    DatabaseError::Refused(format!("'{method}' is no way to try a candidate"))
                })?;
                let features =
                    features.into_iter().map(|feature| feature.unwrap_or(f32::NAN)).collect();
                let record =
                    TrialRecord { outcome: outcome.into(), method, features, recorded_unix_ms };
                let record = record.plain()?;
                Ok(Self::Trial(TrialRow { task: task.try_into()?, candidate, record }))
            }
            Line::Crashes { task, candidate, crashes } => {
                check_name("candidate", &candidate)?;
                Ok(Self::Crashes { task: task.try_into()?, candidate, crashes })
            }
            Line::Choice {
                task,
                candidate,
                time_ns,
                untuned_candidate,
                untuned_time_ns,
                trials,
                recorded_unix_ms,
            } => {
                let choice = Choice {
                    candidate,
                    time: Duration::from_nanos(time_ns),
                    untuned_candidate,
                    untuned_time: Duration::from_nanos(untuned_time_ns),
                    trials,
                    recorded_unix_ms,
                };
                Ok(Self::Choice(task.try_into()?, choice.plain()?))
            }
            Line::Schedule { mix, stages, time_ns, in_turns_time_ns, recorded_unix_ms } => {
                let schedule = RecordedSchedule {
                    stages,
                    time: Duration::from_nanos(time_ns),
                    in_turns_time: Duration::from_nanos(in_turns_time_ns),
                    recorded_unix_ms,
                };
                Ok(Self::Schedule(mix.try_into()?, schedule.plain()?))
            }
        }
    }
}

impl From<&TaskKey> for Task {
    fn from(task: &TaskKey) -> Self {
        let TaskKey { platform, operator, partition_size } = task.clone();
        let Platform { chip, driver, kernels } = platform;
        let OperatorKey { operator, precision } = operator;
        Self { chip, driver, kernels, operator, precision, partition_size }
    }
}

impl TryFrom<Task> for TaskKey {
    type Error = DatabaseError;

    fn try_from(task: Task) -> Result<Self, DatabaseError> {
        let Task { chip, driver, kernels, operator, precision, partition_size } = task;
        let platform = Platform { chip, driver, kernels };
        let operator = OperatorKey { operator, precision };
        let key = Self { platform, operator, partition_size };
        key.check()?;
        Ok(key)
    }
}

impl From<&ScheduleKey> for LineMix {
    fn from(key: &ScheduleKey) -> Self {
        let ScheduleKey { platform: Platform { chip, driver, kernels }, mix, units } = key.clone();
        Self { chip, driver, kernels, mix, units }
    }
}

impl TryFrom<LineMix> for ScheduleKey {
    type Error = DatabaseError;

    fn try_from(line: LineMix) -> Result<Self, DatabaseError> {
        let LineMix { chip, driver, kernels, mix, units } = line;
        let key = Self { platform: Platform { chip, driver, kernels }, mix, units };
        key.check()?;
        Ok(key)
    }
}

impl From<&Outcome> for LineOutcome {
    fn from(outcome: &Outcome) -> Self {
        match outcome {
            Outcome::Measured(Measurement { time, spread, interference }) => Self::Measured {
                time_ns: nanoseconds(*time),
                spread: Some(*spread),
                interference: Some(*interference),
            },
            Outcome::Wrong { error } => Self::Wrong { error: Some(*error) },
            Outcome::Failed(reason) => Self::Failed { reason: reason.clone() },
            Outcome::Hung => Self::Hung,
        }
    }
}

impl From<LineOutcome> for Outcome {
    fn from(outcome: LineOutcome) -> Self {
        match outcome {
            LineOutcome::Measured { time_ns, spread, interference } => {
                Self::Measured(Measurement {
                    time: Duration::from_nanos(time_ns),
                    spread: spread.unwrap_or(f64::NAN),
                    interference: interference.unwrap_or(f64::NAN),
                })
            }
            LineOutcome::Wrong { error } => Self::Wrong { error: error.unwrap_or(f64::NAN) },
            LineOutcome::Failed { reason } => Self::Failed(reason),
            LineOutcome::Hung => Self::Hung,
        }
    }
}
