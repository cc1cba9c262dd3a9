//! What lanes, warps and blocks do together.

use super::{After, Done};
use crate::machine::cluster::Cluster;
use crate::machine::lanes::{ALL, LANES, Lanes, mask_of};
use crate::machine::ptx::instruction::{Destination, Operation, Shuffle, Vote};
use crate::machine::warp::{State, Warp};

impl Cluster<'_> {
    /// What lanes do together: those that are named must all be here.
    pub(super) fn together(&mut self, warp: &mut Warp, lanes: u32, operation: &Operation) -> Done {
        let members = match operation {
            Operation::Shuffle { members, .. }
            | Operation::Vote { members, .. }
            | Operation::Elect { members, .. }
            | Operation::AwaitWarp { members } => {
                self.value(warp, *members)[lanes.trailing_zeros() as usize] as u32
            }
            Operation::AwaitCluster
            | Operation::ArriveAtCluster
            | Operation::AwaitBlock { is_aligned: true, .. } => ALL,
            _ => 0,
        };
        if members & warp.running() & !lanes != 0 {
            return Ok(After::Again);
        }
        match operation {
            Operation::Shuffle { of, to, is_valid, a, b, c, .. } => {
                let [a, b, c] = [a, b, c].map(|operand| self.value(warp, *operand));
                let (values, valid) = shuffled(*of, lanes, &a, &b, &c);
                warp.write(*to, lanes, &values);
                if let Some(is_valid) = is_valid {
                    warp.set_predicate(*is_valid, lanes, valid);
                }
            }
            Operation::Vote { of, to, a, .. } => {
                let held = warp.condition(*a) & lanes;
                let holds = match of {
                    Vote::All => held == lanes,
                    Vote::Any => held != 0,
                    Vote::Ballot => false,
                };
                match to {
                    Destination::Predicate(to) => {
                        warp.set_predicate(*to, lanes, if holds { ALL } else { 0 });
                    }
                    Destination::Register(to) => warp.write(*to, lanes, &[held.into(); LANES]),
                }
            }
            Operation::ActiveLanes { to } => warp.write(*to, lanes, &[lanes.into(); LANES]),
            Operation::Elect { to, .. } => {
                warp.set_predicate(*to, lanes, lanes & lanes.wrapping_neg());
            }
            Operation::AwaitWarp { .. } => {}
            Operation::AwaitBlock { barrier, threads, waits, .. } => {
                let first = lanes.trailing_zeros() as usize;
                let barrier = self.value(warp, *barrier)[first];
                let expected = threads.map(|threads| self.value(warp, threads)[first] as u32);
                let (barrier, passed) =
                    self.arrive_at(warp.block, barrier, lanes.count_ones(), expected)?;
                if *waits && self.barrier_passed(warp.block, barrier) == passed {
                    return Ok(After::Wait(State::AtBarrier { barrier, passed }));
                }
            }
            Operation::ArriveAtCluster => {
                warp.cluster_passed = self.passed;
                self.arrive_at_cluster(lanes.count_ones());
            }
            Operation::AwaitCluster => {
                if self.passed == warp.cluster_passed {
                    return Ok(After::Again);
                }
            }
            other => return Err(format!("{other:?} is run elsewhere")),
        }
        Ok(After::Next)
    }
}

/// What lanes have from others, and which of them had another that was there.
fn shuffled(of: Shuffle, lanes: u32, a: &Lanes, b: &Lanes, c: &Lanes) -> (Lanes, u32) {
    let mut values = *a;
    let valid = mask_of(|lane| {
        let (by, clamp) = (b[lane] as usize & 31, c[lane] as usize & 31);
        let segment = (c[lane] >> 8) as usize & 31;
        let most = lane & segment | clamp & !segment;
        let least = lane & segment;
        let (from, is_valid) = match of {
            Shuffle::Up => (lane.wrapping_sub(by), lane >= by && lane - by >= most),
            Shuffle::Down => (lane + by, lane + by <= most),
            Shuffle::Butterfly => (lane ^ by, lane ^ by <= most),
            Shuffle::Index => (least | by & !segment, (least | by & !segment) <= most),
        };
        let from = if is_valid { from } else { lane };
        values[lane] = a[from];
        is_valid && lanes & (1 << from) != 0
    });
    (values, valid)
}
