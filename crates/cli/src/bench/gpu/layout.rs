//! Which units the partitions of a table have.

use anyhow::{Context, Result};
use weft_cuda::UnitLayout;
use weft_device::UnitSet;

/// Disjoint sets of units with at least so many SMs each, as few as possible.
pub(super) fn disjoint(layout: &UnitLayout, sm_counts: &[u32]) -> Result<Vec<UnitSet>> {
    let mut free: Vec<usize> = layout.all().iter().collect();
    sm_counts
        .iter()
        .map(|&wanted| {
            let sizes = free.iter().map(|&unit| layout.sm_counts()[unit]).collect();
            let chosen = UnitLayout::new(sizes).units_for_sms(wanted).with_context(|| {
                format!(
                    "partitions of {sm_counts:?} SMs are asked for, the GPU has {} in units of {:?}",
                    layout.total_sms(),
                    layout.sm_counts()
                )
            })?;
            let units: UnitSet = chosen.iter().map(|place| free[place]).collect();
            free.retain(|unit| !units.as_slice().contains(unit));
            Ok(units)
        })
        .collect()
}

/// Each unit as a partition of its own, at most so many.
pub(super) fn singles(layout: &UnitLayout, most: usize) -> Vec<UnitSet> {
    layout.all().iter().take(most).map(|unit| [unit].into_iter().collect()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn h200() -> UnitLayout {
        UnitLayout::new([vec![8; 15], vec![12]].concat())
    }

    #[test]
    fn partitions_share_no_unit_and_have_the_sms_that_are_asked_for() {
        let layout = h200();
        let sets = disjoint(&layout, &[24, 80]).unwrap();
        assert_eq!(sets, ["0-2".parse().unwrap(), "3-12".parse().unwrap()]);
        let sets = disjoint(&layout, &[12, 12, 100]).unwrap();
        let sizes: Vec<u32> = sets.iter().map(|units| layout.sm_count_of(units)).collect();
        assert_eq!(sizes, [12, 16, 104]);
    }

    #[test]
    fn too_many_sms_are_refused() {
        let error = disjoint(&h200(), &[24, 120]).unwrap_err().to_string();
        assert!(error.contains("132"), "{error}");
    }

    #[test]
    fn every_unit_is_a_partition() {
        assert_eq!(singles(&h200(), 16).len(), 16);
        assert_eq!(singles(&h200(), 2), ["0".parse().unwrap(), "1".parse().unwrap()]);
    }
}
