//! Instructions that lanes run each by itself: moves, arithmetic, comparisons.

use super::super::instruction::{
    Binary, Comparison, Condition, Conversion, Kind, Logic, Operand, Operation, Rounding, Ternary,
    Unary,
};
use super::{Decoded, Decoder, space_of};

impl Decoder<'_> {
    pub(super) fn moves(&self) -> Decoded {
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
            ["mapa", "shared::cluster", _] => {
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
                other => return Err(format!("{other} is no way to convert")),
            };
        }
        if rounding != Rounding::Nearest && !is_integral && ["f16", "bf16", "f64"].contains(to) {
            return Err("it is rounded to the nearest number alone here".to_string());
        }
        Ok(Conversion { to: kind(to)?, from: kind(from)?, rounding, is_integral, is_saturating })
    }

    pub(super) fn arithmetic(&self) -> Decoded {
        let of = self.of;
        if self.parts.last() == Some(&"pred") {
            return Ok(None);
        }
        if let Some((unary, known)) = self.unary() {
            self.only(known)?;
            let (kind, to, a) = (self.kind()?, of.register(0)?, of.operand(1)?);
            let flushes = self.flushes()?;
            return Ok(Some(Operation::Unary { of: unary, flushes, kind, to, a }));
        }
        if let Some((binary, known)) = self.binary() {
            self.only(known)?;
            let directed = ["rz", "rm", "rp"].into_iter().find(|rounding| self.has(rounding));
            if let Some(rounding) = directed {
                return self.rounded(binary, rounding_of(rounding)).map(Some);
            }
            let kind = match binary {
                Binary::MultiplyWide => self.kind()?.wide().ok_or("it is not wide")?,
                _ => self.kind()?,
            };
            let (to, a, b) = (of.register(0)?, of.operand(1)?, of.operand(2)?);
            let flushes = self.flushes()?;
            return Ok(Some(Operation::Binary { of: binary, flushes, kind, to, a, b }));
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

    /// Whether numbers that are less than normal ones count as zero, which is known of close results alone.
    fn flushes(&self) -> Result<bool, String> {
        let flushes = self.has("ftz");
        if flushes && !(self.has("approx") && self.kind()? == Kind::F32) {
            return Err("small numbers are not zero here".to_string());
        }
        Ok(flushes)
    }

    /// What it is of one number, and what its name may say besides.
    fn unary(&self) -> Option<(Unary, &'static [&'static str])> {
        const ROUNDED: &[&str] = &["rn", "approx", "ftz"];
        const CLOSE: &[&str] = &["approx", "ftz"];
        Some(match self.parts[0] {
            "neg" => (Unary::Negate, &[]),
            "abs" => (Unary::Absolute, &[]),
            "not" => (Unary::Not, &[]),
            "popc" => (Unary::CountOnes, &[]),
            "clz" => (Unary::CountLeadingZeros, &[]),
            "brev" => (Unary::ReverseBits, &[]),
            "rcp" => (Unary::Reciprocal, ROUNDED),
            "sqrt" => (Unary::SquareRoot, ROUNDED),
            "rsqrt" => (Unary::ReciprocalSquareRoot, CLOSE),
            "ex2" => (Unary::Exponential2, CLOSE),
            "lg2" => (Unary::Logarithm2, CLOSE),
            "sin" => (Unary::Sine, CLOSE),
            "cos" => (Unary::Cosine, CLOSE),
            "tanh" => (Unary::Tanh, CLOSE),
            _ => return None,
        })
    }

    /// What it is of two numbers, and what its name may say besides.
    fn binary(&self) -> Option<(Binary, &'static [&'static str])> {
        const ROUNDED: &[&str] = &["rn", "rz", "rm", "rp"];
        const PRODUCT: &[&str] = &["rn", "rz", "rm", "rp", "lo", "hi", "wide"];
        const EXTREME: &[&str] = &["NaN"];
        let is_of_nan = self.has("NaN");
        Some(match self.parts[0] {
            "add" => (Binary::Add, ROUNDED),
            "sub" => (Binary::Subtract, ROUNDED),
            "mul" if self.has("hi") => (Binary::MultiplyHigh, PRODUCT),
            "mul" if self.has("wide") => (Binary::MultiplyWide, PRODUCT),
            "mul" => (Binary::MultiplyLow, PRODUCT),
            "div" => (Binary::Divide, &["rn", "approx", "full", "ftz"]),
            "rem" => (Binary::Remainder, &[]),
            "min" if is_of_nan => (Binary::MinimumOrNan, EXTREME),
            "max" if is_of_nan => (Binary::MaximumOrNan, EXTREME),
            "min" => (Binary::Minimum, &[]),
            "max" => (Binary::Maximum, &[]),
            "and" => (Binary::And, &[]),
            "or" => (Binary::Or, &[]),
            "xor" => (Binary::Xor, &[]),
            "shl" => (Binary::ShiftLeft, &[]),
            "shr" => (Binary::ShiftRight, &[]),
            "copysign" => (Binary::CopySign, &[]),
            _ => return None,
        })
    }

    fn ternary(&self) -> Result<Option<Ternary>, String> {
        Ok(Some(match self.parts {
            ["mad", "wide", _] => Ternary::MultiplyAddWide,
            ["mad", "hi", _] => Ternary::MultiplyAddHigh,
            ["mad", "lo", _] => Ternary::MultiplyAddLow,
            ["fma" | "mad", rounding @ ("rn" | "rz" | "rm" | "rp"), _] => {
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

    pub(super) fn decisions(&self) -> Decoded {
        let of = self.of;
        Ok(Some(match self.parts {
            ["setp", comparison, rest @ ..] => {
                let and = match rest {
                    [_] => None,
                    ["and", _] => Some((Logic::And, of.condition(3)?)),
                    ["or", _] => Some((Logic::Or, of.condition(3)?)),
                    ["xor", _] => Some((Logic::Xor, of.condition(3)?)),
                    _ => return Err("it is not compared so here".to_string()),
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
