//! `weft bench groups`: tenants with models of one structure, apart and as a group.

mod cpu;
mod cuda;

use anyhow::{Result, ensure};
use clap::Args;
use weft_ir::Graph;
use weft_zoo::ZooOptions;

use crate::device::{DeviceName, DeviceOptions};
use crate::kernel_options::KernelOptions;
use crate::model_file::{self, DimensionOptions};

#[derive(Args)]
pub(crate) struct Options {
    /// The models: zoo:NAME, with other weights for each tenant, or ONNX files [default: four small ones on a CPU,
    /// zoo:resnet18 and zoo:mobilenet_v2 on a GPU]
    models: Vec<String>,
    #[command(flatten)]
    device: DeviceOptions,
    /// Numbers of tenants, each with one request [default: 8 on a CPU, 32 on a GPU]
    #[arg(long, value_delimiter = ',')]
    tenants: Vec<usize>,
    /// Cores of the partition, on a CPU [default: all]
    #[arg(long)]
    cores: Option<usize>,
    /// SMs of the partition, on a GPU [default: all]
    #[arg(long)]
    sms: Option<usize>,
    /// Rounds in which all have their turns
    #[arg(long, default_value_t = 9)]
    rounds: usize,
    #[command(flatten)]
    kernels: KernelOptions,
    #[command(flatten)]
    dimensions: DimensionOptions,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

impl Options {
    /// The models, which can all be read.
    fn models(&self, otherwise: &[&str]) -> Result<Vec<String>> {
        let models = match self.models.is_empty() {
            true => otherwise.iter().map(|name| name.to_string()).collect(),
            false => self.models.clone(),
        };
        self.dimensions.check(models.iter().map(|name| &**name))?;
        Ok(models)
    }

    fn tenants(&self, otherwise: usize) -> Vec<usize> {
        if self.tenants.is_empty() { vec![otherwise] } else { self.tenants.clone() }
    }
}

pub(crate) fn run(options: &Options) -> Result<()> {
    ensure!(options.rounds > 0, "--rounds must be at least 1");
    ensure!(options.tenants.iter().all(|&count| count > 0), "--tenants must be at least 1");
    match options.device.device {
        DeviceName::Cpu => {
            ensure!(options.sms.is_none(), "--sms is for GPUs; give --cores");
            let is_given = options.device.precision.is_some();
            ensure!(!is_given, "--precision is for GPUs; a CPU runs at f32");
            ensure!(!options.kernels.is_given(), "--choice and --no-libraries are for GPUs");
            cpu::run(options)
        }
        DeviceName::Cuda(_) => {
            ensure!(options.cores.is_none(), "--cores is for CPUs; give --sms");
            cuda::run(options)
        }
    }
}

/// The model of a tenant.
fn graph(name: &str, seed: u64) -> Result<Graph> {
    match name.strip_prefix("zoo:") {
        Some(name) => Ok(weft_zoo::build(name, &ZooOptions { seed, ..ZooOptions::default() })?),
        None => model_file::load(&model_file::resolve(name)?),
    }
}
