//! The process that answers requests, one at a time at a fixed pace, and says how long each took.

use std::io::{self, BufRead, Write, stdin, stdout};
use std::time::{Duration, Instant};
use std::{process, thread};

use anyhow::{Result, ensure};
use clap::Args;
use serde_json::json;

use crate::bench::timing::Subject;
use crate::device::DeviceOptions;
use crate::model_file::{self, DimensionOptions};

#[derive(Args)]
pub(crate) struct Options {
    model: String,
    #[command(flatten)]
    device: DeviceOptions,
    #[arg(long)]
    pace_ms: f64,
    #[arg(long)]
    seconds: f64,
}

const WARM_UP_RUNS: usize = 20;
/// How long before a request is due this process wakes: sleeping is not exact.
const WAKE_AHEAD: Duration = Duration::from_micros(150);

pub(crate) fn run(options: &Options) -> Result<()> {
    ensure!(options.pace_ms > 0.0, "--pace-ms must be above 0");
    let device = options.device.open()?;
    let path = model_file::resolve(&options.model)?;
    let dimensions = DimensionOptions::default();
    let subject = Subject::new(&path, 1, &dimensions, device.as_device(), &device.units())?;
    for _ in 0..WARM_UP_RUNS {
        subject.time_once_ms()?;
    }
    say(&json!({ "ready": true }))?;
    // Whoever started this is gone where nothing is said.
    let mut line = String::new();
    if stdin().lock().read_line(&mut line)? == 0 {
        return Ok(());
    }
    // Nor is anybody there any more who would hear the latencies once there is nothing left to read.
    thread::spawn(|| {
        let _ = io::copy(&mut stdin().lock(), &mut io::sink());
        process::exit(0);
    });
    let pace = Duration::from_secs_f64(options.pace_ms * 1e-3);
    let length = Duration::from_secs_f64(options.seconds);
    let latencies_ms = paced(pace, length, || subject.time_once_ms().map(drop))?;
    say(&json!({ "latencies_ms": latencies_ms }))
}

/// Milliseconds from when each request was due to its end. Where one takes longer than the pace, the next is due at its end.
fn paced(
    pace: Duration,
    length: Duration,
    mut run: impl FnMut() -> Result<()>,
) -> Result<Vec<f64>> {
    let start = Instant::now();
    let mut due = start;
    let mut latencies_ms = Vec::new();
    while due.duration_since(start) < length {
        thread::sleep(due.saturating_duration_since(Instant::now() + WAKE_AHEAD));
        while Instant::now() < due {
            std::hint::spin_loop();
        }
        run()?;
        let end = Instant::now();
        latencies_ms.push(end.duration_since(due).as_secs_f64() * 1e3);
        due = (due + pace).max(end);
    }
    Ok(latencies_ms)
}

fn say(what: &serde_json::Value) -> Result<()> {
    let mut output = stdout().lock();
    writeln!(output, "{what}")?;
    Ok(output.flush()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_come_at_their_pace_and_never_before_the_last_has_ended() {
        let (pace, length) = (Duration::from_millis(2), Duration::from_millis(20));
        let latencies = paced(pace, length, || Ok(())).unwrap();
        assert!((1..=10).contains(&latencies.len()), "{latencies:?}");
        let mut starts = Vec::new();
        let slow = || {
            starts.push(Instant::now());
            while starts[starts.len() - 1].elapsed() < 3 * pace {}
            Ok(())
        };
        let latencies = paced(pace, length, slow).unwrap();
        assert!(latencies.len() <= 4 && latencies.iter().all(|&ms| ms >= 6.0), "{latencies:?}");
        assert!(starts.windows(2).all(|pair| pair[1] - pair[0] >= 3 * pace));
    }
}
