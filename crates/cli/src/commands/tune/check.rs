//! Whole models with what was chosen, beside what they take untuned: kernels that are faster by themselves may not be
//! in their model.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use weft_tuner::session::{Choice, Task};

use super::message::ModelReport;
use super::options::Options;
use crate::device::OpenDevice;
use crate::tuning::{Contest, ContestSettings, Contestant, KernelSet};

/// How much slower than untuned a model may be with what was chosen.
const MAX_LOSS: f64 = 0.005;

/// Gains up to the first of these are given up where a model has become slower; if it still is, those up to the next.
const DOUBTFUL_GAINS: [f64; 4] = [1.04, 1.1, 1.25, f64::INFINITY];

/// Rounds in which tuned and untuned have their turns, and those of a closer look where tuned seems to be slower.
const ROUNDS: usize = 5;
const CLOSER_ROUNDS: usize = 11;
/// For how long each runs in a round: a run of a model on a GPU takes a fraction of one on a CPU.
const GPU_TIME: Duration = Duration::from_millis(8);
const CPU_TIME: Duration = Duration::from_millis(20);

/// Gives up choices of models that they make slower. Says what every model takes, at every batch size, and which tasks
/// are left untuned for it.
pub(super) fn check(
    options: &Options,
    device: &OpenDevice,
    size: usize,
    tasks: &[Task],
    choices: &mut [Option<Choice>],
) -> Result<(Vec<ModelReport>, Vec<usize>)> {
    let units = device.as_tunable().disjoint_partitions(size);
    let units = units.first().context("there is no partition of the size")?;
    let time = match device {
        OpenDevice::Cpu(_) => CPU_TIME,
        OpenDevice::Cuda(_) => GPU_TIME,
    };
    let selection = &options.selection;
    let (mut reports, mut given_up) = (Vec::new(), Vec::new());
    for model in &selection.models {
        for &batch in &selection.batches {
            let dimensions = &selection.dimensions;
            let ring = Contest { device, model, batch, dimensions, units }.open()?;
            let untuned = ring.enter(Arc::new(KernelSet::default()))?;
            let compare = |tuned: &Contestant, rounds| {
                ContestSettings { preparations: 1, rounds, time }.compare(&untuned, tuned)
            };
            let is_slower = |ratio: f64| ratio > 1.0 + MAX_LOSS;
            let (mut untuned_us, mut ratio) = (0.0, 1.0);
            for limit in DOUBTFUL_GAINS {
                let tuned = ring.enter(Arc::new(KernelSet::of(tasks, choices)))?;
                (untuned_us, ratio) = compare(&tuned, ROUNDS)?;
                if is_slower(ratio) {
                    (untuned_us, ratio) = compare(&tuned, CLOSER_ROUNDS)?;
                }
                if !is_slower(ratio) {
                    break;
                }
                given_up.extend(give_up(choices, limit));
                ratio = 1.0;
                if choices.iter().flatten().all(|choice| choice.candidate == 0) {
                    break;
                }
            }
            let tuned_us = untuned_us * ratio;
            reports.push(ModelReport { model: model.clone(), batch, untuned_us, tuned_us });
        }
    }
    device.as_tunable().use_choices(Arc::new(KernelSet::default()));
    Ok((reports, given_up))
}

/// Goes back to the untuned candidate where another one gains no more than `limit`; says of which tasks.
fn give_up(choices: &mut [Option<Choice>], limit: f64) -> Vec<usize> {
    let mut given_up = Vec::new();
    for (task, choice) in choices.iter_mut().enumerate() {
        if let Some(choice) = choice
            && choice.candidate != 0
            && choice.gain() <= limit
        {
            *choice = Choice { candidate: 0, time: choice.untuned_time, ..*choice };
            given_up.push(task);
        }
    }
    given_up
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_gains_are_given_up_first() {
        let choice = |candidate, us| {
            let untuned_time = Duration::from_micros(100);
            Some(Choice { candidate, time: Duration::from_micros(us), untuned_time, trials: 1 })
        };
        let mut choices = [choice(3, 98), choice(0, 100), None, choice(2, 50)];
        assert_eq!(give_up(&mut choices, DOUBTFUL_GAINS[0]), [0]);
        assert_eq!(choices[0].unwrap().candidate, 0);
        assert_eq!(give_up(&mut choices, f64::INFINITY), [3]);
    }
}
