//! Loads, stores, atomic operations, copies that threads ask for, and barriers in shared memory.

use std::sync::atomic::{Ordering, fence};

use super::{After, Done};
use crate::machine::access::{found, unchanging};
use crate::machine::arithmetic;
use crate::machine::cluster::Cluster;
use crate::machine::lanes::{LANES, Lanes, lanes_of};
use crate::machine::phase;
use crate::machine::ptx::instruction::{Address, Atomic, Binary, Operation, PhaseBarrier, Space};
use crate::machine::warp::{PendingCopy, Warp};

impl Cluster<'_> {
    pub(super) fn memory(&mut self, warp: &mut Warp, lanes: u32, operation: &Operation) -> Done {
        match operation {
            Operation::Load { space, kind, to, from, is_acquire } => {
                let addresses = self.addresses(warp, from);
                let size = kind.bytes();
                let mut values = vec![[0; LANES]; to.len()];
                for lane in lanes_of(lanes) {
                    let count = size * to.len();
                    let (place, at) = found(*space, addresses[lane]);
                    let all = match place {
                        Space::Parameters => Some(self.launch.parameters),
                        Space::Constants => Some(&*self.launch.kernel.constants),
                        _ => None,
                    };
                    if let Some(all) = all {
                        let bytes = unchanging(all, at, count)
                            .ok_or_else(|| format!("{count} bytes at {at} of {place:?}"))?;
                        for (value, bytes) in values.iter_mut().zip(bytes.chunks(size)) {
                            let mut word = [0; 8];
                            word[..size].copy_from_slice(bytes);
                            value[lane] = arithmetic::extended(*kind, u64::from_le_bytes(word));
                        }
                        continue;
                    }
                    let bytes = self.bytes(warp, lane, *space, addresses[lane], count, count)?;
                    for (index, value) in values.iter_mut().enumerate() {
                        value[lane] = arithmetic::extended(*kind, bytes.read(index * size, size));
                    }
                }
                if *is_acquire {
                    fence(Ordering::Acquire);
                }
                for (to, values) in to.iter().zip(&values) {
                    if let Some(to) = to {
                        warp.write(*to, lanes, values);
                    }
                }
            }
            Operation::Store { space, kind, to, from, is_release } => {
                if *is_release {
                    fence(Ordering::Release);
                }
                let addresses = self.addresses(warp, to);
                let size = kind.bytes();
                let values: Vec<Lanes> =
                    from.iter().map(|from| self.value(warp, *from).into_owned()).collect();
                for lane in lanes_of(lanes) {
                    let count = size * from.len();
                    let bytes = self.bytes(warp, lane, *space, addresses[lane], count, count)?;
                    for (index, value) in values.iter().enumerate() {
                        bytes.write(index * size, size, value[lane]);
                    }
                }
            }
            Operation::Atomic { of, space, kind, to, at, a, b } => {
                let (addresses, a) = (self.addresses(warp, at), self.value(warp, *a).into_owned());
                let b = b.map(|b| self.value(warp, b).into_owned());
                let size = kind.bytes();
                let mut before = [0; LANES];
                for lane in lanes_of(lanes) {
                    let bytes = self.bytes(warp, lane, *space, addresses[lane], size, size)?;
                    // A number that is written out may have more bits than the kind.
                    let a = a[lane] & (u64::MAX >> (64 - 8 * size));
                    let mut old = bytes.read(0, size);
                    loop {
                        let combine = |of: Binary| arithmetic::combine(of, *kind, old, a);
                        let new = match of {
                            Atomic::Add => combine(Binary::Add),
                            Atomic::Minimum => combine(Binary::Minimum),
                            Atomic::Maximum => combine(Binary::Maximum),
                            Atomic::And => combine(Binary::And),
                            Atomic::Or => combine(Binary::Or),
                            Atomic::Exchange => Some(a),
                            Atomic::CompareAndSwap => {
                                let with = b.ok_or("nothing to swap with")?[lane];
                                Some(if old == a { with } else { old })
                            }
                        };
                        let new = new.ok_or("there is no such atomic operation")?;
                        match bytes.exchange(size, old, new) {
                            Ok(()) => break,
                            Err(found) => old = found,
                        }
                    }
                    before[lane] = old;
                }
                if let Some(to) = to {
                    warp.write(*to, lanes, &before);
                }
            }
            Operation::CopyAsync { to, from, bytes, read } => {
                let (to, from) = (self.addresses(warp, to), self.addresses(warp, from));
                let read = read.map(|read| self.value(warp, read).into_owned());
                let bytes = *bytes as usize;
                for lane in lanes_of(lanes) {
                    let read = read.map_or(bytes, |read| (read[lane] as u32 as usize).min(bytes));
                    let group = warp.copies.groups;
                    let copy = PendingCopy { group, to: to[lane], from: from[lane], bytes, read };
                    if self.is_late {
                        warp.copies.pending.push(copy);
                    } else {
                        self.copy(warp, &copy)?;
                    }
                }
            }
            Operation::CommitCopies => warp.copies.groups += 1,
            Operation::AwaitCopies { left } => {
                let past = warp.copies.groups.saturating_sub(*left);
                let (due, pending) = std::mem::take(&mut warp.copies.pending)
                    .into_iter()
                    .partition(|copy| copy.group < past);
                warp.copies.pending = pending;
                let due: Vec<PendingCopy> = due;
                for copy in due {
                    self.copy(warp, &copy)?;
                }
            }
            Operation::Bulk(bulk) => self.bulk(warp, lanes, bulk)?,
            Operation::CommitStores => {
                for store in warp.stores.iter_mut().filter(|it| lanes & 1 << it.lane != 0) {
                    store.later_groups = Some(store.later_groups.map_or(0, |later| later + 1));
                }
            }
            Operation::AwaitStores { left } => {
                let stores = std::mem::take(&mut warp.stores);
                for store in stores {
                    if lanes & 1 << store.lane == 0
                        || store.later_groups.is_none_or(|later| later < *left)
                    {
                        warp.stores.push(store);
                        continue;
                    }
                    let now = self.shared(warp.block, store.from as u64, store.bytes.len())?;
                    if now.is_none_or(|now| now.to_vec() != store.bytes) {
                        return Err("what is stored was overwritten before it was read".to_string());
                    }
                }
            }
            Operation::Phase { barrier, of } => return self.phase(warp, lanes, barrier, of),
            other => return Err(format!("{other:?} is run elsewhere")),
        }
        Ok(After::Next)
    }

    /// Copies what a lane asked for; what is not read is zero.
    fn copy(&mut self, warp: &mut Warp, copy: &PendingCopy) -> Result<(), String> {
        let PendingCopy { to, from, bytes, read, .. } = *copy;
        let mut moved = vec![0; bytes];
        if read > 0 {
            let source = self.bytes(warp, 0, Space::Any, from, read, bytes)?;
            moved[..read].copy_from_slice(&source.to_vec());
        }
        self.bytes(warp, 0, Space::Shared, to, bytes, bytes)?.fill_from(&moved);
        Ok(())
    }

    fn phase(&mut self, warp: &mut Warp, lanes: u32, barrier: &Address, of: &PhaseBarrier) -> Done {
        let addresses = self.addresses(warp, barrier);
        let argument = match of {
            PhaseBarrier::Start { arrivals: a }
            | PhaseBarrier::Arrive { count: a }
            | PhaseBarrier::ArriveExpecting { bytes: a }
            | PhaseBarrier::Test { parity: a, .. } => self.value(warp, *a).into_owned(),
            PhaseBarrier::End => [0; LANES],
        };
        let mut ended = 0;
        for lane in lanes_of(lanes) {
            let at = self.bytes(warp, lane, Space::Shared, addresses[lane], 8, 8)?;
            let argument = argument[lane] & u64::from(u32::MAX);
            match of {
                PhaseBarrier::Start { .. } => phase::start(at, argument)?,
                PhaseBarrier::End => phase::end(at)?,
                PhaseBarrier::Arrive { .. } => phase::arrive(at, argument, 0)?,
                PhaseBarrier::ArriveExpecting { .. } => phase::arrive(at, 1, argument)?,
                PhaseBarrier::Test { .. } => {
                    ended |= u32::from(phase::has_ended(at, argument)?) << lane;
                }
            }
        }
        if let PhaseBarrier::Test { to, may_wait, .. } = of {
            let waiting = lanes & !ended;
            if *may_wait && waiting != 0 {
                // Who waits may be told that it has not come yet, and has to ask again.
                if !self.is_late || waiting & !warp.refused == 0 {
                    return Ok(After::Again);
                }
                warp.refused |= waiting;
            } else if waiting != 0 {
                self.asked += 1;
            }
            warp.refused &= !ended;
            warp.set_predicate(*to, lanes, ended);
        }
        Ok(After::Next)
    }
}
