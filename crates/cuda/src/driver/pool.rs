//! Partitions that are made ahead of use, and handed out again and again.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use weft_device::UnitSet;

use super::error::CudaError;
use super::partition::{PartitionContext, UnitTable};
use super::stream::StreamPriority;

/// How many partitions are kept at once, in use or ready for it.
pub const MAX_PARTITIONS_KEPT: usize = 256;

/// The partitions of one GPU.
pub struct PartitionPool {
    table: UnitTable,
    kept: Mutex<Kept<PartitionContext>>,
}

impl PartitionPool {
    /// A pool without partitions yet.
    pub fn new(table: UnitTable) -> Self {
        Self { table, kept: Mutex::new(Kept::new(MAX_PARTITIONS_KEPT)) }
    }

    /// The units that partitions are made of.
    pub fn table(&self) -> &UnitTable {
        &self.table
    }

    /// The partition over a set of units, made unless it is there already. All who ask for the same units get the
    /// same partition, and so the same stream.
    pub fn get(&self, units: &UnitSet) -> Result<Arc<PartitionContext>, CudaError> {
        self.get_at(units, StreamPriority::Foreground)
    }

    /// The same, with work of a priority.
    pub fn get_at(
        &self,
        units: &UnitSet,
        priority: StreamPriority,
    ) -> Result<Arc<PartitionContext>, CudaError> {
        let place = (units.clone(), priority);
        if let Some(partition) = self.kept().get(&place) {
            return Ok(partition);
        }
        // Making one takes long, and others go on getting theirs meanwhile.
        let made = self.table.partition_at(units, priority)?;
        self.kept().put(&place, made)
    }

    /// Makes partitions ahead of their use.
    pub fn prepare(&self, sets: &[UnitSet]) -> Result<(), CudaError> {
        sets.iter().try_for_each(|units| self.get(units).map(drop))
    }

    fn kept(&self) -> MutexGuard<'_, Kept<PartitionContext>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Units, and whose work goes first on them.
type Place = (UnitSet, StreamPriority);

/// What is kept by its place, at most `limit` of it; what nobody holds makes room, the longest unused first.
struct Kept<T> {
    limit: usize,
    clock: u64,
    entries: HashMap<Place, (u64, Arc<T>)>,
}

impl<T> Kept<T> {
    fn new(limit: usize) -> Self {
        Self { limit, clock: 0, entries: HashMap::new() }
    }

    fn get(&mut self, place: &Place) -> Option<Arc<T>> {
        self.clock += 1;
        let (used, entry) = self.entries.get_mut(place)?;
        *used = self.clock;
        Some(entry.clone())
    }

    /// Keeps what was made for the place, unless something is kept for it already; what is then kept.
    fn put(&mut self, place: &Place, made: Arc<T>) -> Result<Arc<T>, CudaError> {
        if let Some(kept) = self.get(place) {
            return Ok(kept);
        }
        if self.entries.len() >= self.limit {
            self.make_room()?;
        }
        self.entries.insert(place.clone(), (self.clock, made.clone()));
        Ok(made)
    }

    fn make_room(&mut self) -> Result<(), CudaError> {
        let unused = self.entries.iter().filter(|(_, (_, entry))| Arc::strong_count(entry) == 1);
        let oldest = unused.min_by_key(|(_, (used, _))| *used).map(|(place, _)| place.clone());
        let oldest = oldest.ok_or(CudaError::TooManyPartitions { limit: self.limit })?;
        self.entries.remove(&oldest);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(unit: usize) -> Place {
        ([unit].into_iter().collect(), StreamPriority::Foreground)
    }

    fn get(kept: &mut Kept<usize>, unit: usize) -> Result<Arc<usize>, CudaError> {
        match kept.get(&set(unit)) {
            Some(known) => Ok(known),
            None => kept.put(&set(unit), Arc::new(unit)),
        }
    }

    #[test]
    fn the_same_units_are_the_same_partition() {
        let mut kept = Kept::new(4);
        let first = get(&mut kept, 1).unwrap();
        assert!(Arc::ptr_eq(&first, &get(&mut kept, 1).unwrap()));
        let made_by_two = kept.put(&set(1), Arc::new(1)).unwrap();
        assert!(Arc::ptr_eq(&first, &made_by_two));
    }

    #[test]
    fn the_longest_unused_makes_room_and_what_is_held_stays() {
        let mut kept = Kept::new(2);
        let held = get(&mut kept, 0).unwrap();
        drop(get(&mut kept, 1).unwrap());
        drop(get(&mut kept, 2).unwrap());
        assert!(kept.entries.contains_key(&set(0)) && !kept.entries.contains_key(&set(1)));
        drop(held);
        drop(get(&mut kept, 2).unwrap());
        drop(get(&mut kept, 3).unwrap());
        assert!(!kept.entries.contains_key(&set(0)), "unit 2 was used after unit 0 was");
    }

    #[test]
    fn past_the_limit_stands_a_refusal() {
        let mut kept = Kept::new(2);
        let held = [get(&mut kept, 0).unwrap(), get(&mut kept, 1).unwrap()];
        let refused = get(&mut kept, 2).unwrap_err();
        assert!(matches!(refused, CudaError::TooManyPartitions { limit: 2 }));
        drop(held);
        assert!(get(&mut kept, 2).is_ok());
    }
}
