//! Barriers in shared memory that end phase after phase: when all have arrived, and all bytes have come that were expected.

use super::access::Bytes;

/// Such a barrier as it lies in memory: eight bytes, from the lowest bit on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct PhaseBarrier {
    /// Who must arrive in each phase.
    arrivals: u32,
    /// Who still has to in this one.
    left: u32,
    /// Bytes that are expected and have not come: less than nothing where they came before they were expected.
    bytes: i32,
    /// Whether the number of phases that have ended is odd.
    parity: bool,
}

const COUNT_BITS: u32 = 20;
const COUNT_MASK: u64 = (1 << COUNT_BITS) - 1;
const BYTE_BITS: u32 = 22;
const BYTE_ZERO: i64 = 1 << (BYTE_BITS - 1);

/// No barrier has this bit, and memory that was never written has it.
const NO_BARRIER: u64 = 1 << 62;

/// Whether the phase of a parity has ended.
pub(super) fn has_ended(at: Bytes, parity: u64) -> Result<bool, String> {
    Ok(u64::from(PhaseBarrier::read(at)?.parity) != parity & 1)
}

/// Begins the first phase.
pub(super) fn start(at: Bytes, arrivals: u64) -> Result<(), String> {
    if !(1..=COUNT_MASK).contains(&arrivals) {
        return Err(format!("a barrier for {arrivals} threads"));
    }
    let arrivals = arrivals as u32;
    PhaseBarrier { arrivals, left: arrivals, bytes: 0, parity: false }.write(at);
    Ok(())
}

/// It is a barrier no longer.
pub(super) fn end(at: Bytes) -> Result<(), String> {
    PhaseBarrier::read(at)?;
    at.write(0, 8, NO_BARRIER);
    Ok(())
}

/// So many arrive, after so many more bytes are expected.
pub(super) fn arrive(at: Bytes, count: u64, expected_bytes: u64) -> Result<(), String> {
    let mut barrier = PhaseBarrier::read(at)?;
    let left = barrier.left.checked_sub(count as u32);
    barrier.left = left.ok_or("more arrive at a barrier than it counts")?;
    barrier.change(at, expected_bytes as i32)
}

/// So many bytes have come.
pub(super) fn receive(at: Bytes, bytes: usize) -> Result<(), String> {
    PhaseBarrier::read(at)?.change(at, -(bytes as i32))
}

impl PhaseBarrier {
    fn read(at: Bytes) -> Result<Self, String> {
        let word = at.read(0, 8);
        if word & NO_BARRIER != 0 {
            return Err("what is asked is no barrier: it was never started".to_string());
        }
        Ok(Self {
            arrivals: (word & COUNT_MASK) as u32,
            left: (word >> COUNT_BITS & COUNT_MASK) as u32,
            bytes: ((word >> (2 * COUNT_BITS) & ((1 << BYTE_BITS) - 1)) as i64 - BYTE_ZERO) as i32,
            parity: word >> 63 != 0,
        })
    }

    fn write(self, at: Bytes) {
        let bytes = (i64::from(self.bytes) + BYTE_ZERO) as u64;
        let word = u64::from(self.arrivals)
            | u64::from(self.left) << COUNT_BITS
            | bytes << (2 * COUNT_BITS)
            | u64::from(self.parity) << 63;
        at.write(0, 8, word);
    }

    fn change(mut self, at: Bytes, more_bytes: i32) -> Result<(), String> {
        self.bytes += more_bytes;
        if i64::from(self.bytes).abs() >= BYTE_ZERO {
            return Err("more bytes are expected at a barrier than it can count".to_string());
        }
        if self.left == 0 && self.bytes == 0 {
            self.parity = !self.parity;
            self.left = self.arrivals;
        }
        self.write(at);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::access::OwnMemory;
    use super::*;

    #[test]
    fn a_phase_ends_when_all_have_arrived_and_all_bytes_have_come() {
        let mut memory = OwnMemory::new(0, 8);
        let at = memory.at(0, 8).unwrap();
        assert!(arrive(at, 1, 0).is_err() && has_ended(at, 0).is_err(), "it was not started");
        assert!(start(at, 0).is_err() && start(at, 1 << 20).is_err());
        start(at, 2).unwrap();
        let has_ended = |at, parity| has_ended(at, parity).unwrap();
        assert!(has_ended(at, 1), "what is before the first phase has ended");
        receive(at, 32).unwrap();
        arrive(at, 1, 32).unwrap();
        assert!(!has_ended(at, 0));
        arrive(at, 1, 64).unwrap();
        assert!(!has_ended(at, 0), "bytes are missing");
        receive(at, 64).unwrap();
        assert!(has_ended(at, 0) && !has_ended(at, 1));
        arrive(at, 2, 0).unwrap();
        assert!(has_ended(at, 1));
        assert!(arrive(at, 3, 0).is_err());
        end(at).unwrap();
        assert!(receive(at, 16).is_err(), "it is no barrier any more");
    }
}
