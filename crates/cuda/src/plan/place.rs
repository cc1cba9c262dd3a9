//! Where something lies in device memory, before any address is known.

use std::sync::Arc;

use crate::launch::DeviceWeights;

/// One place.
#[derive(Clone, Debug)]
pub(crate) enum Place {
    /// In the partition's arena.
    Arena {
        /// From the arena's start.
        offset_bytes: usize,
    },
    /// The buffer that a graph input is copied to as it is given.
    Input(usize),
    /// The buffer that a graph output is copied from as it is given back.
    Output(usize),
    /// Weights, and constants in the form that kernels read.
    Weights(Arc<DeviceWeights>),
    /// Words that are zero between launches.
    Counters {
        /// The first of them.
        first: usize,
    },
    /// Nowhere: the operand is absent.
    Null,
}

/// Size of one counter.
pub(crate) const COUNTER_BYTES: usize = size_of::<u32>();

/// The addresses of everything that places refer to.
#[derive(Clone, Debug, Default)]
pub(crate) struct Bases {
    pub(crate) arena: u64,
    pub(crate) inputs: Vec<u64>,
    pub(crate) outputs: Vec<u64>,
    pub(crate) counters: u64,
    pub(crate) fault: u64,
}

impl Bases {
    /// The address of a place.
    pub(crate) fn address(&self, place: &Place) -> u64 {
        match place {
            Place::Arena { offset_bytes } => self.arena + *offset_bytes as u64,
            Place::Input(index) => self.inputs[*index],
            Place::Output(index) => self.outputs[*index],
            Place::Weights(weights) => weights.address,
            Place::Counters { first } => self.counters + (first * COUNTER_BYTES) as u64,
            Place::Null => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_relative_to_their_own_base() {
        let bases = Bases {
            arena: 0x1000,
            inputs: vec![0x2000, 0x3000],
            outputs: vec![0x4000],
            counters: 0x5000,
            fault: 0x6000,
        };
        let weights = DeviceWeights { address: 0x7000, size_bytes: 4, memory: Box::new(()) };
        for (place, address) in [
            (Place::Arena { offset_bytes: 256 }, 0x1100),
            (Place::Input(1), 0x3000),
            (Place::Output(0), 0x4000),
            (Place::Counters { first: 3 }, 0x500c),
            (Place::Weights(Arc::new(weights)), 0x7000),
            (Place::Null, 0),
        ] {
            assert_eq!(bases.address(&place), address, "{place:?}");
        }
    }
}
