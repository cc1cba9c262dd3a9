//! `weft run`: any program, in a bounded share of the GPU or of the cores.

mod cores;
mod cpu;
mod cuda;
mod probe;
mod program;
mod report;
mod share;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Result, ensure};
use clap::{ArgGroup, Args, ValueEnum};
use weft_cuda::CudaDevice;
use weft_device::UnitSet;

use crate::files;
use crate::progress;
pub(crate) use cores::allowed as allowed_cores;
pub(crate) use probe::{Options as ProbeOptions, run as probe};
pub(crate) use program::ignores_hangups;
use share::Share;

#[derive(Args)]
#[command(group = ArgGroup::new("bounds").args(["share", "cores"]).required(true))]
pub(crate) struct Options {
    /// How much the program may have: a part of the GPU's SMs, or of the cores that this process may use
    #[arg(long, value_name = "PERCENT%")]
    share: Option<Share>,
    /// The cores that the program may use, such as 2-3; for CPUs, in place of a share
    #[arg(long, value_name = "CORES")]
    cores: Option<UnitSet>,
    /// Whose work goes first where the program shares something with others
    #[arg(long, value_enum, default_value_t = Priority::Normal)]
    priority: Priority,
    /// What the share is of; auto is a GPU if there is one, else the cores
    #[arg(long, value_enum, default_value_t = Bounded::Auto)]
    device: Bounded,
    /// Start the program also where its bounds do not hold
    #[arg(long)]
    unchecked: bool,
    /// Say nothing but errors
    #[arg(long, short)]
    quiet: bool,
    /// Write how the program was bounded and how it ended as JSON to this file
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// The program and its arguments, after --
    #[arg(
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "PROGRAM"
    )]
    program: Vec<OsString>,
}

/// Whose work goes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Priority {
    /// As any other program's
    Normal,
    /// After others': nice 10 on the cores, below normal on a GPU
    Low,
}

impl Priority {
    fn name(self) -> &'static str {
        match self {
            Self::Normal => "normal",
            Self::Low => "low",
        }
    }
}

/// What is bounded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Bounded {
    Auto,
    Cpu,
    Cuda,
}

pub(crate) fn run(options: &Options) -> Result<ExitCode> {
    options.json.iter().try_for_each(|path| files::check(path))?;
    program::heed_children()?;
    match options.bounded()? {
        Bounded::Cuda => cuda::run(options),
        Bounded::Cpu | Bounded::Auto => cpu::run(options),
    }
}

/// What an error of this command ends with, where that is not what others' do.
pub(crate) fn exit_code(error: &anyhow::Error) -> Option<u8> {
    error.downcast_ref::<program::NotStarted>().map(program::NotStarted::exit_code)
}

impl Options {
    fn bounded(&self) -> Result<Bounded> {
        match (self.device, &self.cores) {
            (Bounded::Cuda, cores) => {
                ensure!(cores.is_none(), "--cores is for CPUs; give --share");
                Ok(Bounded::Cuda)
            }
            (Bounded::Cpu, _) | (_, Some(_)) => Ok(Bounded::Cpu),
            (Bounded::Auto, None) => {
                let has_gpu = CudaDevice::count().is_ok_and(|count| count > 0);
                Ok(if has_gpu { Bounded::Cuda } else { Bounded::Cpu })
            }
        }
    }

    /// Says something, unless nothing is to be said.
    fn say(&self, what: &str) {
        if !self.quiet {
            progress::say(format!("weft: {what}"));
        }
    }

    /// Passes on that the bounds hold, or why they do not; whoever asked not to be held up is told.
    fn checked<T>(&self, result: Result<T>) -> Result<Option<T>> {
        match result {
            Ok(value) => Ok(Some(value)),
            Err(error) if self.unchecked => {
                self.say(&format!("the bounds are not sure: {}", crate::describe(&error)));
                Ok(None)
            }
            Err(error) => Err(error.context("the program is not started: its bounds do not hold")),
        }
    }
}
