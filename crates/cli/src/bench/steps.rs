//! Where a model's time goes, step by step.

use std::collections::BTreeMap;

use anyhow::Result;

use super::statistics::median;
use super::timing::Subject;
use crate::table::{Table, count};

/// Runs of which each step's median is taken.
const RUNS: usize = 9;

/// Steps that are listed one by one.
const LISTED: usize = 20;

/// The slowest steps, and all steps by kernel, as tables.
pub(super) fn render(subject: &Subject) -> Result<String> {
    let steps = &subject.executable.report().steps;
    let mut samples: Vec<Vec<f64>> = vec![Vec::new(); steps.len()];
    for _ in 0..RUNS {
        let times = subject.executable.time_steps(&subject.inputs)?;
        for (samples, time) in samples.iter_mut().zip(times) {
            samples.push(time.as_secs_f64() * 1e3);
        }
    }
    let medians: Vec<f64> = samples.iter().map(|samples| median(samples)).collect();
    let total: f64 = medians.iter().sum();

    let mut slowest: Vec<usize> = (0..steps.len()).collect();
    slowest.sort_by(|&a, &b| medians[b].total_cmp(&medians[a]));
    let mut table = Table::new(["step", "ms", "share %", "GFLOP/s", "FLOP", "kernel", "node"]);
    for &index in slowest.iter().take(LISTED) {
        let (step, ms) = (&steps[index], medians[index]);
        table.row([
            index.to_string(),
            format!("{ms:.3}"),
            format!("{:.1}", ms / total * 100.0),
            format!("{:.1}", step.flops as f64 / ms * 1e-6),
            count(step.flops),
            step.kernel.clone(),
            step.node.clone(),
        ]);
    }
    let mut by_kernel: BTreeMap<&str, (usize, f64, u64)> = BTreeMap::new();
    for (step, ms) in steps.iter().zip(&medians) {
        let entry = by_kernel.entry(&step.kernel).or_default();
        *entry = (entry.0 + 1, entry.1 + ms, entry.2 + step.flops);
    }
    let mut kernels = Table::new(["kernel", "steps", "ms", "share %", "GFLOP/s"]);
    for (kernel, (steps, ms, flops)) in by_kernel {
        kernels.row([
            kernel.into(),
            steps.to_string(),
            format!("{ms:.3}"),
            format!("{:.1}", ms / total * 100.0),
            format!("{:.1}", flops as f64 / ms * 1e-6),
        ]);
    }
    Ok(format!("{}\n\n{}", table.render(), kernels.render()))
}
