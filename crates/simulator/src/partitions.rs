//! The partitions of the device: what is ready on them, which are active, and that units are never given away twice.

use weft_scheduler::{ModelId, PartitionId, Time, UnitMask};

use crate::violation::Violation;

struct Partition {
    id: PartitionId,
    units: UnitMask,
    is_active: bool,
    /// How many run or are paused.
    launches: u32,
    ready: Vec<ModelId>,
    /// When the last of its preparations ends.
    prepared_at: Time,
}

/// All partitions that were prepared and not discarded.
pub(crate) struct Partitions {
    device: UnitMask,
    /// How many launches a partition may have: one that runs, and where the device can interrupt, one that is paused.
    most_launches: u32,
    /// Units of active partitions.
    taken: UnitMask,
    /// By id: there are few, and they come and go.
    partitions: Vec<Partition>,
}

impl Partitions {
    /// None yet, on a device of so many units, where a launch can interrupt another or cannot.
    pub(crate) fn new(units: u32, can_interrupt: bool) -> Self {
        Self {
            device: UnitMask::range(0, units),
            most_launches: 1 + u32::from(can_interrupt),
            taken: UnitMask::EMPTY,
            partitions: Vec::new(),
        }
    }

    /// A partition is about to be prepared, which would end at an instant; says when it does, after its preparations before that.
    pub(crate) fn prepare(
        &mut self,
        id: PartitionId,
        units: UnitMask,
        until: Time,
    ) -> Result<Time, Violation> {
        if units.is_empty() {
            return Err(Violation::NoUnits(id));
        }
        if !units.without(self.device).is_empty() {
            return Err(Violation::UnitsBeyondDevice(id));
        }
        match self.partitions.binary_search_by_key(&id, |partition| partition.id) {
            Ok(place) if self.partitions[place].units != units => Err(Violation::UnitsChanged(id)),
            Ok(place) => {
                let partition = &mut self.partitions[place];
                partition.prepared_at = partition.prepared_at.max(until);
                Ok(partition.prepared_at)
            }
            Err(place) => {
                let (is_active, launches, ready) = (false, 0, Vec::new());
                let partition =
                    Partition { id, units, is_active, launches, ready, prepared_at: until };
                self.partitions.insert(place, partition);
                Ok(until)
            }
        }
    }

    /// Models can run on a partition from now on; false where it was discarded meanwhile.
    pub(crate) fn make_ready(&mut self, id: PartitionId, models: &[ModelId]) -> bool {
        let Ok(partition) = self.get(id) else { return false };
        partition.ready.extend(models);
        partition.ready.sort_unstable();
        partition.ready.dedup();
        true
    }

    /// A partition takes its units, which are given back.
    pub(crate) fn activate(&mut self, id: PartitionId) -> Result<UnitMask, Violation> {
        let taken = self.taken;
        let partition = self.idle(id)?;
        if !partition.units.is_disjoint(taken) {
            return Err(Violation::UnitsOversubscribed(id));
        }
        partition.is_active = true;
        let units = partition.units;
        self.taken = taken.union(units);
        Ok(units)
    }

    /// A partition gives its units back.
    pub(crate) fn deactivate(&mut self, id: PartitionId) -> Result<UnitMask, Violation> {
        let partition = self.active(id)?;
        if partition.launches > 0 {
            return Err(Violation::PartitionBusy(id));
        }
        partition.is_active = false;
        let units = partition.units;
        self.taken = self.taken.without(units);
        Ok(units)
    }

    /// A partition is needed no more.
    pub(crate) fn discard(&mut self, id: PartitionId) -> Result<(), Violation> {
        self.idle(id)?;
        self.partitions.retain(|partition| partition.id != id);
        Ok(())
    }

    /// Models begin to run together on a partition, whose units are given back.
    pub(crate) fn occupy(
        &mut self,
        id: PartitionId,
        models: &[ModelId],
    ) -> Result<UnitMask, Violation> {
        let most = self.most_launches;
        let partition = self.active(id)?;
        let is_ready = |model: &ModelId| partition.ready.binary_search(model).is_ok();
        if let Some(&model) = models.iter().find(|model| !is_ready(model)) {
            return Err(Violation::ModelNotReady { partition: id, model });
        }
        if partition.launches == most {
            return Err(Violation::PartitionBusy(id));
        }
        partition.launches += 1;
        Ok(partition.units)
    }

    /// What ran on a partition has ended.
    pub(crate) fn release(&mut self, id: PartitionId) {
        let partition = self.get(id).expect("a busy partition is active, and kept");
        partition.launches -= 1;
    }

    fn get(&mut self, id: PartitionId) -> Result<&mut Partition, Violation> {
        let place = self.partitions.binary_search_by_key(&id, |partition| partition.id);
        match place {
            Ok(place) => Ok(&mut self.partitions[place]),
            Err(_) => Err(Violation::UnknownPartition(id)),
        }
    }

    fn idle(&mut self, id: PartitionId) -> Result<&mut Partition, Violation> {
        let partition = self.get(id)?;
        if partition.is_active { Err(Violation::PartitionActive(id)) } else { Ok(partition) }
    }

    fn active(&mut self, id: PartitionId) -> Result<&mut Partition, Violation> {
        let partition = self.get(id)?;
        if partition.is_active { Ok(partition) } else { Err(Violation::PartitionNotActive(id)) }
    }
}

#[cfg(test)]
mod tests {
    use weft_scheduler::Span;

    use super::*;

    const ONE: PartitionId = PartitionId(7);
    const OTHER: PartitionId = PartitionId(3);
    const MODEL: ModelId = ModelId(0);

    fn prepared() -> Partitions {
        let mut partitions = Partitions::new(4, false);
        partitions.prepare(ONE, UnitMask::range(0, 3), Time::START).unwrap();
        partitions.prepare(OTHER, UnitMask::range(2, 2), Time::START).unwrap();
        assert!(partitions.make_ready(ONE, &[MODEL]));
        partitions
    }

    #[test]
    fn units_have_one_owner_at_a_time() {
        let mut partitions = prepared();
        assert_eq!(partitions.activate(ONE), Ok(UnitMask::range(0, 3)));
        assert_eq!(partitions.activate(OTHER), Err(Violation::UnitsOversubscribed(OTHER)));
        assert_eq!(partitions.activate(ONE), Err(Violation::PartitionActive(ONE)));
        partitions.deactivate(ONE).unwrap();
        assert_eq!(partitions.activate(OTHER), Ok(UnitMask::range(2, 2)));
        assert_eq!(partitions.discard(OTHER), Err(Violation::PartitionActive(OTHER)));
        partitions.discard(ONE).unwrap();
        assert_eq!(partitions.activate(ONE), Err(Violation::UnknownPartition(ONE)));
        assert!(!partitions.make_ready(ONE, &[MODEL]));
    }

    #[test]
    fn a_partition_keeps_its_units_and_the_device_its_size() {
        let mut partitions = prepared();
        let mut prepare = |id, units| partitions.prepare(id, units, Time::START);
        let beyond = prepare(PartitionId(9), UnitMask::range(3, 2));
        assert_eq!(beyond, Err(Violation::UnitsBeyondDevice(PartitionId(9))));
        let nothing = prepare(PartitionId(9), UnitMask::EMPTY);
        assert_eq!(nothing, Err(Violation::NoUnits(PartitionId(9))));
        let changed = prepare(ONE, UnitMask::range(0, 2));
        assert_eq!(changed, Err(Violation::UnitsChanged(ONE)));
        let later = Time::START + Span::from_us(1.0);
        let again = |partitions: &mut Partitions, until| {
            partitions.prepare(ONE, UnitMask::range(0, 3), until)
        };
        assert_eq!(again(&mut partitions, later), Ok(later));
        assert_eq!(again(&mut partitions, Time::START), Ok(later), "one after another");
    }

    #[test]
    fn only_what_is_ready_runs_one_at_a_time_on_what_is_active() {
        let mut partitions = prepared();
        assert_eq!(partitions.occupy(ONE, &[MODEL]), Err(Violation::PartitionNotActive(ONE)));
        partitions.activate(ONE).unwrap();
        let unready = Violation::ModelNotReady { partition: ONE, model: ModelId(5) };
        assert_eq!(partitions.occupy(ONE, &[MODEL, ModelId(5)]), Err(unready));
        assert_eq!(partitions.occupy(ONE, &[MODEL]), Ok(UnitMask::range(0, 3)));
        assert_eq!(partitions.occupy(ONE, &[MODEL]), Err(Violation::PartitionBusy(ONE)));
        assert_eq!(partitions.deactivate(ONE), Err(Violation::PartitionBusy(ONE)));
        partitions.release(ONE);
        assert!(partitions.occupy(ONE, &[MODEL]).is_ok());
    }

    #[test]
    fn where_the_device_can_interrupt_one_more_runs() {
        let mut partitions = Partitions { most_launches: 2, ..prepared() };
        partitions.activate(ONE).unwrap();
        assert!(
            partitions.occupy(ONE, &[MODEL]).is_ok() && partitions.occupy(ONE, &[MODEL]).is_ok()
        );
        assert_eq!(partitions.occupy(ONE, &[MODEL]), Err(Violation::PartitionBusy(ONE)));
        partitions.release(ONE);
        assert_eq!(partitions.deactivate(ONE), Err(Violation::PartitionBusy(ONE)));
        partitions.release(ONE);
        assert!(partitions.deactivate(ONE).is_ok());
    }
}
