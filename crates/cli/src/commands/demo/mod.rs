//! `weft demo`: a small bundled zoo is run, and then served under load, as a user would with `weft serve` and `weft load`.

mod serving;
mod zoo;

use std::time::Duration;

use anyhow::{Context, Result};
use clap::Args;

#[derive(Args)]
pub(crate) struct Options {
    /// Seconds of load
    #[arg(long, default_value_t = 8.0)]
    seconds: f64,
    /// Seconds to run each model before
    #[arg(long, default_value_t = 0.3)]
    model_seconds: f64,
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let time = Duration::try_from_secs_f64(options.model_seconds).context("--model-seconds")?;
    let load = Duration::try_from_secs_f64(options.seconds).context("--seconds")?;
    zoo::show(time)?;
    serving::show(load)?;
    println!(
        "\nNext: `weft serve FOLDER` on models of your own (docs/serving.md), `weft top` beside it, `weft inspect zoo:resnet50`, \
         `weft --help`"
    );
    Ok(())
}
