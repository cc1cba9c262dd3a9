//! `weft top`: what a server does, in a terminal.

mod frame;
mod partitions;
mod screen;
mod table;

use std::time::Duration;

use anyhow::Result;
use clap::Args;

use crate::administration::Administration;
use crate::terminal;

#[derive(Args)]
pub(crate) struct Options {
    /// Where the server listens for administration
    #[arg(default_value = "127.0.0.1:8002")]
    address: String,
    /// Print one frame as text and end
    #[arg(long)]
    once: bool,
    /// Seconds between two frames
    #[arg(long, value_name = "SECONDS", default_value_t = 1.0, value_parser = interval)]
    interval: f64,
}

fn interval(text: &str) -> Result<f64, String> {
    let seconds: f64 = text.parse().map_err(|_| format!("'{text}' is no number"))?;
    let is_usable = (0.1..=3600.0).contains(&seconds);
    if is_usable { Ok(seconds) } else { Err("it is from 0.1 to 3600".into()) }
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let source = Administration::named(&options.address);
    // Also where frames follow: a server that is not there is told on a plain line.
    let first = source.status()?;
    if options.once {
        let width = u16::try_from(terminal::width()).unwrap_or(u16::MAX);
        terminal::print(&frame::text(&first, source.address(), width))?;
        return Ok(());
    }
    screen::run(&source, first, Duration::from_secs_f64(options.interval))
}
