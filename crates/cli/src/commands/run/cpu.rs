//! A program bounded to cores.

use std::process::ExitCode;

use anyhow::{Context, Result, ensure};
use rustix::process::{getpriority_process, setpriority_process};
use serde_json::json;

use super::probe::{self, Seen};
use super::report::Report;
use super::{Options, Priority, cores, program};

/// How far a program of low priority steps back. It still gets a tenth of a core that others want all of: one that got
/// nothing at all, as under `SCHED_IDLE`, could hold a lock of the kernel or of a file for as long, and hold others up with it.
const LOW_NICE: i32 = 10;

pub(super) fn run(options: &Options) -> Result<ExitCode> {
    let allowed = cores::allowed()?;
    let chosen = match (&options.cores, options.share) {
        (Some(named), _) => cores::named(&allowed, named)?,
        (None, Some(share)) => cores::last(&allowed, share),
        (None, None) => allowed.clone(),
    };
    // The program inherits both from this thread, and so do all that it starts.
    cores::keep_to(&chosen)?;
    step_back(options.priority)?;
    let seen = probe::ask("cpu", |_| {}).and_then(|seen| {
        check(&seen, chosen.as_slice())?;
        Ok(seen)
    });
    let checked = options.checked(seen)?.is_some();
    let count = allowed.len();
    options.say(&format!(
        "{} runs on {} of {count} cores ({chosen}), priority {}",
        program::name(options),
        chosen.len(),
        options.priority.name()
    ));
    let bounds = json!({
        "device": "cpu",
        "cores": chosen.as_slice(),
        "cores_allowed": allowed.as_slice(),
        "is_checked": checked,
    });
    let ended = program::run(program::command(options))?;
    Report { options, bounds, ended: &ended }.finish()
}

/// Has this thread, and what it starts, let others go first.
pub(super) fn step_back(priority: Priority) -> Result<()> {
    if priority == Priority::Low {
        let nice = getpriority_process(None).context("the priority is not known")?;
        setpriority_process(None, nice.max(LOW_NICE)).context("cannot lower the priority")?;
    }
    Ok(())
}

fn check(seen: &Seen, chosen: &[usize]) -> Result<()> {
    let Seen::Cpu { cores, ran_on } = seen else { anyhow::bail!("the probe looked elsewhere") };
    ensure!(cores == chosen, "asked for cores {chosen:?}, a process in these bounds has {cores:?}");
    let stray: Vec<usize> = ran_on.iter().copied().filter(|core| !chosen.contains(core)).collect();
    ensure!(stray.is_empty(), "a process in these bounds ran on cores {stray:?}");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_hold_where_a_process_has_and_uses_just_these_cores() {
        let seen = |cores: &[usize], ran_on: &[usize]| Seen::Cpu {
            cores: cores.to_vec(),
            ran_on: ran_on.to_vec(),
        };
        assert!(check(&seen(&[2, 3], &[3]), &[2, 3]).is_ok());
        assert!(check(&seen(&[1, 2, 3], &[3]), &[2, 3]).is_err());
        assert!(check(&seen(&[2, 3], &[1, 3]), &[2, 3]).is_err());
        assert!(check(&Seen::Cuda { sms: 8, reported_sms: 8 }, &[2, 3]).is_err());
    }
}
