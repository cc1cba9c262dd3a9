//! A plan as several requests share it: every launch computes all entries, each with memory and weights of its own.

use std::fmt::Write;
use std::sync::Arc;

use xxhash_rust::xxh3::xxh3_128;

use super::ExecutionPlan;
use super::place::{Bases, Place};
use super::steps::{Operand, PlannedLaunch, Stage};
use crate::launch::DeviceWeights;

/// What every parameter of a kernel for entries lies at a multiple of.
const PARAMETER_ALIGNMENT: usize = 16;

/// Marks a step from one entry's address to the next, in place of one from memory to memory.
const IS_INDIRECT: u64 = 1;

const ADDRESS_BYTES: usize = size_of::<u64>();

impl ExecutionPlan {
    /// Why its launches cannot compute several requests; `None` where they can.
    pub(crate) fn bar_to_entries(&self) -> Option<&'static str> {
        let is_host = |stage: &Stage| matches!(stage, Stage::Host(_));
        let calls_library = |stage: &Stage| match stage {
            Stage::Device(steps) => steps.iter().any(|step| step.library_call.is_some()),
            Stage::Host(_) => false,
        };
        let operands =
            || self.stages.iter().flat_map(Stage::launches).flat_map(|launch| &launch.operands);
        if self.stages.iter().any(is_host) {
            Some("the host computes some of its steps")
        } else if self.stages.iter().any(calls_library) {
            Some("a library computes some of its steps")
        } else if operands().any(|operand| matches!(operand, Operand::TensorMap(..))) {
            Some("some of its kernels describe tensors to the copy engine")
        } else {
            None
        }
    }

    /// The weights that its launches are given, in order, one as often as it is given.
    pub(crate) fn given_weights(&self) -> Vec<Arc<DeviceWeights>> {
        let weights = |place: &Place| match place {
            Place::Weights(weights) => Some(weights.clone()),
            _ => None,
        };
        self.stages.iter().flat_map(Stage::places).filter_map(weights).collect()
    }

    /// Equal for plans that differ in the content of their weights alone.
    pub(crate) fn structure(&self) -> u128 {
        let mut text = String::new();
        for PlannedLaunch { launch, operands } in self.stages.iter().flat_map(Stage::launches) {
            let source = &launch.source;
            let _ = write!(
                text,
                "{}/{}/{:?}/{}/{:?}/{}/{}/{:?}/{operands:?};",
                source.template,
                source.entry,
                source.defines,
                source.generated,
                launch.grid,
                launch.threads,
                launch.shared_bytes,
                launch.cluster,
            );
        }
        let inputs = self.inputs.iter().map(|input| (&input.name, &input.fact, &input.uploaded));
        let _ = write!(text, "{:?}{:?}", inputs.collect::<Vec<_>>(), self.output_buffers);
        xxh3_128(text.as_bytes())
    }
}

/// Where the memory of entries lies.
#[derive(Clone, Debug)]
pub(crate) struct EntryBases {
    /// The first entry's.
    pub(crate) first: Bases,
    /// From one entry to the next, in bytes.
    pub(crate) arena_step: usize,
    pub(crate) input_step: usize,
    pub(crate) output_step: usize,
    pub(crate) counter_step: usize,
    /// How many entries there are, a word as wide as an address, and after it for each of the plan's given weights the
    /// entries' addresses of them.
    pub(crate) table: u64,
    /// How many entries there are at most.
    pub(crate) capacity: usize,
}

impl EntryBases {
    /// A plan's launch as one for all entries; `column` is the number of weights that were given to launches before it,
    /// and is counted up.
    pub(crate) fn bind(&self, planned: &PlannedLaunch, column: &mut usize) -> PlannedLaunch {
        let mut parameters = Vec::new();
        for operand in &planned.operands {
            match operand {
                Operand::Address(place) => parameters.extend(self.address(place, column)),
                Operand::Addresses(places) => {
                    parameters.extend(places.iter().flat_map(|place| self.address(place, column)));
                }
                Operand::Fault { number } => {
                    parameters.extend(self.first.fault.to_ne_bytes());
                    parameters.extend(number.to_ne_bytes());
                }
                Operand::Bytes(bytes) => parameters.extend(bytes),
                Operand::TensorMap(..) => unreachable!("`bar_to_entries` was asked"),
            }
            parameters.resize(parameters.len().next_multiple_of(PARAMETER_ALIGNMENT), 0);
        }
        let count = self.table.to_ne_bytes().to_vec();
        let capacity = u32::try_from(self.capacity).expect("a group has few entries");
        PlannedLaunch {
            launch: planned.launch.for_entries(capacity),
            operands: vec![Operand::Bytes(parameters), Operand::Bytes(count)],
        }
    }

    /// An address as kernels take it: the first entry's, and the step to the next.
    fn address(&self, place: &Place, column: &mut usize) -> [u8; 2 * ADDRESS_BYTES] {
        let (base, step) = match place {
            Place::Arena { .. } => (self.first.address(place), self.arena_step as u64),
            Place::Input(_) => (self.first.address(place), self.input_step as u64),
            Place::Output(_) => (self.first.address(place), self.output_step as u64),
            Place::Counters { .. } => (self.first.address(place), self.counter_step as u64),
            Place::Null => (0, 0),
            Place::Weights(_) => {
                let before = 1 + *column * self.capacity;
                *column += 1;
                (self.table + (before * ADDRESS_BYTES) as u64, ADDRESS_BYTES as u64 | IS_INDIRECT)
            }
        };
        let mut bytes = [0; 2 * ADDRESS_BYTES];
        bytes[..ADDRESS_BYTES].copy_from_slice(&base.to_ne_bytes());
        bytes[ADDRESS_BYTES..].copy_from_slice(&step.to_ne_bytes());
        bytes
    }
}

/// The words of the table in front of kernels: the number of entries, and the address of each entry's weights, those of
/// one use beside each other.
pub(crate) fn table(entries: &[&[Arc<DeviceWeights>]], capacity: usize) -> Vec<u64> {
    let columns = entries.first().map_or(0, |weights| weights.len());
    let mut words = vec![0; 1 + columns * capacity];
    words[0] = entries.len() as u64;
    for (entry, weights) in entries.iter().enumerate() {
        for (column, weights) in weights.iter().enumerate() {
            words[1 + column * capacity + entry] = weights.address;
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::launch::{KernelSource, Launch};

    fn weights(address: u64) -> Arc<DeviceWeights> {
        Arc::new(DeviceWeights { address, size_bytes: 4, memory: Box::new(()) })
    }

    fn bases() -> EntryBases {
        EntryBases {
            first: Bases { arena: 0x1000, inputs: vec![0x2000], fault: 0x6000, ..Bases::default() },
            arena_step: 512,
            input_step: 256,
            output_step: 0,
            counter_step: 0,
            table: 0x9000,
            capacity: 4,
        }
    }

    /// The parameters of a launch as pairs of 64-bit words.
    fn bound(operands: Vec<Operand>, column: &mut usize) -> (Launch, Vec<[u64; 2]>) {
        let launch = Launch {
            source: KernelSource::new("k.cu", "text", "k", Vec::new()),
            grid: [7, 2, 3],
            threads: 64,
            shared_bytes: 0,
            cluster: [1; 3],
            arguments: Vec::new(),
        };
        let bound = bases().bind(&PlannedLaunch { launch, operands }, column);
        let [Operand::Bytes(parameters), Operand::Bytes(count)] = &bound.operands[..] else {
            panic!("{:?}", bound.operands);
        };
        assert_eq!(count[..], 0x9000u64.to_ne_bytes());
        let word = |bytes: &[u8]| u64::from_ne_bytes(bytes.try_into().unwrap());
        let pairs = parameters.chunks(16).map(|pair| [word(&pair[..8]), word(&pair[8..])]);
        (bound.launch, pairs.collect())
    }

    #[test]
    fn addresses_step_from_entry_to_entry_and_weights_are_looked_up() {
        let mut column = 1;
        let operands = vec![
            Operand::Address(Place::Arena { offset_bytes: 256 }),
            Operand::Addresses(vec![Place::Weights(weights(1)), Place::Null, Place::Input(0)]),
            Operand::Bytes(vec![1, 0, 0, 0]),
            Operand::Address(Place::Weights(weights(2))),
            Operand::Fault { number: 5 },
        ];
        let (launch, parameters) = bound(operands, &mut column);
        let indirect = |column: u64| [0x9000 + 8 * (1 + column * 4), 8 | 1];
        assert_eq!(
            parameters,
            [[0x1100, 512], indirect(1), [0, 0], [0x2000, 256], [1, 0], indirect(2), [0x6000, 5]]
        );
        assert_eq!(column, 3);
        assert_eq!(launch.grid, [7, 2, 12]);
        assert_eq!(launch.source.entry_point(), "entries");
    }

    #[test]
    fn the_table_has_the_entries_of_one_use_beside_each_other() {
        let one = [weights(10), weights(11)];
        let other = [weights(20), weights(21)];
        let words = table(&[&one, &other, &one], 4);
        assert_eq!(words, [3, 10, 20, 10, 0, 11, 21, 11, 0]);
        assert_eq!(table(&[&[], &[]], 4), [2]);
    }
}
