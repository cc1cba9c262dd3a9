//! The probe: a process in the same bounds as the program, which says what it can reach.

use std::process::{Command, Stdio};
use std::sync::Barrier;
use std::thread;

use anyhow::{Context, Result, ensure};
use clap::{Args, ValueEnum};
use rustix::thread::sched_getcpu;
use serde::{Deserialize, Serialize};
use weft_cuda::Reach;

use super::cores;

#[derive(Args)]
pub(crate) struct Options {
    /// What is looked at
    #[arg(long, value_enum)]
    device: Probed,
}

#[derive(Clone, Copy, ValueEnum)]
enum Probed {
    Cpu,
    Cuda,
}

/// What a process has seen of itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Seen {
    /// The cores that it may use, and those that its threads ran on.
    Cpu { cores: Vec<usize>, ran_on: Vec<usize> },
    /// The number of SMs that blocks ran on, and what the driver says of it.
    Cuda { sms: usize, reported_sms: usize },
}

/// Looks, and prints one line.
pub(crate) fn run(options: &Options) -> Result<()> {
    let seen = match options.device {
        Probed::Cpu => look_at_cores()?,
        Probed::Cuda => {
            let Reach { sms, reported_sms } = Reach::of_process(0)?;
            Seen::Cuda { sms, reported_sms }
        }
    };
    println!("{}", serde_json::to_string(&seen)?);
    Ok(())
}

/// How often each thread looks where it is.
const LOOKS: usize = 1000;

/// Threads that all run at once, one more than there are cores, say where they are.
fn look_at_cores() -> Result<Seen> {
    let allowed = cores::allowed()?;
    let count = allowed.len() + 1;
    let start = Barrier::new(count);
    let look = || {
        start.wait();
        (0..LOOKS).map(|_| sched_getcpu()).collect::<Vec<usize>>()
    };
    let mut ran_on: Vec<usize> = thread::scope(|scope| {
        let threads: Vec<_> = (0..count).map(|_| scope.spawn(look)).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap_or_default()).collect()
    });
    ran_on.sort_unstable();
    ran_on.dedup();
    Ok(Seen::Cpu { cores: allowed.as_slice().to_vec(), ran_on })
}

/// What a process sees that is started as `bound` says.
pub(super) fn ask(device: &str, bound: impl FnOnce(&mut Command)) -> Result<Seen> {
    let program = std::env::current_exe().context("where this program lies")?;
    let mut command = Command::new(program);
    command.args(["run-probe", "--device", device]).stdin(Stdio::null());
    bound(&mut command);
    let output = command.output().context("cannot start the probe")?;
    let said = String::from_utf8_lossy(&output.stderr);
    let said = said.trim().strip_prefix("weft: ").unwrap_or(said.trim());
    ensure!(output.status.success(), "the probe ended ({}): {said}", output.status);
    serde_json::from_slice(&output.stdout).context("the probe said nothing that is understood")
}
