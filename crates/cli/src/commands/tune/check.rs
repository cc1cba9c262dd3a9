//! Whole models with what was chosen, beside what they take untuned: kernels that are faster by themselves may not be
//! in their model.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use weft_device::KernelChoices;
use weft_tuner::session::{Choice, Task};

use super::message::ModelReport;
use super::options::Options;
use crate::device::OpenDevice;
use crate::tuning::{Contest, ContestSettings, KernelSet};

/// How much slower than untuned a model may be with what was chosen.
const MAX_LOSS: f64 = 0.005;

/// Gains up to this are given up first where a model has become slower.
const DOUBTFUL_GAIN: f64 = 1.04;

/// Rounds in which tuned and untuned have their turns.
const ROUNDS: usize = 5;
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
    let settings = ContestSettings { rounds: ROUNDS, time };
    let selection = &options.selection;
    let (mut reports, mut given_up) = (Vec::new(), Vec::new());
    for model in &selection.models {
        for &batch in &selection.batches {
            let dimensions = &selection.dimensions;
            let contest = Contest { device, model, batch, dimensions, units };
            let compare = |choices: &[Option<Choice>]| {
                let sets: [Arc<dyn KernelChoices>; 2] =
                    [Arc::new(KernelSet::default()), Arc::new(KernelSet::of(tasks, choices))];
                contest.latencies_us(&sets, settings).map(|times| (times[0], times[1]))
            };
            let (mut untuned_us, mut tuned_us) = compare(choices)?;
            for limit in [DOUBTFUL_GAIN, f64::INFINITY] {
                if tuned_us <= untuned_us * (1.0 + MAX_LOSS) {
                    break;
                }
                given_up.extend(give_up(choices, limit));
                (untuned_us, tuned_us) = compare(choices)?;
            }
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
        assert_eq!(give_up(&mut choices, DOUBTFUL_GAIN), [0]);
        assert_eq!(choices[0].unwrap().candidate, 0);
        assert_eq!(give_up(&mut choices, f64::INFINITY), [3]);
    }
}
