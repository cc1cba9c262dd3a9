//! Workload files and the traces that they name, with all that is wrong with both in one message.

use std::fs;
use std::path::Path;

use anyhow::{Result, bail};
use weft_load::Workload;
use weft_simulator::Trace;

use crate::files;

pub(super) fn read(path: &Path) -> Result<Workload> {
    let text = match files::read_text(path) {
        Ok(text) => text,
        Err(error) => bail!("cannot read {}: {error}", path.display()),
    };
    let folder = path.parent().unwrap_or(Path::new(""));
    let mut wrong: Vec<String> = Vec::new();
    let mut read_trace = |name: &str| {
        let file = folder.join(name);
        let text = fs::read_to_string(&file).map_err(|error| error.to_string());
        let trace = text.and_then(|text| Trace::from_csv(&text).map_err(|wrong| wrong.to_string()));
        trace.map_err(|problem| wrong.push(format!("{}: {problem}", file.display()))).ok()
    };
    let workload = Workload::from_toml(&text, &mut read_trace);
    match workload {
        Ok(workload) if wrong.is_empty() => Ok(workload),
        workload => {
            let problems = workload.err().unwrap_or_default();
            let lines = problems.as_slice().iter();
            let lines = lines.map(|problem| format!("{}, {problem}", path.display()));
            let all: Vec<String> = lines.chain(wrong).collect();
            bail!("this workload cannot be used:\n{}", all.join("\n"))
        }
    }
}
