//! One instruction, run by all lanes of a warp that are at it.

mod bulk;
mod matrices;
mod memory;
mod numbers;
mod together;

use std::borrow::Cow;
use std::time::{SystemTime, UNIX_EPOCH};

use super::Problem;
use super::access::{Bytes, found};
use super::cluster::Cluster;
use super::lanes::{ALL, LANES, Lanes};
use super::ptx::instruction::{Address, Instruction, Operand, Operation, Space, Special};
use super::warp::{State, Warp};

/// Where a fragment goes on.
enum After {
    Next,
    /// What it asked for is not there yet.
    Again,
    Wait(State),
}

type Done = Result<After, String>;

impl Cluster<'_> {
    /// Runs the next instruction of a fragment; says whether anything happened.
    pub(super) fn step(&mut self, warp: &mut Warp, index: usize) -> Result<bool, Problem> {
        let fragment = warp.fragments[index];
        let kernel = self.launch.kernel;
        let Some(instruction) = kernel.instructions.get(fragment.next) else {
            return self.end_threads(warp, index, fragment.lanes);
        };
        warp.line = instruction.line;
        let lanes = instruction.guard.map_or(ALL, |guard| warp.condition(guard)) & fragment.lanes;
        match instruction.operation {
            Operation::Branch { target } => {
                warp.branch(index, lanes, target as usize);
                return Ok(true);
            }
            Operation::Exit => return self.end_threads(warp, index, lanes),
            _ => {}
        }
        if lanes == 0 {
            warp.fragments[index].next += 1;
            return Ok(true);
        }
        match self.execute(warp, lanes, instruction) {
            Ok(After::Next) => {
                warp.fragments[index].next += 1;
                Ok(true)
            }
            Ok(After::Again) => {
                warp.fragments[index].state = State::Again;
                Ok(false)
            }
            Ok(After::Wait(state)) => {
                let fragment = &mut warp.fragments[index];
                fragment.next += 1;
                fragment.state = state;
                Ok(true)
            }
            Err(what) => Err(self.problem(warp, lanes, what)),
        }
    }

    /// Some threads of a fragment end.
    fn end_threads(&mut self, warp: &mut Warp, index: usize, lanes: u32) -> Result<bool, Problem> {
        let stores = warp.stores.iter().fold(0, |stores, store| stores | 1 << store.lane);
        if stores & lanes != 0 {
            let what = "a thread ends before what it stores has been read".to_string();
            return Err(self.problem(warp, stores & lanes, what));
        }
        warp.end(index, lanes);
        self.end(warp.block, lanes.count_ones());
        Ok(true)
    }

    /// What went wrong where a warp is, for some of its lanes.
    fn problem(&self, warp: &Warp, lanes: u32, what: String) -> Problem {
        let thread = self.thread(warp, lanes.trailing_zeros());
        Problem { what, line: warp.line, thread: Some(thread) }
    }

    /// The block of a lane, and its number there.
    fn thread(&self, warp: &Warp, lane: u32) -> ([u32; 3], u32) {
        (self.blocks[warp.block].place, warp.number as u32 * LANES as u32 + lane)
    }

    fn execute(&mut self, warp: &mut Warp, lanes: u32, instruction: &Instruction) -> Done {
        match &instruction.operation {
            Operation::Load { .. }
            | Operation::Store { .. }
            | Operation::Atomic { .. }
            | Operation::CopyAsync { .. }
            | Operation::CommitCopies
            | Operation::AwaitCopies { .. }
            | Operation::Bulk(_)
            | Operation::CommitStores
            | Operation::AwaitStores { .. }
            | Operation::Phase { .. } => self.memory(warp, lanes, &instruction.operation),
            Operation::Shuffle { .. }
            | Operation::Vote { .. }
            | Operation::ActiveLanes { .. }
            | Operation::Elect { .. }
            | Operation::AwaitWarp { .. }
            | Operation::AwaitBlock { .. }
            | Operation::ArriveAtCluster
            | Operation::AwaitCluster => self.together(warp, lanes, &instruction.operation),
            Operation::LoadMatrices { .. }
            | Operation::StoreMatrices { .. }
            | Operation::MultiplyMatrices { .. }
            | Operation::MultiplyByWarpgroup { .. }
            | Operation::CommitWarpgroup
            | Operation::AwaitWarpgroup { .. } => {
                self.matrices(warp, lanes, &instruction.operation)
            }
            operation => self.numbers(warp, lanes, operation),
        }
    }

    fn value<'v>(&self, warp: &'v Warp, operand: Operand) -> Cow<'v, Lanes> {
        match operand {
            Operand::Register(register) => Cow::Borrowed(warp.register(register)),
            Operand::Immediate(value) => Cow::Owned([value; LANES]),
            Operand::Special(special) => Cow::Owned(self.special(warp, special)),
        }
    }

    fn special(&self, warp: &Warp, special: Special) -> Lanes {
        let block = &self.blocks[warp.block];
        let [x, y, _] = self.launch.threads;
        let first = warp.number as u32 * 32;
        let place = |lane: usize| {
            let thread = first + lane as u32;
            [thread % x, thread / x % y, thread / (x * y)]
        };
        let same = |value: u64| [value; LANES];
        match special {
            Special::Thread(axis) => std::array::from_fn(|lane| place(lane)[axis].into()),
            Special::Threads(axis) => same(self.launch.threads[axis].into()),
            Special::Block(axis) => same(block.place[axis].into()),
            Special::Blocks(axis) => same(self.launch.grid[axis].into()),
            Special::ClusterShape(axis) => same(self.launch.cluster[axis].into()),
            Special::Lane => std::array::from_fn(|lane| lane as u64),
            Special::Warp => same(warp.number as u64),
            Special::Sm => same(block.sm.into()),
            Special::SmCount => same(self.launch.sms.len() as u64),
            Special::RankInCluster => same(warp.block as u64),
            Special::BlocksOfCluster => same(self.blocks.len() as u64),
            Special::LanesBelow => std::array::from_fn(|lane| (1 << lane) - 1),
            Special::DynamicShared => same(self.launch.kernel.dynamic_start.into()),
            Special::Nanoseconds => {
                let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
                same(since.as_nanos() as u64)
            }
        }
    }

    /// The bytes at an address of one lane, which lie at a multiple of what is moved at once.
    fn bytes(
        &mut self,
        warp: &mut Warp,
        lane: usize,
        space: Space,
        address: u64,
        count: usize,
        alignment: usize,
    ) -> Result<Bytes, String> {
        let (space, at) = found(space, address);
        if at % alignment as u64 != 0 {
            return Err(format!(
                "{count} bytes at {address:#x}, which is no multiple of {alignment}"
            ));
        }
        let bytes = match space {
            Space::Any => self.device.at(at, count),
            Space::Shared => self.shared(warp.block, at, count)?,
            Space::Local => warp.local.get_mut(lane).and_then(|own| own.at(at as usize, count)),
            Space::Parameters | Space::Constants => None,
        };
        bytes.ok_or_else(|| {
            format!("{count} bytes at {address:#x} of {space:?} are no memory of the kernel")
        })
    }

    fn addresses(&self, warp: &Warp, address: &Address) -> Lanes {
        self.value(warp, address.base).map(|base| base.wrapping_add_signed(address.offset))
    }
}
