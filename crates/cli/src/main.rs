//! `weft`: many neural networks on one accelerator, fast and with promises kept.

mod administration;
mod arrays;
mod bench;
mod commands;
mod date;
mod device;
mod duration;
mod files;
mod kernel_options;
mod model_file;
mod mps;
mod outputs;
mod palette;
mod progress;
mod regulation;
mod svg;
mod table;
mod terminal;
mod tuning;
mod workload;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// What a command exits with when what it was given is not usable.
const BAD_INPUT: u8 = 2;

/// Many neural networks share one accelerator, fast and with promises kept.
#[derive(Parser)]
#[command(name = "weft", version, max_term_width = 110)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Write a standard architecture with seeded weights as an ONNX file
    Zoo(commands::zoo::Options),
    /// Show a model: inputs, outputs, operators, FLOPs, bytes, what was fused
    Inspect(commands::inspect::Options),
    /// Run a model once on arrays in .npy files
    Infer(commands::infer::Options),
    /// Measure models and compare with other engines
    #[command(subcommand)]
    Bench(bench::Command),
    /// Measure latency by batch size and share of the device, and find the knees
    Profile(commands::profile::Options),
    /// Look at the tuning database; export, import, merge and prune it
    Tuning(commands::tuning::Options),
    /// Find the fastest kernels for the share of the device that models will get
    Tune(commands::tune::Options),
    /// Divide a device among the models of a workload so that every objective holds, and draw the plan
    Plan(commands::plan::Options),
    /// Find the schedule by which a known mix of models ends soonest, and draw it
    Regulate(commands::regulate::Options),
    /// Run scheduling policies side by side on a workload, under virtual time
    Simulate(commands::simulate::Options),
    /// Send a server requests at the instants they are due, and report latencies and objectives held
    Load(commands::load::Options),
    /// Serve models over HTTP and gRPC (KServe v2)
    Serve(commands::serve::Options),
    /// Watch a server in the terminal: partitions, models, objectives
    Top(commands::top::Options),
    /// Show what is in a model repository, what is agreed about it, and all that is wrong
    Check(commands::check::Options),
    /// Make an API key, and the hash that is kept of it
    Key(commands::key::Options),
    /// Load and run a small bundled zoo
    Demo(commands::demo::Options),
    /// Compile kernels for the process that started this one
    #[command(hide = true)]
    CompileKernels,
    /// Run any program in a bounded share of the GPU, or of the cores
    Run(commands::run::Options),
    /// Say what this process can reach
    #[command(hide = true)]
    RunProbe(commands::run::ProbeOptions),
    /// Show what is here: devices, their units, their instruction sets
    Devices(commands::devices::Options),
}

/// How far processes that compile step back.
const COMPILING_NICE: i32 = 10;

fn main() -> ExitCode {
    run(&Arguments::parse().command).unwrap_or_else(|error| {
        progress::note(format!("weft: {}", describe(&error)));
        let own = commands::run::exit_code(&error).or_else(|| bench::exit_code(&error));
        ExitCode::from(own.unwrap_or(BAD_INPUT))
    })
}

fn run(command: &Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Zoo(options) => commands::zoo::run(options)?,
        Command::Inspect(options) => commands::inspect::run(options)?,
        Command::Infer(options) => commands::infer::run(options)?,
        Command::Bench(command) => bench::run(command)?,
        Command::Profile(options) => commands::profile::run(options)?,
        Command::Tuning(options) => commands::tuning::run(options)?,
        Command::Tune(options) => return commands::tune::run(options),
        Command::Plan(options) => return commands::plan::run(options),
        Command::Regulate(options) => commands::regulate::run(options)?,
        Command::Simulate(options) => commands::simulate::run(options)?,
        Command::Load(options) => return commands::load::run(options),
        Command::Serve(options) => commands::serve::run(options)?,
        Command::Top(options) => commands::top::run(options)?,
        Command::Check(options) => return commands::check::run(options),
        Command::Key(options) => commands::key::run(options)?,
        Command::Demo(options) => commands::demo::run(options)?,
        Command::CompileKernels => {
            // Those who measure need little of the cores, but at once. Where that is refused, they wait.
            let _ = rustix::process::setpriority_process(None, COMPILING_NICE);
            weft_cuda::compiler::help(std::io::stdin().lock(), std::io::stdout().lock())?;
        }
        Command::Run(options) => return commands::run::run(options),
        Command::RunProbe(options) => commands::run::probe(options)?,
        Command::Devices(options) => commands::devices::run(options)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// An error with its causes, each said once: errors of the libraries already name theirs.
fn describe(error: &anyhow::Error) -> String {
    let mut text = error.to_string();
    for cause in error.chain().skip(1).map(ToString::to_string) {
        if !text.contains(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::describe;

    #[test]
    fn a_cause_is_said_once() {
        let error = anyhow::anyhow!("no such file").context("cannot read x.npy");
        assert_eq!(describe(&error), "cannot read x.npy: no such file");
        let error = anyhow::anyhow!("bad shape").context("node 'a': bad shape");
        assert_eq!(describe(&error), "node 'a': bad shape");
    }
}
