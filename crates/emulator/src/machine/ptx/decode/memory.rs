//! Loads, stores, atomic operations, small matrices in shared memory and barriers there.

use super::super::instruction::{
    Address, Atomic, Operand, Operation, PhaseBarrier, Register, Space,
};
use super::{Decoded, Decoder};

/// Spaces, what others see when, and who they are.
const ACCESS: &[&str] = &[
    "global",
    "shared",
    "shared::cta",
    "shared::cluster",
    "local",
    "weak",
    "volatile",
    "relaxed",
    "cta",
    "cluster",
    "gpu",
    "sys",
];

/// Hints to the caches, and how many are moved at once.
const HINTS: &[&str] = &["ca", "cg", "cs", "cv", "wb", "wt", "lu", "L2::128B", "v2", "v4"];

impl Decoder<'_> {
    pub(super) fn memory(&self) -> Decoded {
        let of = self.of;
        Ok(Some(match self.parts {
            ["ld", ..] => {
                self.only_of(&[ACCESS, HINTS, &["param", "const", "nc", "acquire"]])?;
                let (space, kind) = (self.space(), self.kind()?);
                let (to, from) = (of.destinations(0)?, of.address(1)?);
                self.check_count(to.len())?;
                let is_acquire = self.has("acquire");
                Operation::Load { space, kind, to, from, is_acquire }
            }
            ["st", ..] => {
                self.only_of(&[ACCESS, HINTS, &["release"]])?;
                let (space, kind) = (self.space(), self.kind()?);
                let (to, from) = (of.address(0)?, of.operands(1)?);
                self.check_count(from.len())?;
                let is_release = self.has("release");
                Operation::Store { space, kind, to, from, is_release }
            }
            ["atom", ..] => {
                let (to, at) = (of.destination(0)?, of.address(1)?);
                self.atomic(to, at, of.operand(2)?, of.optional_operand(3)?)?
            }
            ["red", ..] => self.atomic(None, of.address(0)?, of.operand(1)?, None)?,
            ["ldmatrix", "sync", "aligned", "m8n8", count, rest @ ..] => {
                let (to, at) = (of.registers(0)?, of.address(1)?);
                Operation::LoadMatrices { is_transposed: matrices(count, rest, &to)?, to, at }
            }
            ["stmatrix", "sync", "aligned", "m8n8", count, rest @ ..] => {
                let (at, from) = (of.address(0)?, of.registers(1)?);
                Operation::StoreMatrices { is_transposed: matrices(count, rest, &from)?, from, at }
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

    /// So many are moved at once as the name says.
    fn check_count(&self, count: usize) -> Result<(), String> {
        let said = match () {
            () if self.has("v2") => 2,
            () if self.has("v4") => 4,
            () => 1,
        };
        if count == said { Ok(()) } else { Err(format!("{count} values in place of {said}")) }
    }

    fn atomic(
        &self,
        to: Option<Register>,
        at: Address,
        a: Operand,
        b: Option<Operand>,
    ) -> Result<Operation, String> {
        const KINDS: [(&str, Atomic); 7] = [
            ("add", Atomic::Add),
            ("min", Atomic::Minimum),
            ("max", Atomic::Maximum),
            ("and", Atomic::And),
            ("or", Atomic::Or),
            ("exch", Atomic::Exchange),
            ("cas", Atomic::CompareAndSwap),
        ];
        let found = KINDS.iter().find(|(name, _)| self.has(name));
        let (name, of) = found.ok_or("there is no such atomic operation here")?;
        self.only_of(&[ACCESS, &["acquire", "release", "acq_rel", "noftz", name]])?;
        if b.is_some() != (*of == Atomic::CompareAndSwap) {
            return Err("it swaps with something where it compares, and only there".to_string());
        }
        Ok(Operation::Atomic { of: *of, space: self.space(), kind: self.kind()?, to, at, a, b })
    }

    /// A barrier in shared memory, with nobody who wants to know its state.
    fn phase(&self, what: &str, rest: &[&str]) -> Result<Operation, String> {
        const SHARED: &[&str] = &["shared", "shared::cta", "shared::cluster"];
        const ORDER: &[&str] = &["release", "acquire", "relaxed", "cta", "cluster"];
        self.only_of(&[SHARED, ORDER, &[what, "expect_tx", "parity"]])?;
        if self.space() != Space::Shared || self.parts.last() != Some(&"b64") {
            return Err("barriers lie in shared memory, by such addresses here".to_string());
        }
        let of = self.of;
        let (barrier, phase) = match what {
            "init" => (of.address(0)?, PhaseBarrier::Start { arrivals: of.operand(1)? }),
            "inval" => (of.address(0)?, PhaseBarrier::End),
            "arrive" => {
                of.nobody(0)?;
                let phase = match (rest.contains(&"expect_tx"), of.optional_operand(2)?) {
                    (true, Some(bytes)) => PhaseBarrier::ArriveExpecting { bytes },
                    (true, None) => return Err("how many bytes are expected".to_string()),
                    (false, count) => {
                        PhaseBarrier::Arrive { count: count.unwrap_or(Operand::Immediate(1)) }
                    }
                };
                (of.address(1)?, phase)
            }
            "try_wait" | "test_wait" if rest.first() == Some(&"parity") => {
                let (to, parity, may_wait) = (of.predicate(0)?, of.operand(2)?, what == "try_wait");
                // For how long it may wait changes nothing.
                of.optional_operand(3)?;
                (of.address(1)?, PhaseBarrier::Test { parity, to, may_wait })
            }
            _ => return Err("there is no such barrier here".to_string()),
        };
        Ok(Operation::Phase { barrier, of: phase })
    }
}

/// Checks what is said of matrices of 16 bits; whether they are turned.
fn matrices(count: &str, rest: &[&str], registers: &[Register]) -> Result<bool, String> {
    let is_transposed = match rest {
        ["trans", "shared" | "shared::cta", "b16"] => true,
        ["shared" | "shared::cta", "b16"] => false,
        _ => return Err("there are no such matrices here".to_string()),
    };
    let said = match count {
        "x1" => 1,
        "x2" => 2,
        "x4" => 4,
        other => return Err(format!("{other} is no number of matrices")),
    };
    if registers.len() != said {
        return Err(format!("{} registers for {said} matrices", registers.len()));
    }
    Ok(is_transposed)
}
