//! Another engine in a Python process of its own, told what to do line by line.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

/// A running peer.
pub(super) struct Peer {
    process: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
}

/// The Python interpreter to use: `WEFT_PYTHON`, or a virtual environment here, or the system's.
pub(super) fn python() -> String {
    if let Ok(python) = std::env::var("WEFT_PYTHON") {
        return python;
    }
    let local = ".venv/bin/python";
    if Path::new(local).exists() { local.into() } else { "python3".into() }
}

impl Peer {
    /// Starts a script that answers each line of JSON with one; also its answer to the first. Fails where the
    /// interpreter or the packages that the script imports are not there.
    pub(super) fn start(python: &str, script: &str, packages: &str) -> Result<(Self, Value)> {
        let mut process = Command::new(python)
            .args(["-c", script])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot start '{python}', which should have {packages}"))?;
        let to = process.stdin.take().context("the peer has no input")?;
        let from = BufReader::new(process.stdout.take().context("the peer has no output")?);
        let mut peer = Self { process, to, from };
        let hello = peer
            .ask(&json!({ "do": "hello" }))
            .with_context(|| format!("'{python}' cannot use {packages}"))?;
        Ok((peer, hello))
    }

    /// Sends one command and waits for its answer.
    pub(super) fn ask(&mut self, command: &Value) -> Result<Value> {
        writeln!(self.to, "{command}")?;
        self.to.flush()?;
        let mut line = String::new();
        if self.from.read_line(&mut line)? == 0 {
            bail!("the peer ended");
        }
        let answer: Value =
            serde_json::from_str(&line).with_context(|| format!("the peer said '{line}'"))?;
        match answer.get("error").and_then(Value::as_str) {
            Some(error) => bail!("the peer failed: {error}"),
            None => Ok(answer),
        }
    }

    /// Stops the process: threads that spin between runs would take time from whoever is measured meanwhile.
    pub(super) fn pause(&self) -> Result<()> {
        self.signal("-STOP")
    }

    /// Lets a stopped process go on.
    pub(super) fn resume(&self) -> Result<()> {
        self.signal("-CONT")
    }

    fn signal(&self, signal: &str) -> Result<()> {
        let status =
            Command::new("kill").args([signal, &self.process.id().to_string()]).status()?;
        anyhow::ensure!(status.success(), "cannot send {signal} to the peer");
        Ok(())
    }

    /// Sends one command and reads one number from its answer.
    pub(super) fn number(&mut self, command: &Value, key: &str) -> Result<f64> {
        let answer = self.ask(command)?;
        answer
            .get(key)
            .and_then(Value::as_f64)
            .with_context(|| format!("the peer's answer has no '{key}': {answer}"))
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
