//! The search for the stages that end a mix soonest: it can be stopped at any time, and what it has found so far is there.

use std::collections::HashSet;

use super::{Form, Mix, MixModel, MixSchedule, Stage, Stages};
use crate::Span;

/// How many schedules are remembered as the best, for whoever measures them: of those without fillers, and with each set of
/// fillers.
const MAX_FINALISTS: usize = 16;
const MAX_FILLED_FINALISTS: usize = 2;

/// All sets of fillers are looked at where there are no more models than this.
const MAX_FILLER_SETS_MODELS: usize = 5;

/// By how much a stage's end is moved, as a part of the time until a model ends.
const END_STEPS: [f64; 4] = [-0.25, -0.1, 0.1, 0.25];

/// How stages are searched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strategy {
    /// From even shares on, one thing after another is changed to what is best for it, until no change helps: the search of
    /// granularity-aware concurrency regulation.
    CoordinateDescent,
    /// From many beginnings, among them shares by which all would end together, each improved by its best change until none
    /// helps; then again from what was best, shaken.
    Descents,
}

/// A search for one mix.
pub struct RegulationSearch<'a> {
    mix: &'a Mix,
    strategy: Strategy,
    seed: u64,
    current: Option<Candidate>,
    /// Beginnings that are still to be improved, the last first.
    beginnings: Vec<Stages>,
    finalists: Vec<Candidate>,
    seen: HashSet<MixSchedule>,
    evaluated: usize,
    is_done: bool,
}

#[derive(Clone)]
struct Candidate {
    stages: Stages,
    schedule: MixSchedule,
    makespan_us: f64,
}

impl<'a> RegulationSearch<'a> {
    /// A search that has looked at nothing yet. The same seed finds the same.
    pub fn new(mix: &'a Mix, strategy: Strategy, seed: u64) -> Self {
        let mut beginnings = match strategy {
            Strategy::CoordinateDescent => Vec::new(),
            Strategy::Descents => {
                let count = mix.models().len();
                let (none, whole) = (vec![false; count], vec![Form::WHOLE; count]);
                let filled = filler_sets(mix).into_iter();
                let filled = filled.map(|fillers| balanced(mix, fillers, whole.clone()));
                let chunked = balanced(mix, none.clone(), leanest_forms(mix));
                let apart = balanced(mix, none, whole.clone());
                filled.chain([Stages::in_turns(mix), chunked, apart]).collect()
            }
        };
        beginnings.push(Stages::even(mix));
        Self {
            mix,
            strategy,
            seed,
            current: None,
            beginnings,
            finalists: Vec::new(),
            seen: HashSet::new(),
            evaluated: 0,
            is_done: false,
        }
    }

    /// How many schedules it has looked at.
    pub fn evaluated(&self) -> usize {
        self.evaluated
    }

    /// True where it will find nothing more.
    pub fn is_done(&self) -> bool {
        self.is_done
    }

    /// The best stages so far, each with its schedule and how long that should take, the best first.
    pub fn finalists(&self) -> impl Iterator<Item = (&Stages, &MixSchedule, Span)> {
        let finalists = self.finalists.iter();
        finalists.map(|found| (&found.stages, &found.schedule, Span::from_us(found.makespan_us)))
    }

    /// Goes on by one change, or one beginning.
    pub fn advance(&mut self) {
        let Some(current) = self.current.take() else {
            match self.beginnings.pop() {
                Some(stages) => self.current = Some(self.evaluate(stages)),
                None => self.begin_anew(),
            }
            return;
        };
        let better = match self.strategy {
            Strategy::CoordinateDescent => self.better_coordinate(&current),
            Strategy::Descents => self.best_change(&current),
        };
        // Where nothing helps, the next beginning has its turn.
        self.current = better;
    }

    fn begin_anew(&mut self) {
        let best = self.finalists.first().map(|found| found.stages.clone());
        match (self.strategy, best) {
            (Strategy::Descents, Some(best)) => {
                self.seed = self.seed.wrapping_add(1);
                self.beginnings.push(best.shaken(self.mix, self.seed));
            }
            _ => self.is_done = true,
        }
    }

    /// The first change of the stages that helps, each coordinate at its best.
    fn better_coordinate(&mut self, current: &Candidate) -> Option<Candidate> {
        for stage in 0..current.stages.stages.len() {
            for model in 0..self.mix.models().len() {
                let changes = shares(&current.stages, stage, model, self.mix.unit_count());
                let best = self.best_of(changes, current);
                if best.is_some() {
                    return best;
                }
            }
            let best = self.best_of(ends(&current.stages, stage), current);
            if best.is_some() {
                return best;
            }
        }
        let longer = lengthened(&current.stages, self.mix);
        self.best_of(longer, current)
    }

    fn best_change(&mut self, current: &Candidate) -> Option<Candidate> {
        self.best_of(current.stages.neighbours(self.mix), current)
    }

    /// The best of changed stages, where it is better than those that were changed.
    fn best_of(&mut self, changes: Vec<Stages>, current: &Candidate) -> Option<Candidate> {
        let found: Vec<Candidate> =
            changes.into_iter().map(|stages| self.evaluate(stages)).collect();
        let best = found.into_iter().min_by(|a, b| a.makespan_us.total_cmp(&b.makespan_us))?;
        // Less than a thousandth is no gain that a device would show.
        (best.makespan_us < current.makespan_us * 0.999).then_some(best)
    }

    fn evaluate(&mut self, stages: Stages) -> Candidate {
        self.evaluated += 1;
        let schedule = stages.schedule(self.mix);
        let makespan_us = schedule.timeline(self.mix).makespan.us();
        let candidate = Candidate { stages, schedule, makespan_us };
        // What fillers gain is not predicted well, so that each set of them has its own best.
        let fillers = &candidate.stages.fillers;
        let most = if fillers.contains(&true) { MAX_FILLED_FINALISTS } else { MAX_FINALISTS };
        let alike = |found: &&Candidate| found.stages.fillers == *fillers;
        let last = self.finalists.iter().filter(alike).nth(most - 1);
        let is_among_best = last.is_none_or(|last| makespan_us < last.makespan_us);
        if is_among_best && self.seen.insert(candidate.schedule.clone()) {
            let worst = self.finalists.iter().rposition(|found| alike(&found));
            if let (Some(_), Some(worst)) = (last, worst) {
                self.finalists.remove(worst);
            }
            let place = self.finalists.partition_point(|found| found.makespan_us <= makespan_us);
            self.finalists.insert(place, candidate.clone());
        }
        candidate
    }
}

impl Stages {
    /// What one change makes of them: units that move from one model to another, a stage that ends sooner or later, a
    /// further one, a model that fills or does so no more, or one whose batch is computed in other chunks.
    pub fn neighbours(&self, mix: &Mix) -> Vec<Stages> {
        let mut changed = lengthened(self, mix);
        for stage in 0..self.stages.len() {
            changed.extend(moves(self, stage));
            changed.extend(ends(self, stage));
        }
        for model in (0..mix.models().len()).filter(|_| mix.can_fill()) {
            let mut stages = self.clone();
            stages.fillers[model] = !stages.fillers[model];
            changed.push(stages);
        }
        for (model, &form) in self.forms.iter().enumerate().filter(|&(of, _)| !self.fillers[of]) {
            for other in mix.models()[model].forms().filter(|&other| other != form) {
                let mut stages = self.clone();
                stages.forms[model] = other;
                changed.push(stages);
            }
        }
        changed
    }

    /// The same with some of their units moved at random; the same seed moves the same.
    pub fn shaken(&self, mix: &Mix, seed: u64) -> Stages {
        let mut draw = Draws(seed);
        let mut stages = self.clone();
        let models = mix.models().len() as u64;
        for stage in &mut stages.stages {
            for _ in 0..2 {
                let [from, to] = [draw.below(models), draw.below(models)].map(|of| of as usize);
                let most = draw.below(u64::from(mix.unit_count()) / 4 + 1) as u32 + 1;
                let moved = most.min(stage.units[from]);
                stage.units[from] -= moved;
                stage.units[to] += moved;
            }
        }
        stages
    }
}

/// Numbers that look random and follow from a seed.
struct Draws(u64);

impl Draws {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ (mixed >> 31)) % limit.max(1)
    }
}

/// Sets of models that could fill what the others leave, where the device lets them: all sets, or where these are too many,
/// single models and all of them.
fn filler_sets(mix: &Mix) -> Vec<Vec<bool>> {
    let count = mix.models().len();
    if !mix.can_fill() || count < 2 {
        return Vec::new();
    }
    if count <= MAX_FILLER_SETS_MODELS {
        let set = |bits: u32| (0..count).map(|model| bits >> model & 1 == 1).collect();
        return (1..1 << count).map(set).collect();
    }
    let single = |filler: usize| (0..count).map(|model| model == filler).collect();
    (0..count).map(single).chain([vec![true; count]]).collect()
}

/// For each model the form in which it takes the least units and time altogether.
fn leanest_forms(mix: &Mix) -> Vec<Form> {
    let leanest = |model: &MixModel| {
        let unit_us = |form: &Form| model.least_unit_us(*form, 0, model.step_count());
        let least = model.forms().min_by(|a, b| unit_us(a).total_cmp(&unit_us(b)));
        least.unwrap_or(Form::WHOLE)
    };
    mix.models().iter().map(leanest).collect()
}

/// One stage in which all that do not fill should end together: units go one by one to the model that would end last.
fn balanced(mix: &Mix, fillers: Vec<bool>, forms: Vec<Form>) -> Stages {
    let models = (0..mix.models().len()).filter(|&model| !fillers[model]);
    let mut units = vec![0u32; fillers.len()];
    for _ in 0..mix.unit_count() {
        let end = |model: usize| match units[model] {
            0 => f64::INFINITY,
            units => {
                let of = &mix.models()[model];
                of.between_us(forms[model], units, 0, of.step_count())
            }
        };
        let Some(last) = models.clone().max_by(|&a, &b| end(a).total_cmp(&end(b))) else { break };
        units[last] += 1;
    }
    Stages { stages: vec![Stage { units, until: 1.0 }], fillers, forms }
}

/// One model's units in a stage set to every number, the others' made smaller or larger in turns.
fn shares(stages: &Stages, stage: usize, model: usize, unit_count: u32) -> Vec<Stages> {
    let set = |units: u32| {
        let mut changed = stages.clone();
        let shares = &mut changed.stages[stage].units;
        shares[model] = units;
        let mut other = model;
        while shares.iter().sum::<u32>() > unit_count {
            other = (other + 1) % shares.len();
            if other != model && shares[other] > 0 {
                shares[other] -= 1;
            }
        }
        changed
    };
    (0..=unit_count).filter(|&units| units != stages.stages[stage].units[model]).map(set).collect()
}

/// One, two or four units moved from one model to another.
fn moves(stages: &Stages, stage: usize) -> Vec<Stages> {
    let units = &stages.stages[stage].units;
    let mut changed = Vec::new();
    for from in 0..units.len() {
        for to in (0..units.len()).filter(|&to| to != from) {
            for moved in [1, 2, 4].into_iter().filter(|&moved| moved <= units[from]) {
                let mut stages = stages.clone();
                stages.stages[stage].units[from] -= moved;
                stages.stages[stage].units[to] += moved;
                changed.push(stages);
            }
        }
    }
    changed
}

/// A stage that ends sooner or later.
fn ends(stages: &Stages, stage: usize) -> Vec<Stages> {
    let until = stages.stages[stage].until;
    END_STEPS
        .into_iter()
        .map(|step| (until + step).clamp(0.05, 1.0))
        .filter(|&changed| changed != until)
        .map(|until| {
            let mut changed = stages.clone();
            changed.stages[stage].until = until;
            changed
        })
        .collect()
}

/// A further stage, with the shares of the last or with all units for one model.
fn lengthened(stages: &Stages, mix: &Mix) -> Vec<Stages> {
    let count = mix.models().len();
    // One for each model that may end, and one that ends before.
    if stages.stages.len() > count {
        return Vec::new();
    }
    let with = |stage: Stage| {
        let mut longer = stages.clone();
        longer.stages.push(stage);
        longer
    };
    let again = stages.stages.last().map(|last| Stage { until: 1.0, ..last.clone() });
    let alone = (0..count).map(|model| {
        let units = (0..count).map(|other| if other == model { mix.unit_count() } else { 0 });
        Stage { units: units.collect(), until: 1.0 }
    });
    again.into_iter().chain(alone).map(with).collect()
}

#[cfg(test)]
mod tests {
    use super::super::schedule::tests::mix;
    use super::*;

    fn found_us(mix: &Mix, strategy: Strategy, changes: usize) -> f64 {
        let mut search = RegulationSearch::new(mix, strategy, 1);
        for _ in 0..changes {
            search.advance();
        }
        let (stages, schedule, makespan) = search.finalists().next().unwrap();
        assert_eq!(stages.schedule(mix), *schedule);
        schedule.check(mix).unwrap();
        assert_eq!(schedule.timeline(mix).makespan, makespan);
        makespan.us()
    }

    #[test]
    fn models_that_gain_from_all_units_fill_the_device() {
        // 480 us of work for 8 units: 60 us at best, whoever has which share when.
        let mix = mix(&[(&[10.0; 24], 8), (&[20.0; 8], 8), (&[10.0; 8], 8)], 8);
        for strategy in [Strategy::CoordinateDescent, Strategy::Descents] {
            let found = found_us(&mix, strategy, 200);
            assert!(found < 60.0 * 1.05, "{strategy:?}: {found}");
        }
    }

    #[test]
    fn models_that_gain_from_few_units_have_few() {
        // Two that gain from two units each, one that gains from all: beside each other, 100 us with four left for the large.
        let mix = mix(&[(&[20.0; 10], 2), (&[20.0; 10], 2), (&[40.0; 10], 8)], 8);
        let found = found_us(&mix, Strategy::Descents, 200);
        assert!(found <= 100.0 + 1e-6, "{found}");
        let in_turns = Stages::in_turns(&mix).schedule(&mix).timeline(&mix).makespan.us();
        assert_eq!(in_turns, 250.0);
    }

    #[test]
    fn descents_find_what_one_descent_finds_or_better_and_the_same_each_time() {
        let mix = mix(
            &[(&[7.0; 31], 5), (&[50.0, 3.0, 3.0, 80.0], 12), (&[9.0; 9], 3), (&[400.0], 16)],
            16,
        );
        let one = found_us(&mix, Strategy::CoordinateDescent, 1000);
        let many = found_us(&mix, Strategy::Descents, 1000);
        assert!(many <= one, "{many} {one}");
        assert_eq!(many, found_us(&mix, Strategy::Descents, 1000));
    }

    #[test]
    fn a_descent_ends_and_finalists_are_sorted_and_different() {
        let mix = mix(&[(&[7.0; 31], 5), (&[9.0; 9], 3)], 8);
        let mut search = RegulationSearch::new(&mix, Strategy::CoordinateDescent, 1);
        while !search.is_done() {
            search.advance();
            assert!(search.evaluated() < 100_000);
        }
        let found: Vec<(&MixSchedule, Span)> =
            search.finalists().map(|(_, schedule, makespan)| (schedule, makespan)).collect();
        assert!(found.len() > 1 && found.len() <= MAX_FINALISTS);
        assert!(found.windows(2).all(|pair| pair[0].1 <= pair[1].1 && pair[0].0 != pair[1].0));
    }
}
