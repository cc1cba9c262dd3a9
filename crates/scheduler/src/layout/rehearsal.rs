//! Rehearsals: a layout is played with made-up requests at the rates of the load, by the code that serves.

use std::sync::Arc;

use crate::identity::ModelId;
use crate::layout::{Layout, LayoutTask, RoundLoad};
use crate::plan::Dice;
use crate::policy::{Action, LaunchId, PartitionId};
use crate::request::{Request, RequestId};
use crate::served::ServedDevice;
use crate::serving::{LatencyTables, Serving, ServingPartition};
use crate::time::{Span, Time};

/// Requests of one rehearsal: enough to tell one late request in a hundred from two.
const REQUESTS: usize = 3_000;

/// Durations are taken to stray at least so far from what is predicted, as a standard deviation and a share.
const LEAST_SPREAD: f64 = 0.03;

/// What a step of priority is worth.
const PRIORITY_WORTH: f64 = 16.0;

/// How many times more it counts when a model loses more requests than its objective allows.
const BROKEN_OBJECTIVE: f64 = 4.0;

/// The requests that layouts are played with, the same for all.
pub(super) struct Rehearsal<'a> {
    device: &'a ServedDevice,
    corrections: &'a [f64],
    spreads: &'a [f64],
    rounds: Option<&'a RoundLoad>,
    tables: Arc<LatencyTables>,
    /// When each comes, from the start, and for which model.
    arrivals: Vec<(Span, ModelId)>,
    /// By model: how many come, and what each is worth.
    arrived: Vec<u32>,
    worth: Vec<f64>,
    all_worth: f64,
}

impl<'a> Rehearsal<'a> {
    /// For the load of a task.
    pub(super) fn new(task: &'a LayoutTask) -> Self {
        let LayoutTask { device, per_s, corrections, spreads, rounds, .. } = task;
        let models = device.models.iter();
        let worth = models.map(|model| model.weight * PRIORITY_WORTH.powi(model.priority.into()));
        let worth: Vec<f64> = worth.collect();
        let arrivals = match rounds {
            Some(rounds) => beside(rounds, draw(device, &rounds.left_of(per_s))),
            None => draw(device, per_s),
        };
        let mut arrived = vec![0; device.models.len()];
        arrivals.iter().for_each(|(_, model)| arrived[model.index()] += 1);
        let all_worth = arrivals.iter().map(|(_, model)| worth[model.index()]).sum();
        let tables = Arc::new(LatencyTables::new(device));
        Self {
            device,
            corrections,
            spreads,
            rounds: rounds.as_ref(),
            tables,
            arrivals,
            arrived,
            worth,
            all_worth,
        }
    }

    /// The share of requests, by their worth, that a layout does not answer in time when they come `load` times as fast;
    /// more where objectives do not hold. Where that is certainly above `most`, something above `most`.
    pub(super) fn lost(&self, layout: &Layout, load: f64, most: f64) -> f64 {
        let stage = self.play(layout, load, most);
        (stage.lost_worth + self.broken_worth(&stage.lost)) / self.all_worth.max(f64::MIN_POSITIVE)
    }

    /// The share of requests that a layout does not answer in time, whatever they are worth.
    pub(super) fn late_share(&self, layout: &Layout, load: f64) -> f64 {
        let late: u32 = self.play(layout, load, f64::INFINITY).lost.iter().sum();
        f64::from(late) / self.arrivals.len().max(1) as f64
    }

    /// Plays until all requests have come, or more is lost than `most`.
    fn play(&self, layout: &Layout, load: f64, most: f64) -> Stage<'_> {
        let mut stage = Stage::new(self, layout, load);
        let most_worth = most * self.all_worth;
        for number in 0..self.arrivals.len() as u64 {
            let request = self.request(RequestId(number), load);
            stage.play_until(request.arrived);
            stage.arrive(request);
            if stage.lost_worth > most_worth {
                return stage;
            }
        }
        stage.play_until(Time::NEVER);
        stage
    }

    /// What counts more because objectives do not hold. One request is no proof of that.
    fn broken_worth(&self, lost: &[u32]) -> f64 {
        let models = self.device.models.iter().zip(&self.arrived).zip(lost).zip(&self.worth);
        let broken = models.map(|(((model, &arrived), &lost), worth)| {
            let percentile = model.slo.map_or(0.0, |slo| slo.percentile);
            let allowed = 1.0 + f64::from(arrived) * (1.0 - percentile);
            (f64::from(lost) - allowed).max(0.0) * worth * BROKEN_OBJECTIVE
        });
        broken.sum()
    }

    fn request(&self, id: RequestId, load: f64) -> Request {
        let (at, model) = self.arrivals[id.0 as usize];
        let arrived = Time::START + at * load.recip();
        let slo = self.device.models[model.index()].slo;
        let deadline = slo.map_or(Time::NEVER, |slo| arrived + slo.latency);
        Request { id, model, arrived, deadline }
    }
}

/// Independent arrivals of all models with an objective.
fn draw(device: &ServedDevice, per_s: &[f64]) -> Vec<(Span, ModelId)> {
    let mut reached = Vec::with_capacity(per_s.len());
    let mut total_per_s = 0.0;
    for (model, rate) in device.models.iter().zip(per_s) {
        total_per_s += if model.slo.is_some() { *rate } else { 0.0 };
        reached.push(total_per_s);
    }
    if total_per_s <= 0.0 {
        return Vec::new();
    }
    let mut dice = Dice::new(11);
    let mut at_s = 0.0;
    let arrivals = (0..REQUESTS).map(|_| {
        at_s -= (1.0 - dice.share()).ln() / total_per_s;
        let point = dice.share() * total_per_s;
        let model = reached.partition_point(|reached| *reached <= point).min(reached.len() - 1);
        (Span::from_s(at_s), ModelId(model as u32))
    });
    arrivals.collect()
}

/// As many arrivals of rounds and of others.
fn beside(rounds: &RoundLoad, others: Vec<(Span, ModelId)>) -> Vec<(Span, ModelId)> {
    let mut arrivals = rounds.draw(REQUESTS);
    arrivals.extend(others);
    arrivals.sort_unstable();
    arrivals.truncate(REQUESTS);
    arrivals
}

/// What runs in a rehearsal.
struct Played {
    end: Time,
    launch: LaunchId,
    partition: PartitionId,
    requests: Vec<RequestId>,
}

/// One layout in play.
struct Stage<'a> {
    rehearsal: &'a Rehearsal<'a>,
    load: f64,
    serving: Serving,
    running: Vec<Played>,
    /// When it asked to be woken.
    wakes: Vec<Time>,
    actions: Vec<Action>,
    dice: Dice,
    /// By model, and by worth all together.
    lost: Vec<u32>,
    lost_worth: f64,
}

impl<'a> Stage<'a> {
    fn new(rehearsal: &'a Rehearsal<'a>, layout: &Layout, load: f64) -> Self {
        let Rehearsal { device, tables, corrections, .. } = rehearsal;
        let mut serving = Serving::with_tables(device, tables.clone(), corrections);
        // Whoever holds others up is not known: made-up requests are all punctual.
        serving.keep_stragglers();
        let mut actions = Vec::new();
        let seats = layout.sizes().iter().copied().zip(layout.seats(device));
        let partitions = ServingPartition::side_by_side(seats);
        serving.switch(&partitions, Time::START, &mut actions);
        actions.clear();
        if let ([whole], Some(rounds)) = (&partitions[..], rehearsal.rounds) {
            serving.set_mix(rounds.mix_on(whole.id));
        }
        let (running, wakes) = (Vec::new(), Vec::new());
        let (dice, lost) = (Dice::new(13), vec![0; device.models.len()]);
        Self { rehearsal, load, serving, running, wakes, actions, dice, lost, lost_worth: 0.0 }
    }

    /// Ends what is to end by an instant, and wakes.
    fn play_until(&mut self, now: Time) {
        loop {
            let wake = self.wakes.iter().copied().min().filter(|&wake| wake <= now);
            let next = self.next_end().filter(|&(_, end)| end <= now);
            if let Some(wake) = wake.filter(|&wake| next.is_none_or(|(_, end)| wake < end)) {
                self.wakes.retain(|&other| other > wake);
                self.serving.wake(wake, &mut self.actions);
                self.carry_out(wake);
                continue;
            }
            let Some((place, end)) = next else { return };
            let Played { launch, requests, .. } = self.running.swap_remove(place);
            for id in requests {
                let request = self.rehearsal.request(id, self.load);
                self.lose(request.model, u32::from(request.deadline < end));
            }
            self.serving.finish(launch, end, &mut self.actions);
            self.carry_out(end);
        }
    }

    fn next_end(&self) -> Option<(usize, Time)> {
        let ends = self.running.iter().map(|played| played.end).enumerate();
        ends.min_by_key(|&(place, end)| (end, place))
    }

    fn arrive(&mut self, request: Request) {
        let is_refused = self.serving.arrive(&[request], request.arrived, &mut self.actions) > 0;
        self.lose(request.model, u32::from(is_refused));
        self.carry_out(request.arrived);
    }

    fn lose(&mut self, model: ModelId, count: u32) {
        self.lost[model.index()] += count;
        self.lost_worth += f64::from(count) * self.rehearsal.worth[model.index()];
    }

    fn carry_out(&mut self, now: Time) {
        let rehearsal = self.rehearsal;
        let mut actions = std::mem::take(&mut self.actions);
        for action in actions.drain(..) {
            match action {
                Action::Launch { launch, partition, model, requests, expected, .. } => {
                    let spread = rehearsal.spreads[model.index()].max(LEAST_SPREAD);
                    let factor = 1.0 + spread * deviation(&mut self.dice);
                    let duration = expected * factor.max(0.0);
                    // What it interrupts goes on afterwards.
                    let beneath = self.running.iter_mut().filter(|it| it.partition == partition);
                    beneath.for_each(|paused| paused.end = paused.end + duration);
                    let end = now + duration;
                    self.running.push(Played { end, launch, partition, requests });
                }
                Action::WakeAt(at) => self.wakes.push(at.max(now)),
                Action::Shed(request) => self.lose(rehearsal.arrivals[request.0 as usize].1, 1),
                _ => {}
            }
        }
        self.actions = actions;
    }
}

/// Nearly normally distributed, with a standard deviation of 1.
fn deviation(dice: &mut Dice) -> f64 {
    let sum: f64 = (0..4).map(|_| dice.share()).sum();
    (sum - 2.0) * 3f64.sqrt()
}
