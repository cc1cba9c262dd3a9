//! The threads of a warp: their registers, and where each of them is in the program.

use super::access::OwnMemory;
use super::lanes::{ALL, LANES, Lanes, mask_of};
use super::ptx::Kernel;
use super::ptx::instruction::{Condition, Register};

/// Threads of a warp that are at the same place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fragment {
    pub(super) next: usize,
    pub(super) lanes: u32,
    pub(super) state: State,
}

/// What a fragment waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Ready,
    /// What it asked for is not there yet, or other lanes are not: it asks again at the warp's next turn.
    Again,
    /// A barrier of the block, until it has been passed more often than so.
    AtBarrier {
        barrier: usize,
        passed: u64,
    },
}

/// 32 threads of a block, or what is left over.
pub(super) struct Warp {
    /// The rank of its block in the cluster, and its number in the block.
    pub(super) block: usize,
    pub(super) number: usize,
    pub(super) fragments: Vec<Fragment>,
    registers: Vec<Lanes>,
    predicates: Vec<u32>,
    /// Each thread's own memory.
    pub(super) local: Vec<OwnMemory>,
    pub(super) copies: Copies,
    pub(super) stores: Vec<Store>,
    /// The line of the program that was come to last.
    pub(super) line: u32,
    /// Lanes that were told once that what they wait for has not come.
    pub(super) refused: u32,
    /// Turns in a row at whose end somebody could go on.
    pub(super) whole_turns: usize,
    /// How often all of the cluster had arrived when this warp arrived.
    pub(super) cluster_passed: u64,
}

/// Copies to shared memory that a thread has asked for and not waited for.
#[derive(Default)]
pub(super) struct Copies {
    pub(super) pending: Vec<PendingCopy>,
    /// Groups that were closed.
    pub(super) groups: u32,
}

/// A copy that one lane asked for.
pub(super) struct PendingCopy {
    pub(super) group: u32,
    pub(super) to: u64,
    pub(super) from: u64,
    pub(super) bytes: usize,
    pub(super) read: usize,
}

/// A store by the copy engine that one lane asked for, which reads shared memory until it is waited for.
pub(super) struct Store {
    pub(super) lane: usize,
    pub(super) later_groups: Option<u32>,
    pub(super) from: usize,
    pub(super) bytes: Vec<u8>,
}

impl Warp {
    pub(super) fn new(kernel: &Kernel, block: usize, number: usize, threads_of_block: u32) -> Self {
        let first = number as u32 * LANES as u32;
        let threads = mask_of(|lane| first + (lane as u32) < threads_of_block);
        let local = match kernel.local_bytes as usize {
            0 => Vec::new(),
            bytes => (0..LANES).map(|_| OwnMemory::new(0, bytes)).collect(),
        };
        Self {
            block,
            number,
            fragments: vec![Fragment { next: 0, lanes: threads, state: State::Ready }],
            registers: vec![[0; LANES]; kernel.registers as usize],
            predicates: vec![0; kernel.predicates as usize],
            local,
            copies: Copies::default(),
            stores: Vec::new(),
            line: 0,
            refused: 0,
            whole_turns: 0,
            cluster_passed: 0,
        }
    }

    /// The threads that have not ended.
    pub(super) fn running(&self) -> u32 {
        self.fragments.iter().fold(0, |lanes, fragment| lanes | fragment.lanes)
    }

    pub(super) fn has_ended(&self) -> bool {
        self.fragments.is_empty()
    }

    pub(super) fn register(&self, register: Register) -> &Lanes {
        &self.registers[register as usize]
    }

    pub(super) fn write(&mut self, register: Register, lanes: u32, values: &Lanes) {
        let register = &mut self.registers[register as usize];
        if lanes == ALL {
            *register = *values;
            return;
        }
        for (lane, (into, value)) in register.iter_mut().zip(values).enumerate() {
            if lanes & (1 << lane) != 0 {
                *into = *value;
            }
        }
    }

    pub(super) fn condition(&self, condition: Condition) -> u32 {
        match condition {
            Condition::Is(predicate) => self.predicates[predicate as usize],
            Condition::IsNot(predicate) => !self.predicates[predicate as usize],
            Condition::Known(holds) => {
                if holds {
                    ALL
                } else {
                    0
                }
            }
        }
    }

    pub(super) fn set_predicate(&mut self, predicate: u32, lanes: u32, holds: u32) {
        let predicate = &mut self.predicates[predicate as usize];
        *predicate = *predicate & !lanes | holds & lanes;
    }

    /// The fragment that goes on: the one that is furthest behind, so that others may join it where paths meet again, or so many
    /// before that.
    pub(super) fn ready(&mut self, ahead: usize) -> Option<usize> {
        self.join();
        let ready = self.fragments.iter().enumerate().filter(|(_, it)| it.state == State::Ready);
        if ahead == 0 {
            return ready.min_by_key(|(_, fragment)| fragment.next).map(|(index, _)| index);
        }
        let mut ready: Vec<(usize, usize)> =
            ready.map(|(index, fragment)| (fragment.next, index)).collect();
        ready.sort_unstable();
        ready.get(ahead % ready.len().max(1)).map(|(_, index)| *index)
    }

    /// Fragments that have met go on together.
    fn join(&mut self) {
        let mut index = 0;
        while index < self.fragments.len() {
            let one = self.fragments[index];
            let meets = |other: &Fragment| {
                other.next == one.next
                    && !matches!(other.state, State::AtBarrier { .. })
                    && !matches!(one.state, State::AtBarrier { .. })
            };
            match self.fragments[index + 1..].iter().position(meets) {
                Some(offset) => {
                    let other = self.fragments.remove(index + 1 + offset);
                    self.fragments[index].lanes |= other.lanes;
                    self.fragments[index].state = State::Ready;
                }
                None => index += 1,
            }
        }
    }

    /// Those that asked in vain ask again, and those whose barrier has been passed go on.
    pub(super) fn wake(&mut self, passed: impl Fn(usize) -> u64) {
        for fragment in &mut self.fragments {
            match fragment.state {
                State::Ready => {}
                State::Again => fragment.state = State::Ready,
                State::AtBarrier { barrier, passed: before } => {
                    if passed(barrier) > before {
                        fragment.state = State::Ready;
                    }
                }
            }
        }
    }

    /// Some lanes of a fragment go on elsewhere.
    pub(super) fn branch(&mut self, index: usize, taken: u32, target: usize) {
        let fragment = &mut self.fragments[index];
        if taken == fragment.lanes {
            fragment.next = target;
            return;
        }
        fragment.next += 1;
        if taken != 0 {
            fragment.lanes &= !taken;
            self.fragments.push(Fragment { next: target, lanes: taken, state: State::Ready });
        }
    }

    /// Some lanes of a fragment end.
    pub(super) fn end(&mut self, index: usize, lanes: u32) {
        let fragment = &mut self.fragments[index];
        fragment.lanes &= !lanes;
        fragment.next += 1;
        if fragment.lanes == 0 {
            self.fragments.remove(index);
        }
    }
}
