//! Instructions that lanes, warps and blocks run together.

use super::super::instruction::{Destination, Factors, Operation, Shuffle, Vote};
use super::{Decoded, Decoder};

impl Decoder<'_> {
    pub(super) fn warps(&self) -> Decoded {
        let of = self.of;
        Ok(Some(match self.parts {
            ["shfl", "sync", way, _] => {
                let shuffle = match *way {
                    "up" => Shuffle::Up,
                    "down" => Shuffle::Down,
                    "bfly" => Shuffle::Butterfly,
                    "idx" => Shuffle::Index,
                    other => return Err(format!("there is no shuffle {other} here")),
                };
                let (to, is_valid) = of.pair(0)?;
                let to = to.ok_or("a shuffle without a destination")?;
                let (a, b, c) = (of.operand(1)?, of.operand(2)?, of.operand(3)?);
                Operation::Shuffle { of: shuffle, to, is_valid, a, b, c, members: of.operand(4)? }
            }
            ["vote", "sync", way, _] => {
                let vote = match *way {
                    "all" => Vote::All,
                    "any" => Vote::Any,
                    "ballot" => Vote::Ballot,
                    other => return Err(format!("there is no vote {other} here")),
                };
                let to = match of.is_condition(0) {
                    true => Destination::Predicate(of.predicate(0)?),
                    false => Destination::Register(of.register(0)?),
                };
                Operation::Vote { of: vote, to, a: of.condition(1)?, members: of.operand(2)? }
            }
            ["activemask", _] => Operation::ActiveLanes { to: of.register(0)? },
            ["elect", "sync"] => {
                let (leader, to) = of.pair(0)?;
                let to = to.ok_or("nobody is told who was elected")?;
                if leader.is_some() {
                    return Err("the number of who was elected is not told here".to_string());
                }
                Operation::Elect { to, members: of.operand(1)? }
            }
            ["bar", "warp", "sync"] => Operation::AwaitWarp { members: of.operand(0)? },
            ["barrier", "cluster", "arrive", "aligned"]
            | ["barrier", "cluster", "arrive", "release" | "relaxed", "aligned"] => {
                Operation::ArriveAtCluster
            }
            ["barrier", "cluster", "wait", "aligned"]
            | ["barrier", "cluster", "wait", "acquire", "aligned"] => Operation::AwaitCluster,
            [name @ ("bar" | "barrier"), rest @ ..] => {
                let (waits, rest) = match rest {
                    ["sync", rest @ ..] | ["cta", "sync", rest @ ..] => (true, rest),
                    ["arrive", rest @ ..] | ["cta", "arrive", rest @ ..] => (false, rest),
                    _ => return Err("there is no such barrier here".to_string()),
                };
                let is_aligned = match rest {
                    [] => *name == "bar",
                    ["aligned"] => *name == "barrier",
                    _ => return Err("there is no such barrier here".to_string()),
                };
                let (barrier, threads) = (of.operand(0)?, of.optional_operand(1)?);
                if !waits && threads.is_none() {
                    return Err("who arrives does not say how many do".to_string());
                }
                Operation::AwaitBlock { barrier, threads, waits, is_aligned }
            }
            ["mma", "sync", "aligned", shape, "row", "col", "f32", factors, other, "f32"] => {
                let depth = match *shape {
                    "m16n8k8" => 8,
                    "m16n8k16" => 16,
                    other => return Err(format!("there is no product {other} here")),
                };
                let four = |index: usize| {
                    let registers = of.registers(index)?;
                    <[u32; 4]>::try_from(registers).map_err(|_| "not four sums".to_string())
                };
                let (to, c) = (four(0)?, four(3)?);
                let (a, b) = (of.registers(1)?, of.registers(2)?);
                let factors = factors_of(factors, other)?;
                let depth_of_word = if factors == Factors::Tf32 { 4 } else { 8 };
                if b.len() * depth_of_word != depth || a.len() != 2 * b.len() {
                    return Err(format!("{} and {} words of factors", a.len(), b.len()));
                }
                Operation::MultiplyMatrices { factors, depth, to, a, b, c }
            }
            ["wgmma", "mma_async", "sync", "aligned", shape, "f32", factors, other] => {
                if of.number(4)? != 1 || of.number(5)? != 1 {
                    return Err("factors are not negated here".to_string());
                }
                if of.len() > 6 && (of.number(6)? != 0 || of.number(7)? != 0) {
                    return Err("operands are not transposed here".to_string());
                }
                let columns = shape.strip_prefix("m64n").and_then(|it| it.strip_suffix("k16"));
                let columns = columns.and_then(|columns| columns.parse().ok());
                let columns = columns.ok_or_else(|| format!("there is no product {shape} here"))?;
                let (sums, a, b) = (of.registers(0)?, of.operand(1)?, of.operand(2)?);
                let (factors, is_added) = (factors_of(factors, other)?, of.condition(3)?);
                if sums.len() * 2 != columns {
                    return Err(format!("{} sums for {columns} columns", sums.len()));
                }
                Operation::MultiplyByWarpgroup { factors, columns, sums, a, b, is_added }
            }
            ["wgmma", "commit_group", "sync", "aligned"] => Operation::CommitWarpgroup,
            ["wgmma", "wait_group", "sync", "aligned"] => {
                Operation::AwaitWarpgroup { left: of.number(0)? }
            }
            _ => return Ok(None),
        }))
    }
}

/// What both factors are.
fn factors_of(name: &str, other: &str) -> Result<Factors, String> {
    match (name, other) {
        ("f16", "f16") => Ok(Factors::F16),
        ("bf16", "bf16") => Ok(Factors::Bf16),
        ("tf32", "tf32") => Ok(Factors::Tf32),
        _ => Err(format!("{name} and {other} are not multiplied here")),
    }
}
