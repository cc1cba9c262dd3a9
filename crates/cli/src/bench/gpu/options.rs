//! What is asked for on the command line, and what that means for each table.

use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Result, bail, ensure};
use clap::{Args, ValueEnum};
use weft_cuda::{CudaOptions, Precision};

use super::correctness::Selection;
use super::headline;
use crate::device::DeviceName;
use crate::kernel_options::KernelOptions;

/// Batches that are compared where nothing else is asked for.
const COMPARED_BATCHES: [usize; 2] = [1, 2];

#[derive(Args)]
pub(crate) struct Options {
    /// What to measure [default: all]
    #[arg(value_enum)]
    pub(super) tables: Vec<TableName>,
    /// Models of the zoo, for latency and correctness [default: those with a target]
    #[arg(long, value_delimiter = ',')]
    models: Vec<String>,
    /// Batch sizes, for latency and correctness [default: those with a target; 1 and 2 for correctness]
    #[arg(long, value_delimiter = ',')]
    batches: Vec<usize>,
    /// Compare every model of the zoo for correctness
    #[arg(long, conflicts_with = "models")]
    all: bool,
    /// Seconds to measure each case at least
    #[arg(long, default_value = "2", value_parser = seconds)]
    pub(super) seconds: Duration,
    /// What models run at: f16, bf16, tf32 or f32 [default: f16, and all of them for correctness]
    #[arg(long)]
    precision: Option<Precision>,
    #[command(flatten)]
    kernels: KernelOptions,
    /// What the inputs for correctness are drawn from [default: the time]
    #[arg(long)]
    pub(super) seed: Option<u64>,
    /// The Python that has torch, torchvision and transformers
    #[arg(long, value_name = "PATH", default_value = "python3")]
    pub(super) peer_python: String,
    /// Leave PyTorch out
    #[arg(long)]
    pub(super) no_peer: bool,
    /// The GPU: cuda, or cuda:NUMBER where there are several
    #[arg(long, value_name = "DEVICE", default_value = "cuda")]
    device: DeviceName,
    /// Also write the results as JSON to this file
    #[arg(long, value_name = "FILE")]
    pub(super) json: Option<PathBuf>,
}

/// What can be measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum TableName {
    /// One run of each model on the whole GPU, beside PyTorch
    Latency,
    /// Outputs at every precision against those of the CPU
    Correctness,
    /// A small model beside a large one, with partitions and without
    Isolation,
    /// Many tenants on partitions, against one after another
    Density,
    /// Moving a model between prepared partitions
    Switching,
}

impl TableName {
    pub(super) fn name(self) -> &'static str {
        match self {
            TableName::Latency => "latency",
            TableName::Correctness => "correctness",
            TableName::Isolation => "isolation",
            TableName::Density => "density",
            TableName::Switching => "switching",
        }
    }
}

fn seconds(text: &str) -> Result<Duration, String> {
    let number: f64 = text.parse().map_err(|_| format!("'{text}' is not a number of seconds"))?;
    Duration::try_from_secs_f64(number).map_err(|error| error.to_string())
}

impl Options {
    /// Refuses what no table can be made of.
    pub(super) fn check(&self) -> Result<()> {
        for model in self.models() {
            weft_zoo::entry(&model)?;
        }
        self.gpu()?;
        ensure!(self.batches.iter().all(|&batch| batch > 0), "a batch has at least one entry");
        Ok(())
    }

    /// The tables, each once.
    pub(super) fn tables(&self) -> Vec<TableName> {
        let is_asked_for =
            |table: &TableName| self.tables.is_empty() || self.tables.contains(table);
        TableName::value_variants().iter().copied().filter(is_asked_for).collect()
    }

    /// The number of the GPU.
    pub(super) fn gpu(&self) -> Result<usize> {
        match self.device {
            DeviceName::Cuda(number) => Ok(number),
            DeviceName::Cpu => {
                bail!("these tables are about GPUs; see `weft bench peers` for the CPU")
            }
        }
    }

    /// How the GPU is opened.
    pub(super) fn cuda(&self) -> CudaOptions {
        let precision = self.precision.unwrap_or_default();
        self.kernels.applied_to(CudaOptions { precision, ..Default::default() })
    }

    /// How kernels are chosen, in a word.
    pub(super) fn choice(&self) -> &'static str {
        self.kernels.choice()
    }

    fn models(&self) -> Vec<String> {
        if self.models.is_empty() {
            return headline::models();
        }
        let plain = |name: &String| name.strip_prefix("zoo:").unwrap_or(name).to_string();
        self.models.iter().map(plain).collect()
    }

    /// The models that are timed, with their batches.
    pub(super) fn timed(&self) -> Vec<(String, Vec<usize>)> {
        let batches = |model: &str| match self.batches.is_empty() {
            true => headline::batches(model),
            false => self.batches.clone(),
        };
        self.models().into_iter().map(|model| (model.clone(), batches(&model))).collect()
    }

    /// What is compared with the CPU.
    pub(super) fn compared(&self) -> Selection {
        let everything = || weft_zoo::names().iter().map(|name| name.to_string()).collect();
        let now = || SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
        Selection {
            models: if self.all { everything() } else { self.models() },
            batches: match self.batches.is_empty() {
                true => COMPARED_BATCHES.to_vec(),
                false => self.batches.clone(),
            },
            precisions: self.precision.map_or_else(|| Precision::ALL.to_vec(), |one| vec![one]),
            seed: self.seed.unwrap_or_else(now),
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use weft_cuda::Choice;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        options: Options,
    }

    fn parse(arguments: &str) -> Result<Options, String> {
        let line = ["gpu"].into_iter().chain(arguments.split_whitespace());
        let options = Line::try_parse_from(line).map_err(|error| error.to_string())?.options;
        options.check().map_err(|error| error.to_string())?;
        Ok(options)
    }

    #[test]
    fn everything_is_measured_where_nothing_is_asked_for() {
        let options = parse("").unwrap();
        assert_eq!(options.tables(), TableName::value_variants());
        assert_eq!(options.timed()[0], ("resnet50".to_string(), vec![1, 8, 32]));
        let compared = options.compared();
        assert_eq!((compared.models.len(), compared.batches), (4, vec![1, 2]));
        assert_eq!(compared.precisions, Precision::ALL);
        assert_eq!(options.cuda().choice, Choice::Measured);
        assert_eq!(options.cuda().precision, Precision::F16);
    }

    #[test]
    fn what_is_asked_for_is_measured() {
        let options =
            parse("density latency density --models zoo:vgg16,tiny_vgg --precision tf32 --choice estimated --seed 7").unwrap();
        assert_eq!(options.tables(), [TableName::Latency, TableName::Density]);
        assert_eq!(
            options.timed(),
            [("vgg16".to_string(), vec![1, 8]), ("tiny_vgg".to_string(), vec![1, 8])]
        );
        let compared = options.compared();
        assert_eq!((compared.precisions, compared.seed), (vec![Precision::Tf32], 7));
        assert_eq!(options.cuda().choice, Choice::Estimated);
        assert_eq!(parse("--batches 4").unwrap().timed()[3], ("bert_base".to_string(), vec![4]));
    }

    #[test]
    fn all_compares_the_whole_zoo_and_times_no_more_than_before() {
        let options = parse("--all").unwrap();
        assert_eq!(options.compared().models.len(), weft_zoo::names().len());
        assert_eq!(options.timed().len(), 4);
    }

    #[test]
    fn what_cannot_be_measured_is_refused() {
        for (arguments, says) in [
            ("speed", "speed"),
            ("--models resnet51", "resnet51"),
            ("--batches 0", "at least one"),
            ("--batches x", "x"),
            ("--seconds -1", "-1"),
            ("--seconds inf", "inf"),
            ("--seconds soon", "soon"),
            ("--precision f8", "f8"),
            ("--choice best", "best"),
            ("--device cpu", "GPU"),
            ("--device gpu", "'gpu'"),
            ("--all --models vgg16", "--all"),
        ] {
            let refused = parse(arguments).err().unwrap_or_default();
            assert!(refused.contains(says), "{arguments}: {refused}");
        }
    }
}
