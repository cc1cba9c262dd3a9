//! The search for a layout: even ones first, then whatever is near the best of them.

use std::collections::HashSet;

use crate::layout::Layout;
use crate::layout::RoundLoad;
use crate::layout::merged::merged;
use crate::layout::rehearsal::Rehearsal;
use crate::plan::{DeviceFacts, Effort, ModelDemand, plan_partitions};
use crate::served::ServedDevice;

/// Rehearsals of one search, a millisecond or two each.
const MOST_REHEARSALS: usize = 120;

/// The load is raised by this factor at a time until even the best layout loses this share.
const LOAD_STEP: f64 = 1.3;
const TELLING_LOSS: f64 = 0.01;

/// A layout is made for no more than this: what would carry a far higher load may lose models for it that are rare or tight.
const MOST_LOAD: f64 = 4.0;

/// How much more it counts what is lost now.
const WEIGHT_OF_NOW: f64 = 20.0;

/// Layouts that lose so much more than the best are out of the race at a higher load.
const OUT_OF_RACE: f64 = 0.03;

/// What a layout is searched for; to be solved wherever there is time: it takes a few
/// tenths of a second.
#[derive(Clone, Debug, PartialEq)]
pub struct LayoutTask {
    /// The device and its models.
    pub device: ServedDevice,
    /// Requests per second of each model.
    pub per_s: Vec<f64>,
    /// By model, how many times longer it takes than its profile says.
    pub corrections: Vec<f64>,
    /// By model, how far durations stray from what is predicted: their standard deviation, as a share.
    pub spreads: Vec<f64>,
    /// The layout that serves now.
    pub present: Option<Layout>,
    /// Which requests come in rounds, and how; each other model's come independently.
    pub rounds: Option<RoundLoad>,
}

/// What came of a search.
#[derive(Clone, Debug, PartialEq)]
pub struct LayoutFound {
    /// The best layout that was found.
    pub layout: Layout,
    /// How many times the load it carries, in steps, and not more than was tried; 0 where it does not carry the load.
    pub room: f64,
    /// What it loses.
    pub lost: Lost,
    /// What the present one loses; `None` where there is none.
    pub present_lost: Option<Lost>,
}

impl LayoutFound {
    /// Whether it carries the most load that is ever tried, and perhaps more.
    pub fn carries_all_tried(&self) -> bool {
        self.room * LOAD_STEP > MOST_LOAD
    }
}

/// What a layout loses, as shares of the requests: more than all where objectives do not hold.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Lost {
    /// Under the load as it is.
    pub now: f64,
    /// Under as much more as tells layouts apart.
    pub later: f64,
}

impl Lost {
    fn nothing() -> Self {
        Self { now: 0.0, later: 0.0 }
    }

    fn total(self) -> f64 {
        WEIGHT_OF_NOW * self.now + self.later
    }
}

impl LayoutTask {
    /// Searches. The same task has the same solution.
    pub fn solve(&self) -> LayoutFound {
        let rehearsal = Rehearsal::new(self);
        let mut search = Search { rehearsal: &rehearsal, load: 1.0, left: MOST_REHEARSALS };
        let racers = search.race(self.starters());
        let (layout, lost) = search.climb(racers);
        let room = search.room(&layout);
        let present = self.present.as_ref();
        let present_lost = present.map(|present| search.lost_on_the_way(present, f64::INFINITY));
        LayoutFound { layout, room, lost, present_lost }
    }

    /// The share of the requests that a layout does not answer in time in rehearsal, each counted once.
    pub fn late_share(&self, layout: &Layout) -> f64 {
        Rehearsal::new(self).late_share(layout, 1.0)
    }

    /// The present layout, even ones, and that of a partition plan. Of layouts that lose alike, the first is taken: the present
    /// one, or the one with the largest partitions, which answer first.
    fn starters(&self) -> Vec<Layout> {
        let units = self.device.units.max(1);
        let mut starters: Vec<Layout> = self.present.iter().cloned().collect();
        let counts = (1..=units).filter(|&count| count <= 8 || count % 4 == 0 || count == units);
        starters.extend(counts.map(|count| Layout::even(units, count)));
        starters.push(self.planned());
        let mut seen = HashSet::new();
        starters.retain(|layout| seen.insert(layout.clone()));
        starters
    }
}

impl LayoutTask {
    /// The sizes of a partition plan for this load, with what it leaves over as one partition more.
    fn planned(&self) -> Layout {
        let models = merged(&self.device, &self.per_s);
        let demands: Vec<ModelDemand<'_>> = models
            .iter()
            .map(|(lead, model)| ModelDemand {
                name: String::new(),
                profile: &model.profile,
                slowdown: self.corrections[lead.index()],
                slo: model.slo,
                rate_per_s: model.expected_per_s,
                weight: model.weight,
                max_batch: model.largest_batch(),
            })
            .collect();
        let ServedDevice { units, memory_bytes, .. } = self.device;
        let plan = plan_partitions(&demands, &DeviceFacts { units, memory_bytes }, Effort::Quick);
        let sizes = plan.partitions.iter().map(|partition| partition.units);
        Layout::new(sizes.chain([plan.best_effort_units]).collect())
    }
}

struct Search<'a> {
    rehearsal: &'a Rehearsal<'a>,
    load: f64,
    left: usize,
}

impl Search<'_> {
    fn lost(&mut self, layout: &Layout, load: f64, most: f64) -> f64 {
        self.left = self.left.saturating_sub(1);
        self.rehearsal.lost(layout, load, most)
    }

    /// What is lost now, and when there is as much more to do as tells layouts apart; all together, or more than `most`.
    fn lost_on_the_way(&mut self, layout: &Layout, most: f64) -> Lost {
        let now = self.lost(layout, 1.0, most / WEIGHT_OF_NOW);
        let left = most - now * WEIGHT_OF_NOW;
        let is_enough = self.load == 1.0 || left < 0.0;
        Lost { now, later: if is_enough { 0.0 } else { self.lost(layout, self.load, left) } }
    }

    /// Raises the load until it tells layouts apart. What is still in the race then, the best first.
    fn race(&mut self, starters: Vec<Layout>) -> Vec<Layout> {
        let mut racers: Vec<(f64, Layout)> =
            starters.into_iter().map(|layout| (0.0, layout)).collect();
        loop {
            let mut best = f64::INFINITY;
            for (lost, layout) in &mut racers {
                *lost = self.lost(layout, self.load, best + OUT_OF_RACE);
                best = best.min(*lost);
            }
            racers.sort_by(|left, right| left.0.total_cmp(&right.0));
            racers.retain(|(lost, _)| *lost <= best + OUT_OF_RACE);
            if best > TELLING_LOSS || self.load * LOAD_STEP > MOST_LOAD {
                return racers.into_iter().map(|(_, layout)| layout).collect();
            }
            self.load *= LOAD_STEP;
        }
    }

    /// How many times the load a layout carries, of the loads of the race.
    fn room(&mut self, layout: &Layout) -> f64 {
        let loads = std::iter::successors(Some(1.0), |load| Some(load * LOAD_STEP));
        let loads: Vec<f64> = loads.take_while(|&load| load <= self.load).collect();
        let mut highest_first = loads.into_iter().rev();
        let carried =
            highest_first.find(|&load| self.lost(layout, load, TELLING_LOSS) <= TELLING_LOSS);
        carried.unwrap_or(0.0)
    }

    /// Goes from the best of some layouts to better ones next to it.
    fn climb(&mut self, racers: Vec<Layout>) -> (Layout, Lost) {
        let mut seen = HashSet::new();
        let mut best = (Layout::new(Vec::new()), Lost::nothing());
        let mut least = f64::INFINITY;
        for layout in racers {
            let lost = self.lost_on_the_way(&layout, least);
            if lost.total() < least {
                (best, least) = ((layout.clone(), lost), lost.total());
            }
            seen.insert(layout);
        }
        loop {
            let better = neighbours(&best.0).into_iter().find_map(|layout| {
                let is_new = self.left > 0 && least > 0.0 && seen.insert(layout.clone());
                let lost = is_new.then(|| self.lost_on_the_way(&layout, least))?;
                (lost.total() < least).then_some((layout, lost))
            });
            let Some(better) = better else { return best };
            least = better.1.total();
            best = better;
        }
    }
}

/// Layouts with a partition divided, two joined, or a unit moved from one to another.
fn neighbours(layout: &Layout) -> Vec<Layout> {
    let sizes = layout.sizes();
    let mut found = Vec::new();
    let mut add = |without: &[usize], with: &[u32]| {
        let kept = (0..sizes.len()).filter(|place| !without.contains(place));
        let kept = kept.map(|place| sizes[place]);
        found.push(Layout::new(kept.chain(with.iter().copied()).collect()));
    };
    for (place, &size) in sizes.iter().enumerate() {
        if place > 0 && sizes[place - 1] == size {
            continue;
        }
        for part in 1..=size / 2 {
            add(&[place], &[part, size - part]);
        }
        for (other, &smaller) in sizes.iter().enumerate().skip(place + 1) {
            if other > place + 1 && sizes[other - 1] == smaller {
                continue;
            }
            add(&[place, other], &[size + smaller]);
            add(&[place, other], &[size + 1, smaller - 1]);
            if size > smaller + 1 {
                add(&[place, other], &[size - 1, smaller + 1]);
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_have_the_same_units_and_differ_from_each_other() {
        for sizes in [vec![16], vec![8, 4, 4], vec![3, 2, 2, 1], vec![1; 6]] {
            let layout = Layout::new(sizes);
            let units: u32 = layout.sizes().iter().sum();
            let all = neighbours(&layout);
            assert!(all.iter().all(|other| other.sizes().iter().sum::<u32>() == units));
            assert!(!all.contains(&layout), "{all:?}");
            assert!(all.len() >= layout.sizes().len().min(3) - 1);
        }
    }
}
