//! Whole models with what was chosen, beside what they take untuned: kernels that are faster by themselves may not be
//! in their model.

use std::panic::resume_unwind;
use std::sync::Arc;
use std::thread::{self, ScopedJoinHandle};
use std::time::Duration;

use anyhow::{Context, Result};
use weft_device::KernelChoices;
use weft_tuner::Elsewhere;
use weft_tuner::report::ModelReport;
use weft_tuner::session::{Choice, Task};

use crate::bench::{geometric_mean, lower_quartile};
use crate::device::OpenDevice;
use crate::tuning::{ContestSettings, Contestant, KernelSet, ModelSelection, Ring};

/// How much slower than untuned a model may be with what was chosen.
const MAX_LOSS: f64 = 0.005;

/// Gains up to the first of these are given up where a model has become slower; if it still is, those up to the next.
const DOUBTFUL_GAINS: [f64; 4] = [1.04, 1.1, 1.25, f64::INFINITY];

/// What the models must save altogether for the kernels of another size to be taken, and how many sizes have their chance.
const LEAST_GAIN: f64 = 0.01;
const MAX_SIZES: usize = 3;

/// Rounds in which tuned and untuned have their turns, and further ones where tuned seems to be slower.
const ROUNDS: usize = 5;
const FURTHER_ROUNDS: usize = 6;
/// For how long each runs in a round: a run of a model on a GPU takes a fraction of one on a CPU.
const GPU_TIME: Duration = Duration::from_millis(8);
const CPU_TIME: Duration = Duration::from_millis(10);

/// The models as they are untuned, at every batch size.
pub(super) struct Check<'a> {
    device: &'a OpenDevice,
    time: Duration,
    models: Vec<Untuned<'a>>,
}

struct Untuned<'a> {
    name: &'a str,
    ring: Ring<'a>,
    /// With the batch size of each.
    contestants: Vec<(usize, Contestant)>,
}

impl<'a> Check<'a> {
    /// Prepares the models for a partition of a size.
    pub(super) fn prepare(
        selection: &'a ModelSelection,
        device: &'a OpenDevice,
        size: usize,
    ) -> Result<Self> {
        let units = device.as_tunable().disjoint_partitions(size);
        let units = units.first().context("there is no partition of the size")?;
        let ModelSelection { models, batches, dimensions } = selection;
        let prepare = |name: &'a String| {
            let ring = Ring::open(device, name, dimensions, units)?;
            let enter = |&batch: &usize| {
                let contestant = ring.enter(batch, Arc::new(KernelSet::default()));
                contestant.map(|contestant| (batch, contestant))
            };
            let contestants = batches.iter().map(enter).collect::<Result<_>>()?;
            Ok(Untuned { name, ring, contestants })
        };
        let time = match device {
            OpenDevice::Cpu(_) => CPU_TIME,
            OpenDevice::Cuda(_) => GPU_TIME,
        };
        Ok(Self { device, time, models: models.iter().map(prepare).collect::<Result<_>>()? })
    }

    /// Takes what is chosen for partitions of another size, as a whole, where models are faster with it: kernels that are fastest one
    /// by one may not be so in a row. Says for which tasks something else is chosen now.
    pub(super) fn take_better(
        &self,
        tasks: &[Task],
        choices: &mut [Option<Choice>],
        others: &[Elsewhere],
    ) -> Result<Vec<usize>> {
        let mut changed = Vec::new();
        for other in others.iter().take(MAX_SIZES) {
            let (taken, tasks_of) = with(choices, other);
            if tasks_of.is_empty() || !self.are_faster(tasks, choices, &taken)? {
                continue;
            }
            choices.copy_from_slice(&taken);
            changed.extend(tasks_of);
        }
        changed.sort_unstable();
        changed.dedup();
        Ok(changed)
    }

    /// Whether all models together take less with the second choices, and none takes more.
    fn are_faster(
        &self,
        tasks: &[Task],
        present: &[Option<Choice>],
        others: &[Option<Choice>],
    ) -> Result<bool> {
        let mut ratios = Vec::new();
        for model in &self.models {
            let present = model.enter_all(KernelSet::of(tasks, present));
            let others = model.enter_all(KernelSet::of(tasks, others));
            for (present, other) in present.into_iter().zip(others) {
                let pairs = self.pairs_us(&present?, &other?, ROUNDS)?;
                if is_slower(&pairs) {
                    return Ok(false);
                }
                ratios.push(ratio(&pairs));
            }
        }
        Ok(geometric_mean(&ratios) <= 1.0 - LEAST_GAIN)
    }

    /// Gives up choices of models that they make slower. Says what every model takes, at every batch size, and which
    /// tasks are left untuned for it.
    pub(super) fn run(
        &self,
        tasks: &[Task],
        choices: &mut [Option<Choice>],
    ) -> Result<(Vec<ModelReport>, Vec<usize>)> {
        let (mut reports, mut given_up) = (Vec::new(), Vec::new());
        for model in &self.models {
            let Untuned { name, ring, contestants } = model;
            let entered = model.enter_all(KernelSet::of(tasks, choices));
            let before = given_up.len();
            for ((batch, untuned), tuned) in contestants.iter().zip(entered) {
                // One that was entered before a choice was given up is not what will be served.
                let mut tuned = Some(tuned).filter(|_| given_up.len() == before);
                let enter = |choices: &[Option<Choice>]| match tuned.take() {
                    Some(tuned) => tuned,
                    None => ring.enter(*batch, Arc::new(KernelSet::of(tasks, choices))),
                };
                let (untuned_us, ratio) = self.compare(untuned, enter, choices, &mut given_up)?;
                let (model, tuned_us) = (name.to_string(), untuned_us * ratio);
                reports.push(ModelReport { model, batch: *batch, untuned_us, tuned_us });
            }
        }
        self.device.as_tunable().use_choices(Arc::new(KernelSet::default()));
        Ok((reports, given_up))
    }

    /// What a model takes untuned, and how many times as long with what is left of the choices.
    fn compare(
        &self,
        untuned: &Contestant,
        mut enter: impl FnMut(&[Option<Choice>]) -> Result<Contestant>,
        choices: &mut [Option<Choice>],
        given_up: &mut Vec<usize>,
    ) -> Result<(f64, f64)> {
        let mut untuned_us = 0.0;
        for limit in DOUBTFUL_GAINS {
            let tuned = enter(choices)?;
            let mut pairs = self.pairs_us(untuned, &tuned, ROUNDS)?;
            if is_slower(&pairs) {
                pairs.extend(self.pairs_us(untuned, &tuned, FURTHER_ROUNDS)?);
            }
            untuned_us = calm_us(&pairs, |pair| pair.0);
            if !is_slower(&pairs) {
                return Ok((untuned_us, ratio(&pairs)));
            }
            given_up.extend(give_up(choices, limit));
            if choices.iter().flatten().all(|choice| choice.candidate == 0) {
                break;
            }
        }
        // Nothing is left but what it was compared with.
        Ok((untuned_us, 1.0))
    }

    fn pairs_us(
        &self,
        untuned: &Contestant,
        tuned: &Contestant,
        rounds: usize,
    ) -> Result<Vec<(f64, f64)>> {
        ContestSettings { preparations: 1, rounds, time: self.time }.pairs_us(untuned, tuned)
    }
}

impl Untuned<'_> {
    /// The model with a set of kernels at every batch size, prepared beside each other.
    fn enter_all(&self, set: KernelSet) -> Vec<Result<Contestant>> {
        let set: Arc<dyn KernelChoices> = Arc::new(set);
        thread::scope(|scope| {
            let start = |(batch, _): &(usize, Contestant)| {
                let (batch, set) = (*batch, set.clone());
                scope.spawn(move || self.ring.enter(batch, set))
            };
            let threads: Vec<_> = self.contestants.iter().map(start).collect();
            let joined = threads.into_iter().map(ScopedJoinHandle::join);
            joined.map(|entered| entered.unwrap_or_else(|panic| resume_unwind(panic))).collect()
        })
    }
}

/// Choices with those of another size in their place, and for which tasks they differ.
fn with(choices: &[Option<Choice>], other: &Elsewhere) -> (Vec<Option<Choice>>, Vec<usize>) {
    let mut taken = choices.to_vec();
    let mut changed = Vec::new();
    for (task, (choice, elsewhere)) in taken.iter_mut().zip(&other.chosen).enumerate() {
        if let (Some(choice), Some((candidate, time))) = (choice, *elsewhere)
            && choice.candidate != candidate
        {
            *choice = Choice { candidate, time, ..*choice };
            changed.push(task);
        }
    }
    (taken, changed)
}

/// The second of each pair is slower in three rounds of four: noise alone makes either the slower one in half of them.
fn is_slower(pairs: &[(f64, f64)]) -> bool {
    let ratios: Vec<f64> = pairs.iter().map(|(one, other)| other / one).collect();
    lower_quartile(&ratios) > 1.0 + MAX_LOSS
}

/// How many times as long the second of each pair is.
fn ratio(pairs: &[(f64, f64)]) -> f64 {
    calm_us(pairs, |pair| pair.1) / calm_us(pairs, |pair| pair.0)
}

/// What one of each pair takes in calm rounds.
fn calm_us(pairs: &[(f64, f64)], one: impl Fn(&(f64, f64)) -> f64) -> f64 {
    lower_quartile(&pairs.iter().map(one).collect::<Vec<_>>())
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
    fn rounds_that_something_slowed_decide_nothing() {
        let calm = [(100.0, 98.0), (101.0, 99.0), (100.0, 98.0)];
        let slowed = [(150.0, 98.0), (100.0, 160.0), (101.0, 150.0), (100.0, 149.0)];
        let pairs = [&calm[..], &slowed].concat();
        assert!((ratio(&pairs) - 0.98).abs() < 0.006, "{}", ratio(&pairs));
        assert!(!is_slower(&pairs));
        let slower: Vec<_> = pairs.iter().map(|(one, other)| (*one, other * 1.04)).collect();
        let four_of_five = [&slower[..3], &slower[..1], &[(150.0, 98.0)]].concat();
        assert!(is_slower(&slower[..3]) && is_slower(&four_of_five));
        assert!(!is_slower(&[(100.0, 103.0), (103.0, 100.0), (100.0, 103.0), (103.0, 100.0)]));
    }

    #[test]
    fn what_is_chosen_elsewhere_is_taken_where_it_was_timed_here() {
        let us = Duration::from_micros;
        let choice =
            |candidate| Some(Choice { candidate, time: us(90), untuned_time: us(100), trials: 7 });
        let chosen = vec![Some((5, us(95))), None, Some((2, us(80))), Some((1, us(60)))];
        let (taken, changed) =
            with(&[choice(3), choice(4), choice(2), None], &Elsewhere { size: 32, chosen });
        assert_eq!(changed, [0]);
        let first = taken[0].unwrap();
        assert_eq!((first.candidate, first.time, first.untuned_time), (5, us(95), us(100)));
        assert_eq!(taken[1..], [choice(4), choice(2), None]);
    }

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
