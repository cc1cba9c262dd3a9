//! What every lane computes by itself.

use std::sync::atomic::{Ordering, fence};

use super::{After, Done};
use crate::machine::access::{from_any, mapped_to, to_any};
use crate::machine::arithmetic;
use crate::machine::cluster::Cluster;
use crate::machine::lanes::LANES;
use crate::machine::ptx::instruction::{Condition, Logic, Operand, Operation};
use crate::machine::warp::Warp;

impl Cluster<'_> {
    /// What every lane computes by itself.
    pub(super) fn numbers(&mut self, warp: &mut Warp, lanes: u32, operation: &Operation) -> Done {
        const NONE: &str = "there is no such instruction for this type";
        let value = |operand: &Operand| self.value(warp, *operand);
        let (to, values) = match operation {
            Operation::Move { to, from } => (to, value(from).into_owned()),
            Operation::Pack { to, from, bits } => {
                let mask = if *bits >= 64 { u64::MAX } else { (1 << bits) - 1 };
                let mut packed = [0; LANES];
                for (index, part) in from.iter().enumerate() {
                    let part = value(part);
                    let shift = index as u32 * bits;
                    packed
                        .iter_mut()
                        .zip(part.iter())
                        .for_each(|(all, part)| *all |= (part & mask) << shift);
                }
                (to, packed)
            }
            Operation::Unpack { to, from, bits } => {
                let from = value(from).into_owned();
                let mask = (1 << bits) - 1;
                for (index, to) in to.iter().enumerate() {
                    let shift = index as u32 * bits;
                    if let Some(to) = to {
                        warp.write(*to, lanes, &from.map(|value| value >> shift & mask));
                    }
                }
                return Ok(After::Next);
            }
            Operation::Unary { of, flushes: false, kind, to, a } => {
                (to, arithmetic::unary(*of, *kind, &value(a)).ok_or(NONE)?)
            }
            Operation::Unary { of, flushes: true, kind, to, a } => {
                let a = arithmetic::flushed(&value(a));
                (to, arithmetic::flushed(&arithmetic::unary(*of, *kind, &a).ok_or(NONE)?))
            }
            Operation::Binary { of, flushes: false, kind, to, a, b } => {
                (to, arithmetic::binary(*of, *kind, &value(a), &value(b)).ok_or(NONE)?)
            }
            Operation::Binary { of, flushes: true, kind, to, a, b } => {
                let [a, b] = [a, b].map(|it| arithmetic::flushed(&value(it)));
                (to, arithmetic::flushed(&arithmetic::binary(*of, *kind, &a, &b).ok_or(NONE)?))
            }
            Operation::Ternary { of, kind, to, a, b, c } => {
                // One after another: as an array they would be moved.
                let (a, b, c) = (value(a), value(b), value(c));
                (to, arithmetic::ternary(*of, *kind, [&a, &b, &c]).ok_or(NONE)?)
            }
            Operation::InsertBits { kind, to, a, b, start, count } => {
                let [a, b, start, count] = [a, b, start, count].map(value);
                (to, arithmetic::insert_bits(*kind, [&a, &b, &start, &count]))
            }
            Operation::Convert { conversion, to, a } => {
                (to, arithmetic::convert(*conversion, &value(a)))
            }
            Operation::ConvertPair { kind, to, high, low } => {
                (to, arithmetic::convert_pair(*kind, &value(high), &value(low)))
            }
            Operation::ConvertTf32 { to, a } => (to, arithmetic::convert_tf32(&value(a))),
            Operation::Compare { of, or_unordered, kind, to, a, b, and } => {
                let holds = arithmetic::compare(*of, *or_unordered, *kind, &value(a), &value(b));
                let holds = match and {
                    None => holds,
                    Some((logic, other)) => combined(*logic, holds, warp.condition(*other)),
                };
                warp.set_predicate(*to, lanes, holds);
                return Ok(After::Next);
            }
            Operation::Select { to, a, b, by } => {
                let (a, b) = (value(a), value(b));
                let first = warp.condition(Condition::Is(*by));
                let pick = |lane: usize| if first & (1 << lane) != 0 { a[lane] } else { b[lane] };
                (to, std::array::from_fn(pick))
            }
            Operation::SetPredicate { to, from } => {
                let holds = warp.condition(*from);
                warp.set_predicate(*to, lanes, holds);
                return Ok(After::Next);
            }
            Operation::CombinePredicates { of, to, a, b } => {
                let [a, b] = [*a, *b].map(|it| warp.condition(Condition::Is(it)));
                warp.set_predicate(*to, lanes, combined(*of, a, b));
                return Ok(After::Next);
            }
            Operation::ToAny { space, to, a } => (to, value(a).map(|a| to_any(*space, a))),
            Operation::FromAny { space, to, a } => (to, value(a).map(|a| from_any(*space, a))),
            Operation::MapToBlock { to, a, rank } => {
                let (a, rank) = (value(a), value(rank));
                (to, std::array::from_fn(|lane| mapped_to(a[lane], rank[lane])))
            }
            Operation::Fence => {
                fence(Ordering::SeqCst);
                return Ok(After::Next);
            }
            Operation::Nothing => return Ok(After::Next),
            Operation::Trap => return Err("the kernel stopped itself".to_string()),
            other => return Err(format!("{other:?} is run elsewhere")),
        };
        warp.write(*to, lanes, &values);
        Ok(After::Next)
    }
}

fn combined(logic: Logic, a: u32, b: u32) -> u32 {
    match logic {
        Logic::And => a & b,
        Logic::Or => a | b,
        Logic::Xor => a ^ b,
    }
}
