//! What `weft tune` is asked for.

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use anyhow::Result;
use clap::Args;
use weft_tuner::database::Database;
use weft_tuner::search::{SearchOptions, Strategy};
use weft_tuner::session::{CompileBudget, Part, Shard, Sharing, TuneOptions};

use crate::device::DeviceOptions;
use crate::duration;
use crate::model_file::DimensionOptions;
use crate::tuning::ModelSelection;

/// What the server that serves has decided already.
const NOT_WHILE_SERVING: [&str; 13] = [
    "dimensions",
    "device",
    "precision",
    "cores",
    "sms",
    "database",
    "one_at_a_time",
    "at_once",
    "workers",
    "mps",
    "limit",
    "random",
    "seed",
];

#[derive(Args)]
pub(crate) struct Options {
    /// The models: ONNX files, or zoo:NAME; with --while-serving names of served ones, and all of them where none is given
    #[arg(required_unless_present = "while_serving")]
    pub(super) models: Vec<String>,
    /// Batch sizes [default: 1; with --while-serving those that models are served at]
    #[arg(long, value_delimiter = ',')]
    pub(super) batches: Vec<usize>,
    #[command(flatten)]
    dimensions: DimensionOptions,
    /// Have the server that listens for administration at this address tune what it serves, beside serving it
    #[arg(long, value_name = "URL", conflicts_with_all = NOT_WHILE_SERVING)]
    pub(super) while_serving: Option<String>,
    #[command(flatten)]
    pub(super) device: DeviceOptions,
    /// Sizes of the partitions that the models will get, in cores of a CPU [default: 1]
    #[arg(long, value_delimiter = ',')]
    pub(super) cores: Vec<usize>,
    /// Sizes of the partitions that the models will get, in SMs of a GPU [default: all]
    #[arg(long, value_delimiter = ',')]
    pub(super) sms: Vec<usize>,
    /// The tuning database [default: WEFT_TUNING_DB, else tuning.db in the cache folder]
    #[arg(long, value_name = "FILE")]
    database: Option<PathBuf>,
    /// Begin no further trials after this long, as 60s or 5m
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub(super) budget: Option<Duration>,
    /// Candidates of each operator that are tried at most
    #[arg(long, default_value_t = SearchOptions::default().max_trials)]
    pub(super) trials: usize,
    /// Milliseconds for which each candidate is timed
    #[arg(long, value_name = "MS", default_value_t = TuneOptions::default().effort.as_secs_f64() * 1e3)]
    pub(super) effort: f64,
    /// Kernels that are compiled at most [default: more for more operators, which share them]
    #[arg(long, value_name = "COUNT")]
    compiles: Option<usize>,
    /// Time one candidate after another, with the device to itself
    #[arg(long)]
    one_at_a_time: bool,
    /// Time at most so many candidates at once [default: as many as the device has partitions]
    #[arg(long, value_name = "COUNT", conflicts_with = "one_at_a_time")]
    at_once: Option<usize>,
    /// Processes that share the device, each with partitions and operators of its own
    #[arg(long, default_value_t = 1)]
    pub(super) workers: usize,
    /// Run the processes under NVIDIA's Multi-Process Service, which is started for them
    #[arg(long)]
    pub(super) mps: bool,
    /// A candidate that runs for longer than this is ended, as 10s
    #[arg(long, value_name = "TIME", default_value = "20s", value_parser = parse_duration)]
    pub(super) limit: Duration,
    /// Choose what to try at random, not by what was learned
    #[arg(long)]
    random: bool,
    /// Where the search's random numbers begin
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Print the result as JSON
    #[arg(long)]
    pub(super) json: bool,
    /// This process is one of those that tune, and which: NUMBER/COUNT/PART
    #[arg(long, hide = true)]
    pub(super) as_worker: Option<Role>,
}

impl Options {
    /// What is tuned where nothing is served.
    pub(super) fn selection(&self) -> ModelSelection {
        let batches = if self.batches.is_empty() { vec![1] } else { self.batches.clone() };
        let (models, dimensions) = (self.models.clone(), self.dimensions.clone());
        ModelSelection { models, batches, dimensions }
    }

    /// The database that is read and written.
    pub(super) fn database(&self) -> Result<PathBuf> {
        match &self.database {
            Some(path) => Ok(path.clone()),
            None => Ok(Database::default_path()?),
        }
    }

    /// What a session is told.
    pub(super) fn session(&self, role: Role) -> TuneOptions {
        let strategy = if self.random { Strategy::Random } else { Strategy::Learned };
        let search = SearchOptions {
            strategy,
            seed: self.seed,
            max_trials: self.trials,
            ..SearchOptions::default()
        };
        TuneOptions {
            part: role.part,
            shard: role.shard,
            search,
            sharing: match (self.one_at_a_time, self.at_once) {
                (true, _) => Sharing::OneAtATime,
                (false, Some(count)) => Sharing::AtMost(count),
                (false, None) => Sharing::All,
            },
            effort: Duration::from_secs_f64(self.effort / 1e3),
            budget: self.budget,
            compiles: match self.compiles {
                Some(count) => CompileBudget { base: count, per_operator: 0.0 },
                None => CompileBudget::default(),
            },
            ..TuneOptions::default()
        }
    }
}

/// What one of the processes that tune does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Role {
    pub(super) shard: Shard,
    pub(super) part: Part,
}

impl Role {
    /// As it stands on a worker's command line.
    pub(super) fn text(self) -> String {
        let part = match self.part {
            Part::All => "all",
            Part::Screening => "screening",
            Part::Finals => "finals",
        };
        format!("{}/{}/{part}", self.shard.number, self.shard.count)
    }
}

impl FromStr for Role {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let refuse = || format!("'{text}' is no NUMBER/COUNT/PART");
        let [number, count, part] = text.split('/').collect::<Vec<_>>()[..] else {
            return Err(refuse());
        };
        let number = number.parse().map_err(|_| refuse())?;
        let count = count.parse().map_err(|_| refuse())?;
        let part = match part {
            "all" => Part::All,
            "screening" => Part::Screening,
            "finals" => Part::Finals,
            _ => return Err(refuse()),
        };
        (number < count).then_some(Self { shard: Shard { number, count }, part }).ok_or_else(refuse)
    }
}

/// A length of time, as the session counts it.
fn parse_duration(text: &str) -> Result<Duration, String> {
    duration::parse(text).map(|span| Duration::from_nanos(span.nanos()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_role_is_what_it_is_written_as() {
        for part in [Part::All, Part::Screening, Part::Finals] {
            let role = Role { shard: Shard { number: 1, count: 3 }, part };
            assert_eq!(role.text().parse(), Ok(role));
        }
        for text in ["", "1/1/all", "0/1", "0/1/some", "x/2/all"] {
            assert!(text.parse::<Role>().is_err(), "{text}");
        }
    }
}
