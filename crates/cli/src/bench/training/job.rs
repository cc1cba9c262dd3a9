//! A process that says lines of JSON while it runs, and ends with this value.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::Value;

use super::interruption::{Interruption, LOOK};

/// How long a job that was asked to end may take.
const END_LIMIT: Duration = Duration::from_secs(30);
const POLL: Duration = Duration::from_millis(5);

/// The process, in a group of its own with what it has started.
pub(super) struct Job {
    what: &'static str,
    process: Child,
    to: Option<ChildStdin>,
    lines: Receiver<Value>,
    interruption: Interruption,
}

impl Job {
    pub(super) fn start(
        mut command: Command,
        what: &'static str,
        interruption: &Interruption,
    ) -> Result<Self> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).process_group(0);
        let mut process = command.spawn().with_context(|| format!("cannot start {what}"))?;
        let to = process.stdin.take();
        let from = process.stdout.take().context("a job has no output")?;
        let (sender, lines) = channel();
        thread::spawn(move || {
            let said = BufReader::new(from).lines().map_while(Result::ok);
            // What is not JSON was printed by a library.
            for value in said.filter_map(|line| serde_json::from_str(&line).ok()) {
                if sender.send(value).is_err() {
                    return;
                }
            }
        });
        Ok(Self { what, process, to, lines, interruption: interruption.clone() })
    }

    pub(super) fn say(&mut self, line: &str) -> Result<()> {
        let to = self.to.as_mut().context("a job has no input")?;
        writeln!(to, "{line}").and_then(|()| to.flush()).map_err(|_| self.ended())
    }

    /// The next line.
    pub(super) fn next(&self, limit: Duration) -> Result<Value> {
        let start = Instant::now();
        loop {
            self.interruption.check()?;
            let left = limit.saturating_sub(start.elapsed());
            match self.lines.recv_timeout(left.min(LOOK)) {
                Ok(line) => return Ok(line),
                Err(RecvTimeoutError::Disconnected) => return Err(self.ended()),
                Err(RecvTimeoutError::Timeout) if left.is_zero() => {
                    bail!("{} said nothing for {} s", self.what, limit.as_secs())
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }

    /// All that was said up to now and not yet heard.
    pub(super) fn heard(&self) -> Vec<Value> {
        self.lines.try_iter().collect()
    }

    /// Takes no notice of what was said up to now.
    pub(super) fn forget(&self) {
        self.heard();
    }

    fn ended(&self) -> anyhow::Error {
        anyhow!("{} ended", self.what)
    }

    fn end(&mut self) -> Result<()> {
        self.to = None;
        let group = Pid::from_child(&self.process);
        for signal in [Signal::TERM, Signal::KILL] {
            // One that has ended by itself is not there any more.
            let _ = kill_process_group(group, signal);
            let start = Instant::now();
            while start.elapsed() < END_LIMIT {
                if self.process.try_wait()?.is_some() {
                    return Ok(());
                }
                thread::sleep(POLL);
            }
        }
        bail!("{} does not end", self.what)
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        let _ = self.end();
    }
}
