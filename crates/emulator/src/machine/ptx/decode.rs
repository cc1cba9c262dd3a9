//! The name of an instruction and its arguments as what is run.

use super::argument::Arguments;
use super::instruction::{
    Atomic, Binary, Bulk, Comparison, Condition, Conversion, Destination, Factors, Kind, Logic,
    Operand, Operation, PhaseBarrier, Rounding, Shuffle, Space, Ternary, Unary, Vote,
};

/// An instruction whose name has these parts, but for branches.
pub(super) fn decode(name: &str, arguments: &Arguments) -> Result<Operation, String> {
    let parts: Vec<&str> = name.split('.').collect();
    let decoder = Decoder { parts: &parts, of: arguments };
    let families = [
        |it: &Decoder<'_>| it.order(),
        |it: &Decoder<'_>| it.moves(),
        |it: &Decoder<'_>| it.arithmetic(),
        |it: &Decoder<'_>| it.decisions(),
        |it: &Decoder<'_>| it.memory(),
        |it: &Decoder<'_>| it.warps(),
        |it: &Decoder<'_>| it.copies(),
    ];
    for family in families {
        if let Some(operation) = family(&decoder)? {
            return Ok(operation);
        }
    }
    Err("there is no such instruction here".to_string())
}

/// What a family of instructions makes of it; `None` where it is none of the family.
type Decoded = Result<Option<Operation>, String>;

struct Decoder<'a> {
    parts: &'a [&'a str],
    of: &'a Arguments,
}

impl Decoder<'_> {
    fn has(&self, part: &str) -> bool {
        self.parts.contains(&part)
    }

    /// The kind that the name ends with.
    fn kind(&self) -> Result<Kind, String> {
        let last = self.parts.last().copied().unwrap_or_default();
        Kind::parse(last).ok_or_else(|| format!("{last} is no type"))
    }

    /// What waits for nothing here, and what ends a thread.
    fn order(&self) -> Decoded {
        Ok(Some(match self.parts {
            ["ret" | "exit"] => Operation::Exit,
            ["trap"] => Operation::Trap,
            [
                "griddepcontrol" | "membar" | "fence" | "nanosleep" | "prefetch" | "setmaxnreg",
                ..,
            ]
            | ["wgmma", "fence", ..] => Operation::Nothing,
            _ => return Ok(None),
        }))
    }

    fn moves(&self) -> Decoded {
        let of = self.of;
        Ok(Some(match self.parts {
            ["mov", "pred"] => {
                Operation::SetPredicate { to: of.predicate(0)?, from: of.condition(1)? }
            }
            ["mov", _] if of.is_list(0) => {
                let to = of.destinations(0)?;
                let bits = self.kind()?.bytes() as u32 * 8 / to.len() as u32;
                Operation::Unpack { to, from: of.operand(1)?, bits }
            }
            ["mov", _] if of.is_list(1) => {
                let from = of.operands(1)?;
                let bits = self.kind()?.bytes() as u32 * 8 / from.len() as u32;
                Operation::Pack { to: of.register(0)?, from, bits }
            }
            ["mov", _] => Operation::Move { to: of.register(0)?, from: of.operand(1)? },
            ["cvta", "to", space, _] => {
                let (to, a) = (of.register(0)?, of.operand(1)?);
                Operation::FromAny { space: space_of(space)?, to, a }
            }
            ["cvta", space, _] => {
                let (to, a) = (of.register(0)?, of.operand(1)?);
                Operation::ToAny { space: space_of(space)?, to, a }
            }
            ["cvt", "rna", "tf32", "f32"] => {
                Operation::ConvertTf32 { to: of.register(0)?, a: of.operand(1)? }
            }
            ["cvt", "rn", pair @ ("f16x2" | "bf16x2"), "f32"] => {
                let kind = if *pair == "f16x2" { Kind::F16 } else { Kind::Bf16 };
                let (high, low) = (of.operand(1)?, of.operand(2)?);
                Operation::ConvertPair { kind, to: of.register(0)?, high, low }
            }
            ["cvt", ..] => {
                let conversion = self.conversion()?;
                Operation::Convert { conversion, to: of.register(0)?, a: of.operand(1)? }
            }
            ["mapa", ..] => {
                let (a, rank) = (of.operand(1)?, of.operand(2)?);
                Operation::MapToBlock { to: of.register(0)?, a, rank }
            }
            _ => return Ok(None),
        }))
    }

    fn conversion(&self) -> Result<Conversion, String> {
        let [.., to, from] = self.parts else { return Err("two types are missing".to_string()) };
        let kind = |name: &str| {
            let kind = Kind::parse(name).filter(|kind| !kind.is_pair());
            kind.ok_or_else(|| format!("{name} is not converted here"))
        };
        let (mut rounding, mut is_integral, mut is_saturating) = (Rounding::Nearest, false, false);
        for part in &self.parts[1..self.parts.len() - 2] {
            (rounding, is_integral) = match *part {
                "rn" => (Rounding::Nearest, is_integral),
                "rz" => (Rounding::Zero, is_integral),
                "rm" => (Rounding::Down, is_integral),
                "rp" => (Rounding::Up, is_integral),
                "rni" => (Rounding::Nearest, true),
                "rzi" => (Rounding::Zero, true),
                "rmi" => (Rounding::Down, true),
                "rpi" => (Rounding::Up, true),
                "sat" => {
                    is_saturating = true;
                    continue;
                }
                "ftz" => continue,
                other => return Err(format!("{other} is no way to convert")),
            };
        }
        Ok(Conversion { to: kind(to)?, from: kind(from)?, rounding, is_integral, is_saturating })
    }

    fn arithmetic(&self) -> Decoded {
        let of = self.of;
        if self.parts.last() == Some(&"pred") {
            return Ok(None);
        }
        if let Some(unary) = self.unary() {
            let (kind, to, a) = (self.kind()?, of.register(0)?, of.operand(1)?);
            return Ok(Some(Operation::Unary { of: unary, kind, to, a }));
        }
        if let Some(binary) = self.binary() {
            let directed = ["rz", "rm", "rp"].into_iter().find(|rounding| self.has(rounding));
            if let Some(rounding) = directed {
                return self.rounded(binary, rounding_of(rounding)).map(Some);
            }
            let kind = match binary {
                Binary::MultiplyWide => self.kind()?.wide().ok_or("it is not wide")?,
                _ => self.kind()?,
            };
            let (to, a, b) = (of.register(0)?, of.operand(1)?, of.operand(2)?);
            return Ok(Some(Operation::Binary { of: binary, kind, to, a, b }));
        }
        if let Some(ternary) = self.ternary()? {
            let kind = match ternary {
                Ternary::MultiplyAddWide => self.kind()?.wide().ok_or("it is not wide")?,
                _ => self.kind()?,
            };
            let (to, a, b, c) = (of.register(0)?, of.operand(1)?, of.operand(2)?, of.operand(3)?);
            return Ok(Some(Operation::Ternary { of: ternary, kind, to, a, b, c }));
        }
        if self.parts[0] == "bfi" {
            let (kind, to) = (self.kind()?, of.register(0)?);
            let (a, b) = (of.operand(1)?, of.operand(2)?);
            let (start, count) = (of.operand(3)?, of.operand(4)?);
            return Ok(Some(Operation::InsertBits { kind, to, a, b, start, count }));
        }
        Ok(None)
    }

    /// What is not rounded to the nearest number, as a product and a sum at once.
    fn rounded(&self, binary: Binary, rounding: Rounding) -> Result<Operation, String> {
        let of = self.of;
        let float = |value: f32| Operand::Immediate(value.to_bits().into());
        let (x, y) = (of.operand(1)?, of.operand(2)?);
        let [a, b, c] = match (binary, self.kind()?) {
            (Binary::Add, Kind::F32) => [x, float(1.0), y],
            (Binary::Subtract, Kind::F32) => [y, float(-1.0), x],
            (Binary::MultiplyLow, Kind::F32) => [x, y, float(-0.0)],
            _ => return Err("it is rounded to the nearest number alone here".to_string()),
        };
        let (of, kind, to) = (Ternary::FusedMultiplyAdd(rounding), Kind::F32, of.register(0)?);
        Ok(Operation::Ternary { of, kind, to, a, b, c })
    }

    fn unary(&self) -> Option<Unary> {
        Some(match self.parts[0] {
            "neg" => Unary::Negate,
            "abs" => Unary::Absolute,
            "not" => Unary::Not,
            "popc" => Unary::CountOnes,
            "clz" => Unary::CountLeadingZeros,
            "brev" => Unary::ReverseBits,
            "rcp" => Unary::Reciprocal,
            "sqrt" => Unary::SquareRoot,
            "rsqrt" => Unary::ReciprocalSquareRoot,
            "ex2" => Unary::Exponential2,
            "lg2" => Unary::Logarithm2,
            "sin" => Unary::Sine,
            "cos" => Unary::Cosine,
            "tanh" => Unary::Tanh,
            _ => return None,
        })
    }

    fn binary(&self) -> Option<Binary> {
        let is_of_nan = self.has("NaN");
        Some(match self.parts[0] {
            "add" => Binary::Add,
            "sub" => Binary::Subtract,
            "mul" if self.has("hi") => Binary::MultiplyHigh,
            "mul" if self.has("wide") => Binary::MultiplyWide,
            "mul" => Binary::MultiplyLow,
            "div" => Binary::Divide,
            "rem" => Binary::Remainder,
            "min" if is_of_nan => Binary::MinimumOrNan,
            "max" if is_of_nan => Binary::MaximumOrNan,
            "min" => Binary::Minimum,
            "max" => Binary::Maximum,
            "and" => Binary::And,
            "or" => Binary::Or,
            "xor" => Binary::Xor,
            "shl" => Binary::ShiftLeft,
            "shr" => Binary::ShiftRight,
            "copysign" => Binary::CopySign,
            _ => return None,
        })
    }

    fn ternary(&self) -> Result<Option<Ternary>, String> {
        Ok(Some(match self.parts {
            ["mad", "wide", _] => Ternary::MultiplyAddWide,
            ["mad", "hi", _] => Ternary::MultiplyAddHigh,
            ["mad", "lo", _] => Ternary::MultiplyAddLow,
            ["fma" | "mad", rounding @ ("rn" | "rz" | "rm" | "rp"), ..] => {
                Ternary::FusedMultiplyAdd(rounding_of(rounding))
            }
            ["prmt", "b32"] => Ternary::Permute,
            ["bfe", _] => Ternary::ExtractBits,
            ["shf", "l", "wrap", _] => Ternary::FunnelLeft,
            ["shf", "r", "wrap", _] => Ternary::FunnelRight,
            ["lop3", "b32"] => Ternary::Logic(self.of.number(4)? as u8),
            _ => return Ok(None),
        }))
    }

    fn decisions(&self) -> Decoded {
        let of = self.of;
        Ok(Some(match self.parts {
            ["setp", comparison, rest @ ..] => {
                let and = match rest {
                    ["and", ..] => Some((Logic::And, of.condition(3)?)),
                    ["or", ..] => Some((Logic::Or, of.condition(3)?)),
                    ["xor", ..] => Some((Logic::Xor, of.condition(3)?)),
                    _ => None,
                };
                let (to, a, b) = (of.predicate(0)?, of.operand(1)?, of.operand(2)?);
                let (kind, (comparison, or_unordered)) = (self.kind()?, comparison_of(comparison)?);
                if kind.is_pair() {
                    return Err("pairs are not compared here".to_string());
                }
                Operation::Compare { of: comparison, or_unordered, kind, to, a, b, and }
            }
            ["selp", _] => {
                let (to, a, b) = (of.register(0)?, of.operand(1)?, of.operand(2)?);
                Operation::Select { to, a, b, by: of.predicate(3)? }
            }
            ["not", "pred"] => match of.condition(1)? {
                Condition::Is(a) => {
                    Operation::SetPredicate { to: of.predicate(0)?, from: Condition::IsNot(a) }
                }
                other => return Err(format!("{other:?} is no predicate")),
            },
            [logic @ ("and" | "or" | "xor"), "pred"] => {
                let combined = match *logic {
                    "and" => Logic::And,
                    "or" => Logic::Or,
                    _ => Logic::Xor,
                };
                let (to, a, b) = (of.predicate(0)?, of.predicate(1)?, of.predicate(2)?);
                Operation::CombinePredicates { of: combined, to, a, b }
            }
            _ => return Ok(None),
        }))
    }

    fn memory(&self) -> Decoded {
        let of = self.of;
        Ok(Some(match self.parts {
            ["ld", ..] => {
                let (space, kind) = (self.space(), self.kind()?);
                Operation::Load { space, kind, to: of.destinations(0)?, from: of.address(1)? }
            }
            ["st", ..] => {
                let (space, kind) = (self.space(), self.kind()?);
                Operation::Store { space, kind, to: of.address(0)?, from: of.operands(1)? }
            }
            ["atom", ..] => {
                let (to, at) = (of.destination(0)?, of.address(1)?);
                self.atomic(to, at, of.operand(2)?, of.optional_operand(3)?)?
            }
            ["red", ..] => self.atomic(None, of.address(0)?, of.operand(1)?, None)?,
            ["ldmatrix", ..] => {
                let (to, at) = (of.registers(0)?, of.address(1)?);
                Operation::LoadMatrices { to, at, is_transposed: self.has("trans") }
            }
            ["stmatrix", ..] => {
                let (at, from) = (of.address(0)?, of.registers(1)?);
                Operation::StoreMatrices { from, at, is_transposed: self.has("trans") }
            }
            ["mbarrier", what, rest @ ..] => self.phase(what, rest)?,
            _ => return Ok(None),
        }))
    }

    fn space(&self) -> Space {
        let is_shared = |part: &&&str| part.starts_with("shared");
        if self.parts.iter().find(is_shared).is_some() {
            Space::Shared
        } else if self.has("param") {
            Space::Parameters
        } else if self.has("local") {
            Space::Local
        } else {
            Space::Any
        }
    }

    fn atomic(
        &self,
        to: Option<u32>,
        at: super::instruction::Address,
        a: Operand,
        b: Option<Operand>,
    ) -> Result<Operation, String> {
        let of = match () {
            () if self.has("add") => Atomic::Add,
            () if self.has("min") => Atomic::Minimum,
            () if self.has("max") => Atomic::Maximum,
            () if self.has("and") => Atomic::And,
            () if self.has("or") => Atomic::Or,
            () if self.has("exch") => Atomic::Exchange,
            () if self.has("cas") => Atomic::CompareAndSwap,
            () => return Err("there is no such atomic operation here".to_string()),
        };
        Ok(Operation::Atomic { of, space: self.space(), kind: self.kind()?, to, at, a, b })
    }

    fn phase(&self, what: &str, rest: &[&str]) -> Result<Operation, String> {
        let of = self.of;
        let (barrier, phase) = match what {
            "init" => (of.address(0)?, PhaseBarrier::Start { arrivals: of.operand(1)? }),
            "arrive" if rest.first() == Some(&"expect_tx") => {
                (of.address(1)?, PhaseBarrier::ArriveExpecting { bytes: of.operand(2)? })
            }
            "arrive" => {
                let count = of.optional_operand(2)?.unwrap_or(Operand::Immediate(1));
                (of.address(1)?, PhaseBarrier::Arrive { count })
            }
            "try_wait" | "test_wait" if rest.first() == Some(&"parity") => {
                let (to, parity, may_wait) = (of.predicate(0)?, of.operand(2)?, what == "try_wait");
                (of.address(1)?, PhaseBarrier::Test { parity, to, may_wait })
            }
            "inval" => return Ok(Operation::Nothing),
            _ => return Err("there is no such barrier here".to_string()),
        };
        Ok(Operation::Phase { barrier, of: phase })
    }

    fn warps(&self) -> Decoded {
        let of = self.of;
        Ok(Some(match self.parts {
            ["shfl", "sync", way, _] => {
                let shuffle = match *way {
                    "up" => Shuffle::Up,
                    "down" => Shuffle::Down,
                    "bfly" => Shuffle::Butterfly,
                    _ => Shuffle::Index,
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
                let (_, to) = of.pair(0)?;
                let to = to.ok_or("nobody is told who was elected")?;
                Operation::Elect { to, members: of.operand(1)? }
            }
            ["bar", "warp", "sync"] => Operation::AwaitWarp { members: of.operand(0)? },
            ["bar" | "barrier", "cluster", "arrive", ..] => Operation::ArriveAtCluster,
            ["bar" | "barrier", "cluster", "wait", ..] => Operation::AwaitCluster,
            ["bar" | "barrier", rest @ ..] => {
                let waits = match rest {
                    ["sync", ..] | ["cta", "sync", ..] => true,
                    ["arrive", ..] | ["cta", "arrive", ..] => false,
                    _ => return Err("there is no such barrier here".to_string()),
                };
                let (barrier, threads) = (of.operand(0)?, of.optional_operand(1)?);
                Operation::AwaitBlock { barrier, threads, waits }
            }
            ["mma", "sync", "aligned", shape, "row", "col", "f32", factors, _, "f32"] => {
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
                let (a, b, factors) = (of.registers(1)?, of.registers(2)?, factors_of(factors)?);
                Operation::MultiplyMatrices { factors, depth, to, a, b, c }
            }
            ["wgmma", "mma_async", "sync", "aligned", shape, "f32", factors, _] => {
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
                let (factors, is_added) = (factors_of(factors)?, of.condition(3)?);
                if sums.len() * 2 != columns {
                    return Err(format!("{} sums for {columns} columns", sums.len()));
                }
                Operation::MultiplyByWarpgroup { factors, columns, sums, a, b, is_added }
            }
            ["wgmma", "commit_group", ..] => Operation::CommitWarpgroup,
            ["wgmma", "wait_group", ..] => Operation::AwaitWarpgroup { left: of.number(0)? },
            _ => return Ok(None),
        }))
    }

    fn copies(&self) -> Decoded {
        let of = self.of;
        Ok(Some(match self.parts {
            ["cp", "async", "commit_group"] => Operation::CommitCopies,
            ["cp", "async", "wait_group"] => Operation::AwaitCopies { left: of.number(0)? },
            ["cp", "async", "wait_all"] => Operation::AwaitCopies { left: 0 },
            ["cp", "async", "ca" | "cg", ..] => {
                let (to, from, bytes) = (of.address(0)?, of.address(1)?, of.number(2)?);
                Operation::CopyAsync { to, from, bytes, read: of.optional_operand(3)? }
            }
            ["cp", "async", "bulk", "commit_group"] => Operation::CommitStores,
            ["cp", "async", "bulk", "wait_group", ..] => {
                Operation::AwaitStores { left: of.number(0)? }
            }
            ["cp", "async", "bulk", "tensor", _, "global", "shared::cta", ..] => {
                let (map, at) = of.tensor(0)?;
                Operation::Bulk(Bulk::StoreBox { map, at, from: of.plain_address(1)? })
            }
            ["cp", "async", "bulk", "tensor", _, "shared::cluster", "global", mode, ..] => {
                let to = of.plain_address(0)?;
                let ((map, at), barrier) = (of.tensor(1)?, of.plain_address(2)?);
                Operation::Bulk(match *mode {
                    "im2col" => {
                        let offsets = of.operands(3)?;
                        Bulk::LoadWindows { to, map, at, barrier, offsets }
                    }
                    _ => Bulk::LoadBox { to, map, at, barrier },
                })
            }
            ["cp", "async", "bulk", "shared::cluster", "global", ..] => {
                let (to, from) = (of.plain_address(0)?, of.plain_address(1)?);
                let (bytes, barrier) = (of.operand(2)?, of.plain_address(3)?);
                Operation::Bulk(Bulk::LoadBytes { to, from, bytes, barrier })
            }
            _ => return Ok(None),
        }))
    }
}

/// A comparison, and whether it also holds where one of the floats is not a number.
fn comparison_of(name: &str) -> Result<(Comparison, bool), String> {
    Ok(match name {
        "eq" => (Comparison::Equal, false),
        "equ" => (Comparison::Equal, true),
        "ne" => (Comparison::NotEqual, false),
        "neu" => (Comparison::NotEqual, true),
        "lt" | "lo" => (Comparison::Less, false),
        "ltu" => (Comparison::Less, true),
        "le" | "ls" => (Comparison::LessOrEqual, false),
        "leu" => (Comparison::LessOrEqual, true),
        "gt" | "hi" => (Comparison::Greater, false),
        "gtu" => (Comparison::Greater, true),
        "ge" | "hs" => (Comparison::GreaterOrEqual, false),
        "geu" => (Comparison::GreaterOrEqual, true),
        "nan" => (Comparison::Unordered, true),
        "num" => (Comparison::Ordered, false),
        other => return Err(format!("{other} compares nothing")),
    })
}

fn rounding_of(name: &str) -> Rounding {
    match name {
        "rz" => Rounding::Zero,
        "rm" => Rounding::Down,
        "rp" => Rounding::Up,
        _ => Rounding::Nearest,
    }
}

fn factors_of(name: &str) -> Result<Factors, String> {
    Ok(match name {
        "f16" => Factors::F16,
        "bf16" => Factors::Bf16,
        "tf32" => Factors::Tf32,
        other => return Err(format!("{other} is not multiplied here")),
    })
}

fn space_of(name: &str) -> Result<Space, String> {
    Ok(match name {
        "global" | "const" => Space::Any,
        "shared" => Space::Shared,
        "param" => Space::Parameters,
        "local" => Space::Local,
        other => return Err(format!("{other} is no space")),
    })
}
