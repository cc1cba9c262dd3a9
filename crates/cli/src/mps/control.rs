//! The program that starts, asks and ends the service.

use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use super::{PIPE_VARIABLE, PRIORITY_VARIABLE, SHARE_VARIABLE};

/// The program.
const CONTROL: &str = "nvidia-cuda-mps-control";
const LOG_VARIABLE: &str = "CUDA_MPS_LOG_DIRECTORY";

/// How many of the GPU's queues each process gets, unless the environment says otherwise. With CUDA's own eight, one of four
/// processes was told that there is no memory.
const CONNECTIONS: (&str, &str) = ("CUDA_DEVICE_MAX_CONNECTIONS", "2");

/// How long an answer is waited for: one that is there takes milliseconds, and a dead one's pipe may stay silent.
const ANSWER_LIMIT: Duration = Duration::from_secs(5);
/// How long a start is waited for.
const START_LIMIT: Duration = Duration::from_secs(10);
/// How long an end is waited for, which comes after that of the last process that uses the service.
const QUIT_LIMIT: Duration = Duration::from_secs(20);
const POLL: Duration = Duration::from_millis(5);

/// A service by the folders it lives in.
pub(super) struct Control {
    pipe: PathBuf,
    /// `None` where the environment's is left as it is.
    log: Option<PathBuf>,
}

impl Control {
    /// The service whose folders are in this one.
    pub(super) fn in_folder(folder: &Path) -> Self {
        Self { pipe: folder.join("pipe"), log: Some(folder.join("log")) }
    }

    /// The service that the environment names.
    pub(super) fn of_environment() -> Option<Self> {
        let pipe = std::env::var_os(PIPE_VARIABLE).filter(|folder| !folder.is_empty())?;
        Some(Self { pipe: pipe.into(), log: None })
    }

    /// Starts it; what one that has died left behind goes first.
    pub(super) fn start(&self) -> Result<()> {
        match fs::remove_dir_all(&self.pipe) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                return Err(error).with_context(|| format!("cannot clear {}", self.pipe.display()));
            }
            _ => {}
        }
        // The service does not make them, and serves nobody without.
        for folder in [Some(&self.pipe), self.log.as_ref()].into_iter().flatten() {
            fs::create_dir_all(folder)
                .with_context(|| format!("cannot make {}", folder.display()))?;
        }
        let mut command = self.command();
        command.arg("-d").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let started = match command.output() {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                bail!(
                    "there is no MPS on this machine: {CONTROL}, which comes with the driver, is not found"
                )
            }
            started => started.with_context(|| format!("cannot start {CONTROL}"))?,
        };
        let said = String::from_utf8_lossy(&started.stderr);
        ensure!(started.status.success(), "{CONTROL} does not start: {}", said.trim());
        // A process that comes before the service listens runs without it, and says nothing.
        let log = self.log.as_deref().unwrap_or(&self.pipe).join("control.log");
        ensure!(
            holds_within(START_LIMIT, || self.answers()),
            "{CONTROL} was started and does not answer; it may say why in {}",
            log.display()
        );
        Ok(())
    }

    /// True where a service is there and answers.
    pub(super) fn answers(&self) -> bool {
        let answer = || self.say("get_default_active_thread_percentage", ANSWER_LIMIT).ok();
        self.pipe.is_dir() && answer().is_some_and(|answer| answer.trim().parse::<f64>().is_ok())
    }

    /// Ends it, and waits until it is gone: in going it takes its pipes away, which by then may be another's.
    pub(super) fn quit(&self) -> Result<()> {
        let number = fs::read_to_string(self.pipe.join(format!("{CONTROL}.pid"))).ok();
        let number = number.and_then(|text| text.trim().parse::<u32>().ok());
        self.say("quit", QUIT_LIMIT)?;
        let is_gone = || number.is_none_or(|number| !is_alive(number));
        ensure!(holds_within(QUIT_LIMIT, is_gone), "the service does not end");
        Ok(())
    }

    /// Has a process use this service.
    pub(super) fn apply(&self, command: &mut Command) {
        command.env(PIPE_VARIABLE, &self.pipe);
        if let Some(log) = &self.log {
            command.env(LOG_VARIABLE, log);
        }
        let (name, value) = CONNECTIONS;
        if std::env::var_os(name).is_none() {
            command.env(name, value);
        }
    }

    /// The control program, for the service as a whole: what bounds this process bounds not the service.
    fn command(&self) -> Command {
        let mut command = Command::new(CONTROL);
        self.apply(&mut command);
        command.env_remove(SHARE_VARIABLE).env_remove(PRIORITY_VARIABLE);
        // Processes choose among all GPUs; a service that has chosen numbers them anew.
        command.env_remove("CUDA_VISIBLE_DEVICES");
        command
    }

    /// Says one line to the service, and hears what it answers.
    fn say(&self, line: &str, limit: Duration) -> Result<String> {
        let mut command = self.command();
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().with_context(|| format!("cannot start {CONTROL}"))?;
        // Where nobody listens, its end says so.
        let _ = child.stdin.take().map(|mut input| writeln!(input, "{line}"));
        let mut status = None;
        let has_ended = holds_within(limit, || {
            status = child.try_wait().ok().flatten();
            status.is_some()
        });
        if !has_ended {
            child.kill()?;
            child.wait()?;
            bail!("the service does not answer");
        }
        let mut answer = String::new();
        if let Some(mut output) = child.stdout.take() {
            output.read_to_string(&mut answer)?;
        }
        ensure!(
            status.is_some_and(|status| status.success()),
            "the service does not answer: {}",
            answer.trim()
        );
        Ok(answer)
    }
}

/// Whether something comes true within a time.
fn holds_within(limit: Duration, mut holds: impl FnMut() -> bool) -> bool {
    let start = Instant::now();
    loop {
        if holds() {
            return true;
        }
        if start.elapsed() > limit {
            return false;
        }
        thread::sleep(POLL);
    }
}

/// True where there is a process of this number that has not ended.
fn is_alive(number: u32) -> bool {
    let about = fs::read_to_string(format!("/proc/{number}/stat")).unwrap_or_default();
    // The state stands after the program's name, which is in brackets and may hold some; Z is one that nobody waits for.
    let state = about.rsplit_once(')').map(|(_, after)| after.trim_start());
    state.is_some_and(|state| !state.starts_with('Z'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_that_have_ended_are_not_alive() {
        assert!(is_alive(std::process::id()));
        let mut child = Command::new("true").spawn().unwrap();
        let number = child.id();
        // Nobody has waited for it yet.
        assert!(holds_within(Duration::from_secs(30), || !is_alive(number)));
        child.wait().unwrap();
        assert!(!is_alive(number));
    }

    #[test]
    fn no_service_answers_where_there_is_none() {
        let folder = tempfile::tempdir().unwrap();
        let control = Control::in_folder(folder.path());
        assert!(!control.answers());
        fs::create_dir(folder.path().join("pipe")).unwrap();
        assert!(!control.answers());
    }
}
