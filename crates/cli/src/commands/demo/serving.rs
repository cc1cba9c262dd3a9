//! Three models served at once: two with an objective, and one in the background that always has work.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use rustix::process::{Pid, Signal, kill_process};

use crate::{model_file, progress};

/// What is agreed about the models, as a user would write it.
const SETTINGS: &str = "\
[models.mobilenet_v2]
slo_ms = 100
rate_per_s = 20

[models.minilm_l6]
slo_ms = 400
rate_per_s = 3

# resnet18 has no objective: it gets what the others leave.
";

const MODELS: [&str; 3] = ["mobilenet_v2", "minilm_l6", "resnet18"];

/// How long a server may take until it serves: models that are new to it are measured first.
const START_LIMIT: Duration = Duration::from_secs(120);

/// Serves, loads the server for so long, shows what came of it, and leaves nothing behind.
pub(super) fn show(time: Duration) -> Result<()> {
    let folder = std::env::temp_dir().join(format!("weft-demo-{}", std::process::id()));
    let outcome = show_in(&folder, time);
    // What is left is in the folder for temporary files.
    let _ = fs::remove_dir_all(&folder);
    outcome
}

fn show_in(folder: &Path, time: Duration) -> Result<()> {
    let models = folder.join("models");
    fs::create_dir_all(&models).with_context(|| format!("cannot make {}", models.display()))?;
    for name in MODELS {
        progress::show(format!("{name}: writing"));
        fs::copy(
            model_file::resolve(&format!("zoo:{name}"))?,
            models.join(format!("{name}.onnx")),
        )?;
    }
    fs::write(models.join("weft.toml"), SETTINGS)?;
    println!(
        "\nA model repository: {} and weft.toml, which says\n",
        MODELS.join(".onnx, ") + ".onnx"
    );
    SETTINGS.lines().for_each(|line| println!("    {line}"));
    progress::show("weft serve: measuring the models");
    let server = Server::start(&models, &folder.join("state"))?;
    progress::clear();
    println!(
        "\n`weft serve` answers on http://{}. Now `weft load` sends it requests:\n",
        server.address
    );
    let status = Command::new(std::env::current_exe()?)
        .args(["load", &format!("http://{}", server.address)])
        .args(["--model", "mobilenet_v2", "--rate", "20", "--slo", "100ms"])
        .args(["--model", "minilm_l6", "--rate", "3", "--slo", "400ms"])
        .args(["--model", "resnet18", "--concurrency", "2"])
        .args(["--seconds", &time.as_secs_f64().to_string()])
        .status()?;
    ensure!(status.success(), "the load was not answered");
    server.stop()
}

/// A server in a process of its own, which ends with this.
struct Server {
    child: Child,
    address: String,
    /// What it says, to its end.
    says: Receiver<String>,
}

impl Server {
    fn start(models: &Path, state: &Path) -> Result<Self> {
        let mut child = Command::new(std::env::current_exe()?)
            .arg("serve")
            .arg(models)
            .args(["--device", "cpu", "--port", "0", "--log", "warn", "--state"])
            .arg(state)
            .stderr(Stdio::piped())
            .spawn()?;
        let said = child.stderr.take().context("it says nothing")?;
        let (line, says) = channel();
        thread::spawn(move || {
            let lines = BufReader::new(said).lines().map_while(Result::ok);
            lines.for_each(|text| drop(line.send(text)));
        });
        let mut server = Self { child, address: String::new(), says };
        server.address = server.announced()?;
        Ok(server)
    }

    /// The address that it says it serves on.
    fn announced(&self) -> Result<String> {
        let mut heard = Vec::new();
        loop {
            let Ok(line) = self.says.recv_timeout(START_LIMIT) else {
                bail!("the server does not start:\n{}", heard.join("\n"));
            };
            if let Some((_, rest)) = line.split_once("on http://") {
                return Ok(rest.split(',').next().unwrap_or(rest).trim().to_string());
            }
            heard.push(line);
        }
    }

    /// Ends it as an operator would, and waits until it has ended what it accepted.
    fn stop(mut self) -> Result<()> {
        let id = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        kill_process(id.context("it has no number")?, Signal::TERM)?;
        let status = self.child.wait()?;
        ensure!(status.success(), "the server ended with {status}");
        Ok(())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // One that has ended is past this.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
