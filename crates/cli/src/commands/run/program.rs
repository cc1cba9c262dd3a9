//! The program: started, told what this process is told, and waited for.

use std::fmt;
use std::fs::File;
use std::io::{ErrorKind, IsTerminal, stdin};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, ExitStatus};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use rustix::io::retry_on_intr;
use rustix::param::clock_ticks_per_second;
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, getpid, getsid, kill_process, kill_process_group, waitid,
};
use rustix::termios::tcgetpgrp;
use tokio::runtime::Builder;
use tokio::signal::unix::{SignalKind, signal};

use super::Options;

/// What shells say of a program that is there and cannot be run.
const NOT_EXECUTABLE: u8 = 126;
/// What shells say of a program that is not there.
const NOT_FOUND: u8 = 127;
/// What shells add to the number of the signal that ended a program.
const SIGNALLED: i32 = 128;

/// How a program ended.
pub(super) struct Ended {
    pub(super) code: u8,
    pub(super) duration: Duration,
    /// Of the program and of all that it has waited for.
    pub(super) cpu_s: f64,
}

/// A program that could not be started.
#[derive(Debug)]
pub(crate) struct NotStarted {
    program: String,
    error: std::io::Error,
}

impl NotStarted {
    /// What this process ends with.
    pub(crate) fn exit_code(&self) -> u8 {
        if self.error.kind() == ErrorKind::NotFound { NOT_FOUND } else { NOT_EXECUTABLE }
    }
}

impl fmt::Display for NotStarted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.error.kind() {
            ErrorKind::NotFound => write!(f, "'{}' is not found", self.program),
            _ => write!(f, "'{}' cannot be run: {}", self.program, self.error),
        }
    }
}

impl std::error::Error for NotStarted {}

/// The program's name for people.
pub(super) fn name(options: &Options) -> String {
    let path = Path::new(&options.program[0]);
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}

/// The program with its arguments.
pub(super) fn command(options: &Options) -> Command {
    let mut command = Command::new(&options.program[0]);
    command.args(&options.program[1..]);
    command
}

/// Has the ends of processes that this one starts be told to it, also where who started it takes no notice of such ends, which is
/// inherited.
pub(super) fn heed_children() -> Result<()> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let _entered = runtime.enter();
    // What is installed stays, also once nobody listens.
    drop(signal(SignalKind::child())?);
    Ok(())
}

/// Runs it to its end.
pub(super) fn run(command: Command) -> Result<Ended> {
    run_beside(command, None)
}

/// Runs it to its end; it keeps a file open that this process lets go of.
pub(super) fn run_beside(mut command: Command, file: Option<File>) -> Result<Ended> {
    // A program in a group of its own could not read from the terminal; and there the terminal interrupts it itself.
    let is_interactive = stdin().is_terminal();
    if !is_interactive {
        command.process_group(0);
    }
    let cpu_s_before = waited_cpu_s()?;
    let start = Instant::now();
    let running = Arc::new(Mutex::new(None));
    forward_signals(running.clone(), is_interactive)?;
    let mut child = {
        // Signals that come meanwhile wait for the program.
        let mut running = running.lock().unwrap_or_else(PoisonError::into_inner);
        let child = command.spawn().map_err(|error| NotStarted {
            program: command.get_program().to_string_lossy().into_owned(),
            error,
        })?;
        *running = Some(Pid::from_child(&child));
        child
    };
    drop(file);
    let status = wait(&mut child, &running)?;
    Ok(Ended {
        code: code(status),
        duration: start.elapsed(),
        cpu_s: waited_cpu_s()? - cpu_s_before,
    })
}

/// Waits for the end; from then on its number, which may become another's, gets no signals.
fn wait(child: &mut Child, running: &Mutex<Option<Pid>>) -> Result<ExitStatus> {
    let pid = Pid::from_child(child);
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    retry_on_intr(|| waitid(WaitId::Pid(pid), options)).context("cannot wait for the program")?;
    *running.lock().unwrap_or_else(PoisonError::into_inner) = None;
    child.wait().context("cannot wait for the program")
}

fn code(status: ExitStatus) -> u8 {
    let code = status.code().or(status.signal().map(|signal| SIGNALLED + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(u8::MAX)
}

/// Hands on what asks this process to end, which ends by itself once the program has.
fn forward_signals(running: Arc<Mutex<Option<Pid>>>, is_interactive: bool) -> Result<()> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let entered = runtime.enter();
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    // Who has asked that hangups be no matter, as `nohup` does, is not asked to end by one.
    let listens = !ignores_hangups()?;
    let mut hangup = listens.then(|| signal(SignalKind::hangup())).transpose()?;
    drop(entered);
    thread::spawn(move || {
        runtime.block_on(async move {
            loop {
                let signal = tokio::select! {
                    _ = terminate.recv() => Signal::TERM,
                    _ = interrupt.recv() => Signal::INT,
                    _ = async { hangup.as_mut()?.recv().await }, if listens => Signal::HUP,
                };
                let running = running.lock().unwrap_or_else(PoisonError::into_inner);
                // One that has ended meanwhile is not missed.
                let _ = match *running {
                    Some(pid) if !is_interactive => kill_process_group(pid, signal),
                    Some(_) if is_from_terminal(signal) => Ok(()),
                    Some(pid) => kill_process(pid, signal),
                    None => Ok(()),
                };
            }
        });
    });
    Ok(())
}

/// Whether a signal has reached the program too, which is in the group that the terminal interrupts. When the terminal goes, who leads
/// its session is told, and a shell that does tells its groups.
fn is_from_terminal(signal: Signal) -> bool {
    let is_leader = || getsid(None).is_ok_and(|leader| leader == getpid());
    match signal {
        Signal::INT => true,
        Signal::HUP => tcgetpgrp(stdin()).is_err() && !is_leader(),
        _ => false,
    }
}

/// Whether this process, and what it starts, takes no notice of hangups.
pub(crate) fn ignores_hangups() -> Result<bool> {
    let text =
        std::fs::read_to_string("/proc/self/status").context("cannot read /proc/self/status")?;
    ignored_signals(&text)
        .map(|ignored| ignored & 1 << (Signal::HUP.as_raw() - 1) != 0)
        .context("/proc/self/status is not understood")
}

/// A bit for each signal that is ignored, the first signal's the lowest.
fn ignored_signals(status: &str) -> Option<u64> {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"))?;
    u64::from_str_radix(mask.trim(), 16).ok()
}

/// The processor time of the processes that this one has waited for, and of those that they have.
fn waited_cpu_s() -> Result<f64> {
    let text = std::fs::read_to_string("/proc/self/stat").context("cannot read /proc/self/stat")?;
    let ticks = waited_ticks(&text).context("/proc/self/stat is not understood")?;
    Ok(ticks as f64 / clock_ticks_per_second() as f64)
}

/// Fields 16 and 17; the second, the name of the program, may hold spaces and brackets.
fn waited_ticks(stat: &str) -> Option<u64> {
    let (_, after_name) = stat.rsplit_once(')')?;
    let mut fields = after_name.split_ascii_whitespace().skip(13);
    Some(fields.next()?.parse::<u64>().ok()? + fields.next()?.parse::<u64>().ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_ends_as_a_shell_would_say() {
        assert_eq!(code(ExitStatus::from_raw(0)), 0);
        assert_eq!(code(ExitStatus::from_raw(7 << 8)), 7);
        assert_eq!(code(ExitStatus::from_raw(15)), 143);
        assert_eq!(code(ExitStatus::from_raw(9)), 137);
    }

    #[test]
    fn ignored_signals_are_a_mask() {
        assert_eq!(ignored_signals("SigBlk:\t01\nSigIgn:\t0000000000001001\n"), Some(0x1001));
        assert_eq!(ignored_signals("SigBlk:\t01"), None);
    }

    #[test]
    fn times_are_read_behind_any_name() {
        let stat = "12 (a ) b) S 1 12 12 0 -1 4194304 100 200 0 0 5 6 70 8 20 0 1 0 300";
        assert_eq!(waited_ticks(stat), Some(78));
        assert_eq!(waited_ticks("12 (a) S 1"), None);
    }
}
