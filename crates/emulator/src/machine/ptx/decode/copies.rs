//! Copies that go on beside the threads that ask for them.

use super::super::instruction::{Bulk, Operand, Operation};
use super::{Decoded, Decoder};

/// Who is told when a copy to shared memory has come.
const TELLS: &str = "mbarrier::complete_tx::bytes";

impl Decoder<'_> {
    pub(super) fn copies(&self) -> Decoded {
        let of = self.of;
        Ok(Some(match self.parts {
            ["cp", "async", "commit_group"] => Operation::CommitCopies,
            ["cp", "async", "wait_group"] => Operation::AwaitCopies { left: of.number(0)? },
            ["cp", "async", "wait_all"] => Operation::AwaitCopies { left: 0 },
            ["cp", "async", "ca" | "cg", "shared" | "shared::cta", "global"]
            | ["cp", "async", "ca" | "cg", "shared" | "shared::cta", "global", "L2::128B"] => {
                let (to, from, bytes) = (of.address(0)?, of.address(1)?, of.number(2)?);
                Operation::CopyAsync { to, from, bytes, read: of.optional_operand(3)? }
            }
            ["cp", "async", "bulk", "commit_group"] => Operation::CommitStores,
            ["cp", "async", "bulk", "wait_group"]
            | ["cp", "async", "bulk", "wait_group", "read"] => {
                Operation::AwaitStores { left: of.number(0)? }
            }
            ["cp", "async", "bulk", "tensor", axes, "global", "shared::cta", "bulk_group"]
            | [
                "cp",
                "async",
                "bulk",
                "tensor",
                axes,
                "global",
                "shared::cta",
                "tile",
                "bulk_group",
            ] => {
                let (map, at) = of.tensor(0)?;
                check_axes(axes, &at)?;
                Operation::Bulk(Bulk::StoreBox { map, at, from: of.plain_address(1)? })
            }
            [
                "cp",
                "async",
                "bulk",
                "tensor",
                axes,
                "shared::cluster",
                "global",
                mode @ ..,
                TELLS,
            ] => {
                let to = of.plain_address(0)?;
                let ((map, at), barrier) = (of.tensor(1)?, of.plain_address(2)?);
                check_axes(axes, &at)?;
                Operation::Bulk(match mode {
                    ["im2col"] => {
                        let offsets = of.operands(3)?;
                        Bulk::LoadWindows { to, map, at, barrier, offsets }
                    }
                    [] | ["tile"] => Bulk::LoadBox { to, map, at, barrier },
                    other => return Err(format!("tensors are not copied by {other:?} here")),
                })
            }
            ["cp", "async", "bulk", "shared::cluster", "global", TELLS] => {
                let (to, from) = (of.plain_address(0)?, of.plain_address(1)?);
                let (bytes, barrier) = (of.operand(2)?, of.plain_address(3)?);
                Operation::Bulk(Bulk::LoadBytes { to, from, bytes, barrier })
            }
            _ => return Ok(None),
        }))
    }
}

fn check_axes(axes: &str, at: &[Operand]) -> Result<(), String> {
    if axes.strip_suffix('d').and_then(|count| count.parse().ok()) == Some(at.len()) {
        return Ok(());
    }
    Err(format!("{} numbers for a place in {axes}", at.len()))
}
