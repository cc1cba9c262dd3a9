//! The search for a layout: even ones first, then whatever is near the best of them.

use std::collections::HashSet;

use crate::layout::Layout;
use crate::layout::rehearsal::Rehearsal;
use crate::served::ServedDevice;

/// Rehearsals of one search: what it takes, about two milliseconds each.
const MOST_REHEARSALS: usize = 80;

/// The load is raised by this factor at a time until even the best layout loses this share.
const LOAD_STEP: f64 = 1.3;
const TELLING_LOSS: f64 = 0.01;

/// A layout is made for no more than this: what would carry a far higher load may lose models for it that are rare or tight.
const MOST_LOAD: f64 = 2.0;

/// Layouts that lose so much more than the best are out of the race at a higher load.
const OUT_OF_RACE: f64 = 0.03;

/// What a layout is searched for; to be solved wherever there is time, as it takes a tenth of a second.
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
}

/// What came of a search.
#[derive(Clone, Debug, PartialEq)]
pub struct LayoutFound {
    /// The best layout that was found.
    pub layout: Layout,
    /// How many times the load it carries.
    pub room: f64,
    /// The share of requests that it loses under somewhat more than that load, and what the present one does.
    pub lost: f64,
    /// See `lost`; 1 where there is none.
    pub present_lost: f64,
}

impl LayoutTask {
    /// Searches. The same task has the same solution.
    pub fn solve(&self) -> LayoutFound {
        let rehearsal = Rehearsal::new(self);
        let mut search = Search { rehearsal: &rehearsal, load: 1.0, left: MOST_REHEARSALS };
        let (mut racers, room) = search.race(self.starters());
        let best = racers.swap_remove(0);
        let (layout, lost) = search.climb(best, self.device.units);
        let present_lost =
            self.present.as_ref().map_or(1.0, |present| rehearsal.lost(present, search.load, 1.0));
        LayoutFound { layout, room, lost, present_lost }
    }

    /// All even layouts, and the present one.
    fn starters(&self) -> Vec<Layout> {
        let units = self.device.units.max(1);
        let mut starters: Vec<Layout> = self.present.iter().cloned().collect();
        let counts = (1..=units).filter(|&count| count <= 8 || count % 4 == 0 || count == units);
        starters.extend(counts.map(|count| Layout::even(units, count)));
        let mut seen = HashSet::new();
        starters.retain(|layout| seen.insert(layout.clone()));
        starters
    }
}

struct Search<'a> {
    rehearsal: &'a Rehearsal<'a>,
    load: f64,
    left: usize,
}

impl Search<'_> {
    fn lost(&mut self, layout: &Layout, most: f64) -> f64 {
        self.left = self.left.saturating_sub(1);
        self.rehearsal.lost(layout, self.load, most)
    }

    /// Raises the load until it tells layouts apart. What is still in the race then, the best first, and the most load that
    /// the best carried.
    fn race(&mut self, starters: Vec<Layout>) -> (Vec<(Layout, f64)>, f64) {
        let mut racers: Vec<(Layout, f64)> =
            starters.into_iter().map(|layout| (layout, 0.0)).collect();
        let mut room = 0.0;
        loop {
            let mut best = f64::INFINITY;
            for (layout, lost) in &mut racers {
                *lost = self.lost(layout, best + OUT_OF_RACE);
                best = best.min(*lost);
            }
            racers.sort_by(|left, right| left.1.total_cmp(&right.1));
            racers.retain(|(_, lost)| *lost <= best + OUT_OF_RACE);
            if best > TELLING_LOSS || self.load >= MOST_LOAD {
                return (racers, room);
            }
            room = self.load;
            self.load *= LOAD_STEP;
        }
    }

    /// Goes from layout to better layout next to it.
    fn climb(&mut self, start: (Layout, f64), units: u32) -> (Layout, f64) {
        let (mut best, mut best_lost) = start;
        let mut seen = HashSet::from([best.clone()]);
        loop {
            let mut is_better = false;
            for layout in neighbours(&best, units) {
                if self.left == 0 || best_lost == 0.0 {
                    return (best, best_lost);
                }
                if !seen.insert(layout.clone()) {
                    continue;
                }
                let lost = self.lost(&layout, best_lost);
                if lost < best_lost {
                    (best, best_lost, is_better) = (layout, lost, true);
                    break;
                }
            }
            if !is_better {
                return (best, best_lost);
            }
        }
    }
}

/// Layouts with a partition divided, two joined, or a unit moved from one to another.
fn neighbours(layout: &Layout, units: u32) -> Vec<Layout> {
    let sizes = layout.sizes();
    debug_assert_eq!(sizes.iter().sum::<u32>(), units, "a layout has all units");
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
