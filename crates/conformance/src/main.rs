//! Runs the ONNX standard's test cases in a folder and reports which fail.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use weft_conformance::{Outcome, cases, executor, run_suite};

const HELP: &str = "\
Runs ONNX test cases and reports which fail.

Usage: weft-conformance --data DIR [--filter SUBSTRING] [--executor NAME] [--verbose]

  --data DIR          the folder of cases: model.onnx and test_data_set_N in a folder each
  --filter SUBSTRING  run only cases whose name contains this; may be given more than once
  --executor NAME     what to run them on: reference (the default), round-trip,
                      cpu:UNITS, for example cpu:0,1, or cuda:SMS[:PRECISION],
                      for example cuda:all or cuda:32:tf32 (f32 unless said)
  --verbose           name passed and not claimed cases too
";

#[derive(Default)]
struct Options {
    data: PathBuf,
    filters: Vec<String>,
    executor: Option<String>,
    is_verbose: bool,
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.iter().any(|argument| argument == "--help" || argument == "-h") {
        let _ = std::io::stdout().write_all(HELP.as_bytes());
        return ExitCode::SUCCESS;
    }
    match parse(arguments).and_then(run) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(problem) => {
            let _ = writeln!(std::io::stderr(), "weft-conformance: {problem}");
            ExitCode::from(2)
        }
    }
}

fn parse(arguments: Vec<String>) -> Result<Options, String> {
    let mut options = Options::default();
    let mut rest = arguments.into_iter();
    while let Some(argument) = rest.next() {
        let mut value = || rest.next().ok_or(format!("{argument} needs a value"));
        match argument.as_str() {
            "--data" => options.data = value()?.into(),
            "--filter" => options.filters.push(value()?),
            "--executor" => options.executor = Some(value()?),
            "--verbose" => options.is_verbose = true,
            other => return Err(format!("unknown option '{other}'; see --help")),
        }
    }
    if options.data.as_os_str().is_empty() {
        return Err("--data is missing; see --help".into());
    }
    Ok(options)
}

fn run(options: Options) -> Result<bool, String> {
    let executor = executor(options.executor.as_deref().unwrap_or("reference"))?;
    let describe = |error: std::io::Error| format!("{}: {error}", options.data.display());
    let mut selected = cases(&options.data, "").map_err(describe)?;
    if !options.filters.is_empty() {
        selected.retain(|case| options.filters.iter().any(|filter| case.name.contains(filter)));
    }
    let mut out = std::io::stdout().lock();
    let summary = run_suite(&selected, &*executor, |case, outcome| {
        let line = match outcome {
            Outcome::Failed(why) => format!("FAILED {}: {why}", case.name),
            Outcome::Passed if options.is_verbose => format!("passed {}", case.name),
            Outcome::NotClaimed(missing) if options.is_verbose => {
                format!("not claimed {}: {}", case.name, missing.join(", "))
            }
            _ => return,
        };
        let _ = writeln!(out, "{line}");
    });
    let mut missing: Vec<(&String, &usize)> = summary.missing.iter().collect();
    missing.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
    if !missing.is_empty() {
        let list: Vec<String> =
            missing.iter().map(|(name, count)| format!("{name} ({count})")).collect();
        let _ = writeln!(out, "not claimed, with the number of cases: {}", list.join(", "));
    }
    let _ = writeln!(
        out,
        "{} passed, {} failed, {} not claimed",
        summary.passed,
        summary.failed.len(),
        summary.not_claimed.len()
    );
    Ok(summary.failed.is_empty())
}
