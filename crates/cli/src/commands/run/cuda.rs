//! A program bounded to a share of a GPU.

use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail, ensure};
use serde_json::json;
use weft_cuda::CudaDevice;

use super::probe::{self, Seen};
use super::report::Report;
use super::share::Share;
use super::{Options, Priority, cpu, program};
use crate::mps::{PRIORITY_VARIABLE, SHARE_VARIABLE, SharedMps};

/// By how many SMs a share is rounded up at most: they are given in groups.
const ROUNDING_SMS: usize = 8;

pub(super) fn run(options: &Options) -> Result<ExitCode> {
    let share = options.share.context("--share is not given")?;
    let count = CudaDevice::count().context("no GPU can be used; --device cpu bounds cores")?;
    ensure!(count > 0, "there is no GPU here; --device cpu bounds cores");
    let mps = SharedMps::join()?;
    let priority = options.priority;
    let reached = options.checked(check(&mps, share, priority))?;
    let bounded = match reached {
        Some(reached) => format!("bounded to {} of {} SMs", reached.sms, reached.of),
        None => "bounded by MPS".to_string(),
    };
    options.say(&format!(
        "{} has {share} of the GPU, {bounded}, priority {}",
        program::name(options),
        priority.name()
    ));
    let bounds = json!({
        "device": "cuda",
        "share_percent": share.percent(),
        "sms": reached.map(|reached| reached.sms),
        "sms_in_all": reached.map(|reached| reached.of),
        "is_checked": reached.is_some(),
    });
    let mut command = program::command(options);
    bound(&mut command, &mps, share, priority);
    cpu::step_back(priority)?;
    let lock = mps.for_program()?;
    let ended = program::run_beside(command, lock)?;
    drop(mps);
    Report { options, bounds, ended: &ended }.finish()
}

/// Has a process use the service, in its share.
fn bound(command: &mut Command, mps: &SharedMps, share: Share, priority: Priority) {
    mps.apply(command);
    command.env(SHARE_VARIABLE, share.percent().to_string());
    command.env(PRIORITY_VARIABLE, if priority == Priority::Low { "1" } else { "0" });
}

/// What a process in the bounds has reached.
#[derive(Clone, Copy)]
struct Reached {
    sms: usize,
    of: usize,
}

/// Counts the SMs that a process reaches in the bounds, and asks one without them how many there are.
fn check(mps: &SharedMps, share: Share, priority: Priority) -> Result<Reached> {
    let reach = |bound: &dyn Fn(&mut Command)| match probe::ask("cuda", bound)? {
        Seen::Cuda { sms, reported_sms } => Ok((sms, reported_sms)),
        Seen::Cpu { .. } => bail!("the probe looked elsewhere"),
    };
    let (sms, _) = reach(&|command| bound(command, mps, share, priority))?;
    let (_, of) = reach(&|command| {
        mps.apply(command);
        command.env_remove(SHARE_VARIABLE).env_remove(PRIORITY_VARIABLE);
    })?;
    holds(share, Reached { sms, of })
}

/// Others that keep SMs busy leave fewer to be reached; more than asked for come from nowhere.
fn holds(share: Share, reached: Reached) -> Result<Reached> {
    let Reached { sms, of } = reached;
    let asked = share.of(of);
    ensure!(sms > 0, "no SM was reached");
    ensure!(
        sms <= asked + ROUNDING_SMS,
        "{share} of {of} SMs are {asked}, and a process in these bounds reached {sms}"
    );
    Ok(reached)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_may_be_rounded_up_and_no_further() {
        let share: Share = "30%".parse().unwrap();
        for (sms, fits) in
            [(0, false), (12, true), (40, true), (48, true), (49, false), (132, false)]
        {
            assert_eq!(holds(share, Reached { sms, of: 132 }).is_ok(), fits, "{sms}");
        }
    }
}
