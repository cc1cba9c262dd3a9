//! Blocks that run together: their shared memory and barriers, and whose turn it is.

use super::access::{Bytes, DeviceMemory, OwnMemory, shared_place};
use super::copy_engine::Moved;
use super::phase;
use super::ptx::Kernel;
use super::warp::{State, Warp};
use super::warpgroup::Warpgroup;
use super::{Launch, Problem};
use crate::tensor_map::TensorMap;

/// Barriers of a block.
const BARRIERS: usize = 16;

/// Instructions that a warp runs before it is another's turn.
const TURN: usize = 512;

/// Turns after which lanes have a turn that are not those furthest behind: these may be waiting for them, and ask again and again.
const PATIENCE: usize = 16;

/// Questions without waiting after which a late copy comes: who asks need not do anything else.
const QUESTIONS: u32 = 1000;

/// What the warps of a cluster share.
pub(super) struct Cluster<'a> {
    pub(super) launch: &'a Launch<'a>,
    pub(super) device: DeviceMemory<'a>,
    pub(super) blocks: Vec<Block>,
    /// Threads that arrived at the cluster's barrier, that have not ended, and how often it was passed.
    pub(super) arrived: u32,
    pub(super) running: u32,
    pub(super) passed: u64,
    /// Copies arrive as late as they can, and out of order, in place of at once: both are what a GPU may do.
    pub(super) is_late: bool,
    /// How often it was asked for something without waiting, in vain.
    pub(super) asked: u32,
    transfers: Vec<Transfer>,
}

/// One block.
pub(super) struct Block {
    /// Its place in the launch.
    pub(super) place: [u32; 3],
    /// The SM that it runs on.
    pub(super) sm: u32,
    shared: OwnMemory,
    barriers: [BlockBarrier; BARRIERS],
    pub(super) warpgroups: Vec<Warpgroup>,
    running: u32,
}

#[derive(Clone, Copy, Default)]
struct BlockBarrier {
    arrived: u32,
    /// How many it waits for, where that was said.
    expected: Option<u32>,
    passed: u64,
}

/// What the copy engine was asked to bring, and who is told when it has come.
pub(super) struct Transfer {
    /// The rank of the block, and where in its shared memory.
    pub(super) block: usize,
    pub(super) to: usize,
    pub(super) moved: Moved,
    /// How it is laid out there.
    pub(super) map: Option<TensorMap>,
    pub(super) barrier: usize,
    /// The line of the program that asks for it, and who does.
    pub(super) line: u32,
    pub(super) thread: ([u32; 3], u32),
}

impl<'a> Cluster<'a> {
    /// The cluster of a number among all of a launch.
    pub(super) fn new(
        launch: &'a Launch<'a>,
        device: DeviceMemory<'a>,
        number: u64,
        is_late: bool,
    ) -> Self {
        let clusters: [u64; 3] =
            std::array::from_fn(|axis| u64::from(launch.grid[axis] / launch.cluster[axis]));
        let at = [
            number % clusters[0],
            number / clusters[0] % clusters[1],
            number / (clusters[0] * clusters[1]),
        ];
        let [x, y, z] = launch.cluster;
        let inside = (0..z).flat_map(|z| (0..y).flat_map(move |y| (0..x).map(move |x| [x, y, z])));
        let threads = launch.threads.iter().product::<u32>();
        let shared_end = launch.kernel.dynamic_start + launch.shared_bytes;
        let blocks: Vec<Block> = inside
            .zip(0..)
            .map(|(inside, rank)| Block {
                place: std::array::from_fn(|axis| {
                    at[axis] as u32 * launch.cluster[axis] + inside[axis]
                }),
                sm: launch.sms[(number * u64::from(x * y * z) + rank) as usize % launch.sms.len()],
                shared: OwnMemory::shared(shared_end as usize),
                barriers: [BlockBarrier::default(); BARRIERS],
                warpgroups: (0..threads.div_ceil(128)).map(|_| Warpgroup::default()).collect(),
                running: threads,
            })
            .collect();
        let running = threads * blocks.len() as u32;
        Self {
            launch,
            device,
            blocks,
            arrived: 0,
            running,
            passed: 0,
            is_late,
            asked: 0,
            transfers: Vec::new(),
        }
    }

    /// Runs all threads to their end.
    pub(super) fn run(&mut self) -> Result<(), Problem> {
        let threads = self.launch.threads.iter().product::<u32>();
        let warps_of_block = threads.div_ceil(32) as usize;
        let numbers = (0..self.blocks.len())
            .flat_map(|block| (0..warps_of_block).map(move |number| (block, number)));
        let mut warps: Vec<Warp> = numbers
            .map(|(block, number)| Warp::new(self.launch.kernel, block, number, threads))
            .collect();
        if self.is_late {
            warps.reverse();
        }
        while !warps.is_empty() {
            let mut has_moved = false;
            for warp in &mut warps {
                has_moved |= self.turn(warp)?;
            }
            warps.retain(|warp| !warp.has_ended());
            if has_moved && self.asked < QUESTIONS {
                continue;
            }
            self.asked = 0;
            if !self.bring_one()? && !has_moved {
                return Err(stuck(self.launch.kernel, &warps));
            }
        }
        while self.bring_one()? {}
        Ok(())
    }

    /// A warp's turn; says whether anything happened in it.
    fn turn(&mut self, warp: &mut Warp) -> Result<bool, Problem> {
        let block = &self.blocks[warp.block];
        warp.wake(|barrier| block.barriers[barrier].passed);
        let (rounds, rest) = (warp.whole_turns / PATIENCE, warp.whole_turns % PATIENCE);
        let ahead = if rest + 1 == PATIENCE { rounds + 1 } else { 0 };
        let mut has_moved = false;
        for _ in 0..TURN {
            let Some(fragment) = warp.ready(ahead) else {
                warp.whole_turns = 0;
                return Ok(has_moved);
            };
            has_moved |= self.step(warp, fragment)?;
        }
        warp.whole_turns += 1;
        Ok(has_moved)
    }

    /// Threads arrive at a barrier of their block; says how often it was passed before, and whether it is now.
    pub(super) fn arrive_at(
        &mut self,
        block: usize,
        barrier: u64,
        threads: u32,
        expected: Option<u32>,
    ) -> Result<(usize, u64), String> {
        let barrier = barrier as usize;
        let block = &mut self.blocks[block];
        let it = block.barriers.get_mut(barrier).ok_or("a block has 16 barriers")?;
        let passed = it.passed;
        if it.arrived > 0 && it.expected != expected {
            return Err(format!(
                "barrier {barrier} is for {:?} and for {expected:?} threads",
                it.expected
            ));
        }
        it.arrived += threads;
        it.expected = expected;
        block.pass();
        Ok((barrier, passed))
    }

    /// How often a barrier of a block was passed.
    pub(super) fn barrier_passed(&self, block: usize, barrier: usize) -> u64 {
        self.blocks[block].barriers[barrier].passed
    }

    pub(super) fn arrive_at_cluster(&mut self, threads: u32) {
        self.arrived += threads;
        self.pass();
    }

    fn pass(&mut self) {
        if self.arrived > 0 && self.arrived >= self.running {
            self.arrived = 0;
            self.passed += 1;
        }
    }

    /// Threads have ended: those who wait for all others wait for fewer.
    pub(super) fn end(&mut self, block: usize, threads: u32) {
        self.running -= threads;
        self.blocks[block].running -= threads;
        self.blocks[block].pass();
        self.pass();
    }

    /// Bytes of shared memory, as a block sees their address; `None` where that is none.
    pub(super) fn shared(
        &mut self,
        own: usize,
        address: u64,
        count: usize,
    ) -> Result<Option<Bytes>, String> {
        let (rank, offset) = shared_place(address, own);
        let Some(block) = self.blocks.get_mut(rank) else { return Ok(None) };
        block.check_running()?;
        Ok(block.shared.at(offset, count))
    }

    /// Brings something now, or as late as it can be.
    pub(super) fn transfer(&mut self, transfer: Transfer) -> Result<(), String> {
        if transfer.block >= self.blocks.len() {
            return Err(format!("a copy to block {} of {}", transfer.block, self.blocks.len()));
        }
        if self.is_late {
            self.transfers.push(transfer);
            return Ok(());
        }
        self.bring(&transfer)
    }

    /// Brings what was asked for last; false where there is nothing left.
    fn bring_one(&mut self) -> Result<bool, Problem> {
        let Some(transfer) = self.transfers.pop() else { return Ok(false) };
        let (line, thread) = (transfer.line, Some(transfer.thread));
        self.bring(&transfer).map_err(|what| Problem { what, line, thread })?;
        Ok(true)
    }

    fn bring(&mut self, transfer: &Transfer) -> Result<(), String> {
        let Transfer { block, to, moved, map, barrier, .. } = transfer;
        self.blocks[*block].check_running()?;
        let mut bytes = vec![0u8; moved.bytes];
        for run in &moved.runs {
            let from = self.device.at(run.address, run.bytes).ok_or_else(|| {
                format!(
                    "a copy reads {} bytes at {:#x}, which is no memory",
                    run.bytes, run.address
                )
            })?;
            bytes[run.offset..run.offset + run.bytes].copy_from_slice(&from.to_vec());
        }
        let shared = &mut self.blocks[*block].shared;
        if shared.at(*to, moved.bytes).is_none() {
            return Err(format!("a copy writes {} bytes at {to:#x} of shared memory", moved.bytes));
        }
        for (index, chunk) in bytes.chunks(16).enumerate() {
            let place = match map {
                Some(map) => super::copy_engine::place(map, *to, index * 16),
                None => to + index * 16,
            };
            let into = shared.at(place, chunk.len()).ok_or("a copy leaves shared memory")?;
            into.fill_from(chunk);
        }
        let at = shared.at(*barrier, 8).ok_or("a barrier is not in shared memory")?;
        phase::receive(at, moved.bytes)
    }

    /// Bytes of shared memory as the copy engine would store them.
    pub(super) fn stored_bytes(
        &mut self,
        block: usize,
        map: &TensorMap,
        from: usize,
        count: usize,
    ) -> Result<Vec<u8>, String> {
        let shared = &mut self.blocks[block].shared;
        let mut bytes = Vec::with_capacity(count);
        for offset in (0..count).step_by(16) {
            let place = super::copy_engine::place(map, from, offset);
            let chunk = shared.at(place, 16.min(count - offset));
            bytes.extend(chunk.ok_or("a store reads beyond shared memory")?.to_vec());
        }
        Ok(bytes)
    }
}

impl Block {
    /// Shared memory is a block's only as long as it has threads.
    fn check_running(&self) -> Result<(), String> {
        if self.running > 0 {
            return Ok(());
        }
        Err(format!("shared memory of block {:?} is used, which has ended", self.place))
    }

    fn pass(&mut self) {
        for barrier in &mut self.barriers {
            if barrier.arrived > 0 && barrier.arrived >= barrier.expected.unwrap_or(self.running) {
                barrier.arrived = 0;
                barrier.passed += 1;
            }
        }
    }
}

/// Nobody can go on.
fn stuck(kernel: &Kernel, warps: &[Warp]) -> Problem {
    let places = warps.iter().flat_map(|warp| {
        warp.fragments.iter().map(move |fragment| {
            let (what, at) = match fragment.state {
                // It has been run, and those who wait for it go on behind it.
                State::AtBarrier { barrier, .. } => {
                    (format!("at barrier {barrier}"), fragment.next - 1)
                }
                _ => ("waiting".to_string(), fragment.next),
            };
            let line = kernel.instructions.get(at).map_or(0, |instruction| instruction.line);
            format!("block {} warp {} {what}, line {line}", warp.block, warp.number)
        })
    });
    let places: Vec<String> = places.take(8).collect();
    let what = format!("nobody can go on: {}", places.join("; "));
    Problem { what, line: 0, thread: None }
}
