//! Who had which units when, and what ran there.

use std::collections::{BTreeMap, HashMap};

use weft_scheduler::{ModelId, PartitionId, Span, Time, UnitMask};

/// The most stays that are kept; later ones are not drawn.
const MOST_STAYS: usize = 5_000;

/// A partition that had its units for a while.
pub(super) struct Stay {
    pub(super) partition: PartitionId,
    pub(super) units: UnitMask,
    pub(super) from: Time,
    pub(super) until: Time,
    /// How long each model ran.
    pub(super) busy: BTreeMap<ModelId, Span>,
}

/// The stays of a run, by their beginning.
#[derive(Default)]
pub(super) struct Layout {
    pub(super) stays: Vec<Stay>,
    active: HashMap<PartitionId, usize>,
}

impl Layout {
    pub(super) fn activate(&mut self, partition: PartitionId, units: UnitMask, now: Time) {
        if self.stays.len() < MOST_STAYS {
            self.active.insert(partition, self.stays.len());
            let busy = BTreeMap::new();
            self.stays.push(Stay { partition, units, from: now, until: Time::NEVER, busy });
        }
    }

    pub(super) fn deactivate(&mut self, partition: PartitionId, now: Time) {
        if let Some(at) = self.active.remove(&partition) {
            self.stays[at].until = now;
        }
    }

    pub(super) fn run(&mut self, partition: PartitionId, model: ModelId, length: Span) {
        if let Some(&at) = self.active.get(&partition) {
            *self.stays[at].busy.entry(model).or_default() += length;
        }
    }

    /// Ends what still stays.
    pub(super) fn finish(&mut self, now: Time) {
        for (_, at) in self.active.drain() {
            self.stays[at].until = now;
        }
    }
}

/// The runs of neighbouring units in a set: each with its first and the one past its last.
pub(super) fn runs(units: UnitMask) -> Vec<(u32, u32)> {
    let mut runs: Vec<(u32, u32)> = Vec::new();
    for unit in units.iter() {
        match runs.last_mut() {
            Some((_, end)) if *end == unit => *end += 1,
            _ => runs.push((unit, unit + 1)),
        }
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stays_last_from_activation_to_deactivation_or_the_end() {
        let at = |seconds: f64| Time::START + Span::from_s(seconds);
        let mut layout = Layout::default();
        layout.activate(PartitionId(1), UnitMask::range(0, 2), at(0.0));
        layout.activate(PartitionId(2), UnitMask::range(2, 2), at(0.0));
        layout.run(PartitionId(1), ModelId(7), Span::from_s(0.5));
        layout.run(PartitionId(1), ModelId(7), Span::from_s(0.25));
        layout.deactivate(PartitionId(1), at(3.0));
        layout.activate(PartitionId(1), UnitMask::range(0, 2), at(4.0));
        layout.finish(at(9.0));
        let ends: Vec<Time> = layout.stays.iter().map(|stay| stay.until).collect();
        assert_eq!(ends, [at(3.0), at(9.0), at(9.0)]);
        assert_eq!(layout.stays[0].busy[&ModelId(7)], Span::from_s(0.75));
        assert!(layout.stays[2].busy.is_empty());
    }

    #[test]
    fn units_are_drawn_in_runs() {
        assert_eq!(runs([0, 1, 2, 5, 9, 10].into_iter().collect()), [(0, 3), (5, 6), (9, 11)]);
        assert!(runs(UnitMask::EMPTY).is_empty());
    }
}
