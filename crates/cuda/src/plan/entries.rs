//! A plan as several requests share it: every launch computes all entries, each with memory and weights of its own.

use std::fmt::Write;
use std::sync::Arc;

use xxhash_rust::xxh3::xxh3_128;

use super::ExecutionPlan;
use super::place::{Bases, Place};
use super::steps::{Operand, PlannedLaunch, Stage};
use crate::driver::CudaError;
use crate::launch::{DeviceWeights, TensorMap};

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
        if self.stages.iter().any(is_host) {
            Some("the host computes some of its steps")
        } else if self.stages.iter().any(calls_library) {
            Some("a library computes some of its steps")
        } else {
            None
        }
    }

    /// What its launches are given that is the model's own, in order, one thing as often as it is given.
    pub(crate) fn given(&self) -> Vec<Given> {
        self.stages.iter().flat_map(Stage::launches).flat_map(given).collect()
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

/// What a launch is given that is a model's own.
#[derive(Clone, Debug)]
pub(crate) enum Given {
    /// Weights.
    Weights(Arc<DeviceWeights>),
    /// Their description for the copy engine.
    Description(Arc<DeviceWeights>, TensorMap),
}

impl Given {
    /// What it is, or describes.
    pub(crate) fn weights(&self) -> &Arc<DeviceWeights> {
        match self {
            Self::Weights(weights) | Self::Description(weights, _) => weights,
        }
    }
}

/// What a launch is given that is a model's own, in order.
pub(crate) fn given(launch: &PlannedLaunch) -> impl Iterator<Item = Given> {
    launch.operands.iter().flat_map(|operand| {
        let given = move |place: &Place| match (place, operand) {
            (Place::Weights(weights), Operand::TensorMap(_, map)) => {
                Some(Given::Description(weights.clone(), map.clone()))
            }
            (Place::Weights(weights), _) => Some(Given::Weights(weights.clone())),
            _ => None,
        };
        operand.places().iter().filter_map(given)
    })
}

/// How many descriptions of each entry's own memory launches are given.
pub(crate) fn description_count<'a>(
    launches: impl IntoIterator<Item = &'a PlannedLaunch>,
) -> usize {
    let is_own = |operand: &&Operand| matches!(operand, Operand::TensorMap(place, _) if !matches!(place, Place::Weights(_)));
    launches.into_iter().flat_map(|launch| &launch.operands).filter(is_own).count()
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
    /// How many entries there are, a word as wide as an address, and after it for everything that launches are given of a
    /// model's own the entries' addresses of it.
    pub(crate) table: u64,
    /// Descriptions of each entry's own memory, one after another.
    pub(crate) descriptions: u64,
    /// How many entries there are at most.
    pub(crate) capacity: usize,
}

/// The size of a description.
pub(crate) const DESCRIPTION_BYTES: usize = 128;

/// Makes the description of a tensor at an address.
pub(crate) type Describe<'a> =
    &'a dyn Fn(&TensorMap, u64) -> Result<[u8; DESCRIPTION_BYTES], CudaError>;

/// Turns the launches of one request into those of all entries, in order.
pub(crate) struct EntryBinder<'a> {
    bases: &'a EntryBases,
    describe: Describe<'a>,
    /// What was given so far that is a model's own.
    column: usize,
    /// What is to lie at [`EntryBases::descriptions`] when the launches run.
    pub(crate) descriptions: Vec<u8>,
}

impl<'a> EntryBinder<'a> {
    pub(crate) fn new(bases: &'a EntryBases, describe: Describe<'a>) -> Self {
        Self { bases, describe, column: 0, descriptions: Vec::new() }
    }

    /// The next launch.
    pub(crate) fn bind(&mut self, planned: &PlannedLaunch) -> Result<PlannedLaunch, CudaError> {
        let mut parameters = Vec::new();
        for operand in &planned.operands {
            match operand {
                Operand::Address(place) => parameters.extend(self.address(place)),
                Operand::Addresses(places) => {
                    parameters.extend(places.iter().flat_map(|place| self.address(place)));
                }
                Operand::Fault { number } => {
                    parameters.extend(self.bases.first.fault.to_ne_bytes());
                    parameters.extend(number.to_ne_bytes());
                }
                Operand::Bytes(bytes) => parameters.extend(bytes),
                Operand::TensorMap(place, map) => {
                    parameters.extend(self.description(place, map)?);
                }
            }
            parameters.resize(parameters.len().next_multiple_of(PARAMETER_ALIGNMENT), 0);
        }
        if planned.launch.source.stays {
            // Its blocks go through entries by themselves, and ask how many there are.
            parameters.extend(parameter(self.bases.table, 0));
        }
        let count = self.bases.table.to_ne_bytes().to_vec();
        let capacity = u32::try_from(self.bases.capacity).expect("a group has few entries");
        Ok(PlannedLaunch {
            launch: planned.launch.for_entries(capacity),
            operands: vec![Operand::Bytes(parameters), Operand::Bytes(count)],
        })
    }

    fn address(&mut self, place: &Place) -> [u8; 2 * ADDRESS_BYTES] {
        let (base, step) = match place {
            Place::Weights(_) => self.next_column(),
            place => self.bases.memory(place),
        };
        parameter(base, step)
    }

    /// Where the entries' descriptions of a tensor lie.
    fn description(
        &mut self,
        place: &Place,
        map: &TensorMap,
    ) -> Result<[u8; 2 * ADDRESS_BYTES], CudaError> {
        if matches!(place, Place::Weights(_)) {
            let (base, step) = self.next_column();
            return Ok(parameter(base, step));
        }
        let at = self.bases.descriptions + self.descriptions.len() as u64;
        let (base, step) = self.bases.memory(place);
        for entry in 0..self.bases.capacity as u64 {
            self.descriptions.extend((self.describe)(map, base + entry * step)?);
        }
        Ok(parameter(at, DESCRIPTION_BYTES as u64))
    }

    fn next_column(&mut self) -> (u64, u64) {
        let before = 1 + self.column * self.bases.capacity;
        self.column += 1;
        let at = self.bases.table + (before * ADDRESS_BYTES) as u64;
        (at, ADDRESS_BYTES as u64 | IS_INDIRECT)
    }
}

/// An address as kernels take it.
fn parameter(base: u64, step: u64) -> [u8; 2 * ADDRESS_BYTES] {
    let mut bytes = [0; 2 * ADDRESS_BYTES];
    bytes[..ADDRESS_BYTES].copy_from_slice(&base.to_ne_bytes());
    bytes[ADDRESS_BYTES..].copy_from_slice(&step.to_ne_bytes());
    bytes
}

impl EntryBases {
    /// The first entry's address of a place in its own memory, and the step to the next one's.
    fn memory(&self, place: &Place) -> (u64, u64) {
        let step = match place {
            Place::Arena { .. } => self.arena_step,
            Place::Input(_) => self.input_step,
            Place::Output(_) => self.output_step,
            Place::Counters { .. } => self.counter_step,
            Place::Null => 0,
            Place::Weights(_) => unreachable!("weights are a model's and no entry's"),
        };
        (self.first.address(place), step as u64)
    }
}

/// The words of the table: the number of entries, and the addresses of what each is given of its model's own, those of one
/// use beside each other.
pub(crate) fn table(entries: &[&[u64]], capacity: usize) -> Vec<u64> {
    let columns = entries.first().map_or(0, |addresses| addresses.len());
    let mut words = vec![0; 1 + columns * capacity];
    words[0] = entries.len() as u64;
    for (entry, addresses) in entries.iter().enumerate() {
        for (column, &address) in addresses.iter().enumerate() {
            words[1 + column * capacity + entry] = address;
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
            descriptions: 0xa000,
            capacity: 4,
        }
    }

    /// The parameters of two launches as pairs of 64-bit words, the second with the operands, and the descriptions.
    fn bound(before: Vec<Operand>, operands: Vec<Operand>) -> (Launch, Vec<[u64; 2]>, Vec<u8>) {
        bound_by(KernelSource::new("k.cu", "text", "k", Vec::new()), before, operands)
    }

    fn bound_by(
        source: KernelSource,
        before: Vec<Operand>,
        operands: Vec<Operand>,
    ) -> (Launch, Vec<[u64; 2]>, Vec<u8>) {
        let launch = Launch {
            source,
            grid: [7, 2, 3],
            threads: 64,
            shared_bytes: 0,
            cluster: [1; 3],
            arguments: Vec::new(),
        };
        let bases = bases();
        let describe = |_: &TensorMap, base: u64| Ok([(base >> 8) as u8; DESCRIPTION_BYTES]);
        let mut binder = EntryBinder::new(&bases, &describe);
        binder.bind(&PlannedLaunch { launch: launch.clone(), operands: before }).unwrap();
        let bound = binder.bind(&PlannedLaunch { launch, operands }).unwrap();
        let [Operand::Bytes(parameters), Operand::Bytes(count)] = &bound.operands[..] else {
            panic!("{:?}", bound.operands);
        };
        assert_eq!(count[..], 0x9000u64.to_ne_bytes());
        let word = |bytes: &[u8]| u64::from_ne_bytes(bytes.try_into().unwrap());
        let pairs = parameters.chunks(16).map(|pair| [word(&pair[..8]), word(&pair[8..])]);
        let pairs = pairs.collect();
        (bound.launch, pairs, binder.descriptions)
    }

    #[test]
    fn addresses_step_from_entry_to_entry_and_weights_are_looked_up() {
        let operands = vec![
            Operand::Address(Place::Arena { offset_bytes: 256 }),
            Operand::Addresses(vec![Place::Weights(weights(1)), Place::Null, Place::Input(0)]),
            Operand::Bytes(vec![1, 0, 0, 0]),
            Operand::Address(Place::Weights(weights(2))),
            Operand::Fault { number: 5 },
        ];
        let before = vec![Operand::Address(Place::Weights(weights(7)))];
        let (launch, parameters, _) = bound(before, operands);
        let indirect = |column: u64| [0x9000 + 8 * (1 + column * 4), 8 | 1];
        assert_eq!(
            parameters,
            [[0x1100, 512], indirect(1), [0, 0], [0x2000, 256], [1, 0], indirect(2), [0x6000, 5]]
        );
        assert_eq!(launch.grid, [7, 2, 12]);
        assert_eq!(launch.source.entry_point(), "entries");
    }

    #[test]
    fn blocks_that_stay_are_told_where_the_number_of_entries_lies() {
        let source =
            KernelSource { stays: true, ..KernelSource::new("k.cu", "text", "k", Vec::new()) };
        let operands = vec![
            Operand::Address(Place::Arena { offset_bytes: 0 }),
            Operand::Bytes(vec![9, 0, 0, 0]),
        ];
        let (launch, parameters, _) = bound_by(source, Vec::new(), operands);
        assert_eq!(parameters, [[0x1000, 512], [9, 0], [0x9000, 0]]);
        assert_eq!(launch.grid, [7, 2, 3], "as many as there are for all of them");
    }

    #[test]
    fn descriptions_are_an_entrys_own_or_a_models() {
        let map = TensorMap {
            base: Box::new(crate::launch::Argument::Null),
            storage: crate::Storage::F16,
            sizes: vec![8, 8],
            strides_bytes: vec![16],
            copied: crate::launch::Copied::Box(vec![8, 8]),
            swizzle_bytes: 128,
        };
        let own = || Operand::TensorMap(Place::Arena { offset_bytes: 0 }, map.clone());
        let operands = vec![own(), Operand::TensorMap(Place::Weights(weights(1)), map.clone())];
        let launch = |operands| PlannedLaunch { launch: bound(vec![], vec![]).0, operands };
        assert_eq!(description_count(&[launch(operands.clone())]), 1);
        let described: Vec<Given> = given(&launch(operands.clone())).collect();
        assert!(matches!(&described[..], [Given::Description(..)]), "{described:?}");
        let (_, parameters, descriptions) = bound(vec![own()], operands);
        assert_eq!(parameters, [[0xa000 + 4 * 128, 128], [0x9008, 8 | 1]]);
        let first: Vec<u8> = descriptions.chunks(128).map(|one| one[0]).collect();
        assert_eq!(first, [0x10, 0x12, 0x14, 0x16, 0x10, 0x12, 0x14, 0x16]);
    }

    #[test]
    fn the_table_has_the_entries_of_one_use_beside_each_other() {
        let (one, other) = ([10, 11], [20, 21]);
        let words = table(&[&one, &other, &one], 4);
        assert_eq!(words, [3, 10, 20, 10, 0, 11, 21, 11, 0]);
        assert_eq!(table(&[&[], &[]], 4), [2]);
    }
}
