//! Units of a GPU: how many SMs each has, and which of them give a wanted number.

use weft_device::{DeviceError, UnitSet};

/// The sizes of a GPU's units, in SMs. All are equal but the last, which has what is left over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnitLayout {
    sm_counts: Vec<u32>,
}

impl UnitLayout {
    /// Units of these sizes.
    pub fn new(sm_counts: Vec<u32>) -> Self {
        Self { sm_counts }
    }

    /// How many units there are.
    pub fn len(&self) -> usize {
        self.sm_counts.len()
    }

    /// True where there is none.
    pub fn is_empty(&self) -> bool {
        self.sm_counts.is_empty()
    }

    /// All units.
    pub fn all(&self) -> UnitSet {
        UnitSet::first(self.len())
    }

    /// The size of each unit.
    pub fn sm_counts(&self) -> &[u32] {
        &self.sm_counts
    }

    /// The SMs of all units together.
    pub fn total_sms(&self) -> u32 {
        self.sm_counts.iter().sum()
    }

    /// The SMs of a set of units that [`UnitLayout::check`] accepts.
    pub fn sm_count_of(&self, units: &UnitSet) -> u32 {
        units.iter().map(|unit| self.sm_counts[unit]).sum()
    }

    /// Disjoint sets of units with exactly `count` SMs, as many as equal units give.
    pub fn disjoint_sets(&self, count: u32) -> Vec<UnitSet> {
        let Some(&each) = self.sm_counts.first().filter(|&&each| each > 0) else {
            return Vec::new();
        };
        let equal: Vec<usize> =
            (0..self.len()).filter(|&unit| self.sm_counts[unit] == each).collect();
        let units = match count.is_multiple_of(each) {
            true => (count / each) as usize,
            false => 0,
        };
        match (units, self.sm_counts.iter().position(|&sms| sms == count)) {
            (0, None) => Vec::new(),
            (0, Some(odd)) => vec![[odd].into_iter().collect()],
            _ => equal.chunks_exact(units).map(|set| set.iter().copied().collect()).collect(),
        }
    }

    /// Refuses a set that is empty or has a unit that does not exist.
    pub fn check(&self, units: &UnitSet) -> Result<(), DeviceError> {
        if units.is_empty() {
            return Err(DeviceError::NoUnits);
        }
        match units.iter().find(|&unit| unit >= self.len()) {
            None => Ok(()),
            Some(unit) => Err(DeviceError::NoSuchUnit { unit, available: self.all().to_string() }),
        }
    }

    /// The units with at least `count` SMs, and at least one unit: as few SMs as possible, then as few units, then
    /// the first ones. `None` where all units together have fewer.
    pub fn units_for_sms(&self, count: u32) -> Option<UnitSet> {
        let total = self.total_sms() as usize;
        // For each number of SMs, the fewest units that have exactly that many. A unit replaces none of the units
        // before it unless fewer are needed, so that the first ones win.
        let mut best: Vec<Option<Vec<usize>>> = vec![None; total + 1];
        best[0] = Some(Vec::new());
        for (unit, &sms) in self.sm_counts.iter().enumerate() {
            for sum in (sms as usize..=total).rev() {
                let Some(rest) = &best[sum - sms as usize] else { continue };
                if best[sum].as_ref().is_none_or(|known| rest.len() + 1 < known.len()) {
                    let mut units = rest.clone();
                    units.push(unit);
                    best[sum] = Some(units);
                }
            }
        }
        let wanted = count.max(1) as usize;
        let fewest = best.into_iter().skip(wanted).flatten().next()?;
        Some(fewest.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn h200() -> UnitLayout {
        let mut sm_counts = vec![8; 15];
        sm_counts.push(12);
        UnitLayout::new(sm_counts)
    }

    #[test]
    fn units_for_a_number_of_sms_waste_as_few_as_they_can() {
        let layout = h200();
        assert_eq!(layout.total_sms(), 132);
        for (sms, units) in [
            (0, "0"),
            (1, "0"),
            (8, "0"),
            (9, "15"),
            (12, "15"),
            (13, "0,1"),
            (20, "0,15"),
            (24, "0-2"),
        ] {
            assert_eq!(layout.units_for_sms(sms), Some(units.parse().unwrap()), "{sms} SMs");
        }
        assert_eq!(layout.units_for_sms(132), Some(layout.all()));
        assert_eq!(layout.units_for_sms(133), None);
    }

    #[test]
    fn a_set_is_refused_where_a_unit_is_missing() {
        let layout = h200();
        assert!(layout.check(&layout.all()).is_ok());
        assert!(matches!(layout.check(&UnitSet::default()), Err(DeviceError::NoUnits)));
        let beyond = UnitSet::first(17);
        assert!(matches!(layout.check(&beyond), Err(DeviceError::NoSuchUnit { unit: 16, .. })));
    }

    proptest! {
        #[test]
        fn no_other_set_of_units_fits_better(
            sm_counts in prop::collection::vec(1u32..9, 1..9),
            wanted in 0u32..40,
        ) {
            let layout = UnitLayout::new(sm_counts);
            let every_set = (1u32..1 << layout.len()).map(|bits| {
                (0..layout.len()).filter(|unit| bits >> unit & 1 == 1).collect::<UnitSet>()
            });
            let fitting = every_set.filter(|units| layout.sm_count_of(units) >= wanted.max(1));
            let best = fitting.map(|units| (layout.sm_count_of(&units), units.len())).min();
            let chosen = layout.units_for_sms(wanted);
            prop_assert_eq!(chosen.map(|units| (layout.sm_count_of(&units), units.len())), best);
        }
    }
}
