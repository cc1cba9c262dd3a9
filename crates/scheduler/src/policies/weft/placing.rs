//! Which units the partitions of a layout get: where possible those that they have, or had before.

use crate::policies::weft::pool::Pool;
use crate::unit_mask::UnitMask;

/// Units for partitions of these sizes, the largest first: those of an active partition of the same size, else those of
/// another that was prepared before, else the first that are free.
pub(super) fn place(
    sizes: &[u32],
    active: &[UnitMask],
    pool: &Pool,
    device_units: u32,
) -> Vec<UnitMask> {
    let mut free = UnitMask::range(0, device_units);
    let place = |&size: &u32| {
        let fits = |units: &&UnitMask| units.len() == size && units.without(free).is_empty();
        let going_on = active.iter().find(fits).copied();
        let known = going_on.or_else(|| pool.within(free, size).max());
        let units = known.unwrap_or_else(|| free.iter().take(size as usize).collect());
        free = free.without(units);
        units
    };
    sizes.iter().map(place).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::ModelId;

    #[test]
    fn partitions_stay_where_they_are_and_others_come_back_to_where_they_were() {
        let mut pool = Pool::default();
        let first = place(&[8, 4, 4], &[], &pool, 16);
        assert_eq!(first, [UnitMask::range(0, 8), UnitMask::range(8, 4), UnitMask::range(12, 4)]);
        first.iter().for_each(|&units| drop(pool.want(units, &[ModelId(0)])));
        let second = place(&[4, 4, 4, 4], &first, &pool, 16);
        assert_eq!(second[..2], first[1..]);
        assert_eq!(second.iter().fold(UnitMask::EMPTY, |all, &units| all.union(units)).len(), 16);
        let third = place(&[8, 4, 4], &second, &pool, 16);
        assert!(third.contains(&first[0]), "{third:?}");
        assert!(third.iter().all(|units| first.contains(units)));
    }
}
