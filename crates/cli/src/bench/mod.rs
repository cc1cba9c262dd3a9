//! `weft bench`: every number in the README, reproduced.

mod footprint;
mod gpu;
mod groups;
mod model;
mod neighbours;
mod peer;
mod peers;
mod regulation;
mod sharing;
mod statistics;
mod steps;
mod superkernel;
mod timing;
mod training;
mod tuning;

pub(crate) use gpu::median_us;
pub(crate) use statistics::{geometric_mean, lower_quartile};
pub(crate) use timing::Subject;

use anyhow::Result;
use clap::Subcommand;

/// What can be measured.
#[derive(Subcommand)]
pub(crate) enum Command {
    /// Latency, GFLOP/s and share of peak of models at several batch sizes and numbers of cores
    Model(model::Options),
    /// Weft and onnxruntime side by side, interleaved in one run: speed, load time, peak memory
    Peers(peers::Options),
    /// Two models on disjoint partitions: what each keeps of its solo throughput
    Neighbours(neighbours::Options),
    /// A GPU: latency beside PyTorch, correctness, isolation, density, switching between partitions
    Gpu(gpu::Options),
    /// Tenants whose models differ in their weights alone: one after another, and as a group
    Groups(groups::Options),
    /// Mixes of different models: one after another, all at once, on even partitions, regulated, and by launches that they share
    Regulation(regulation::Options),
    /// Tenants' matrix products on a GPU: in turns, side by side in streams, and all in one launch
    Superkernel(superkernel::Options),
    /// Scheduling policies on mixes of models, simulated: the most load that each carries, and a load that moves
    Sharing(sharing::Options),
    /// Inference beside a training job: left to themselves, and bounded by `weft run`
    Training(training::Options),
    /// How much faster tuning is when candidates share the device, and whether it finds the same kernels
    TuningSharing(tuning::sharing::Options),
    /// Whether candidates that are timed side by side rank as when each has the device to itself
    TuningTrust(tuning::trust::Options),
    /// What models gain when their kernels are tuned for the partition that they run on
    TuningGain(tuning::gain::Options),
    /// Kernels tuned for partitions of several sizes, each served on every size: a matrix and a heat map
    TuningGrid(tuning::grid::Options),
    /// Load one model, run it once, print load time and peak memory as JSON
    #[command(hide = true)]
    Footprint(footprint::Options),
    /// Answer requests at a fixed pace, and print how long each took as JSON
    #[command(hide = true)]
    TrainingInference(training::inference::Options),
    /// Multiply matrices on many threads, and print steps per second as JSON
    #[command(hide = true)]
    TrainingStandIn(training::stand_in::Options),
}

pub(crate) fn run(command: &Command) -> Result<()> {
    match command {
        Command::Model(options) => model::run(options),
        Command::Peers(options) => peers::run(options),
        Command::Neighbours(options) => neighbours::run(options),
        Command::Gpu(options) => gpu::run(options),
        Command::Groups(options) => groups::run(options),
        Command::Regulation(options) => regulation::run(options),
        Command::Superkernel(options) => superkernel::run(options),
        Command::Sharing(options) => sharing::run(options),
        Command::Training(options) => training::run(options),
        Command::TuningSharing(options) => tuning::sharing::run(options),
        Command::TuningTrust(options) => tuning::trust::run(options),
        Command::TuningGain(options) => tuning::gain::run(options),
        Command::TuningGrid(options) => tuning::grid::run(options),
        Command::Footprint(options) => footprint::run(options),
        Command::TrainingInference(options) => training::inference::run(options),
        Command::TrainingStandIn(options) => training::stand_in::run(options),
    }
}

/// What an error of a benchmark ends with, where that is not what others' do.
pub(crate) fn exit_code(error: &anyhow::Error) -> Option<u8> {
    error.downcast_ref::<training::Interrupted>().map(training::Interrupted::exit_code)
}
