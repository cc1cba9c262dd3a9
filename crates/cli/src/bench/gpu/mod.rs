//! `weft bench gpu`: what a GPU gives, and whether what is promised of it holds.

mod correctness;
mod density;
mod finding;
mod headline;
mod isolation;
mod latency;
mod layout;
mod options;
mod rig;
mod running;
mod switching;
pub(super) mod torch;

use anyhow::{Context, Result, ensure};
use serde_json::{Value as Json, json};
use weft_device::Device;

use finding::Finding;
pub(super) use finding::held;
pub(crate) use options::Options;
use options::TableName;
use rig::Rig;
pub(crate) use running::median_us;
use torch::Torch;

use crate::describe;
use crate::progress;
use crate::terminal;

pub(crate) fn run(options: &Options) -> Result<()> {
    options.check()?;
    let rig = Rig::open(options.gpu()?, options.cuda())?;
    let about = rig.device().description();
    terminal::print(&format!(
        "{}, {} units, {}",
        about.name, about.unit_count, about.instruction_set
    ))?;
    let mut report = json!({
        "device": about.name,
        "sms": rig.device().chip().sm_count,
        "precision": rig.precision().name(),
        "choice": options.choice(),
        "tables": {},
    });
    // Before anything is measured, so that a file that cannot be written costs nothing.
    write(options, &report)?;
    let mut failures = Vec::new();
    for table in options.tables() {
        progress::note(format!("measuring {}", table.name()));
        let finding = measure(table, options, &rig);
        progress::clear();
        terminal::print(&format!("\n{}", finding.render(table.name())))?;
        failures
            .extend(finding.failures.iter().map(|failure| format!("{}: {failure}", table.name())));
        report["tables"][table.name()] = finding.json;
        // After each table, so that a run that is cut short leaves what it has found.
        write(options, &report)?;
    }
    ensure!(failures.is_empty(), "{} failed, first {}", failures.len(), failures[0]);
    Ok(())
}

fn measure(table: TableName, options: &Options, rig: &Rig) -> Finding {
    let seconds = options.seconds;
    let finding = match table {
        TableName::Latency => Ok(measure_latency(options, rig)),
        TableName::Correctness => correctness::measure(rig, &options.compared()),
        TableName::Isolation => isolation::measure(rig, seconds),
        TableName::Density => density::measure(rig, seconds),
        TableName::Switching => switching::measure(rig, seconds),
    };
    // The other tables are measured nevertheless.
    finding.unwrap_or_else(|error| Finding::failed(&describe(&error)))
}

/// PyTorch lives as long as it is compared with, and holds nothing of the GPU after.
fn measure_latency(options: &Options, rig: &Rig) -> Finding {
    let (mut torch, absence) = match options.no_peer {
        true => (None, None),
        false => start_torch(&options.peer_python),
    };
    let mut finding = latency::measure(rig, &options.timed(), options.seconds, torch.as_mut());
    finding.notes.extend(absence);
    finding
}

/// PyTorch, or why there is none.
fn start_torch(python: &str) -> (Option<Torch>, Option<String>) {
    progress::show("starting PyTorch");
    match Torch::start(python) {
        Ok(torch) => (Some(torch), None),
        Err(error) => (None, Some(format!("no PyTorch beside it: {}", describe(&error)))),
    }
}

fn write(options: &Options, report: &Json) -> Result<()> {
    let Some(path) = &options.json else { return Ok(()) };
    std::fs::write(path, serde_json::to_string_pretty(report)?)
        .with_context(|| format!("cannot write {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::start_torch;

    #[test]
    fn no_python_is_a_note_and_no_failure() {
        let (torch, why) = start_torch("weft-has-no-such-python");
        assert!(torch.is_none() && why.unwrap().contains("weft-has-no-such-python"));
    }
}
