//! The name of an instruction and its arguments as what is run. What is not known is refused, so that nothing is left out in silence.

mod copies;
mod memory;
mod numbers;
mod together;

use super::argument::Arguments;
use super::instruction::{Kind, Operation, Space};

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
            arguments.check_all_read()?;
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

    /// Refuses what stands between the first part and the type and is not among these.
    fn only(&self, known: &[&str]) -> Result<(), String> {
        self.only_of(&[known])
    }

    fn only_of(&self, known: &[&[&str]]) -> Result<(), String> {
        let inner = self.parts.get(1..self.parts.len() - 1).unwrap_or_default();
        let other = inner.iter().find(|part| !known.iter().any(|known| known.contains(part)));
        other.map_or(Ok(()), |other| Err(format!("{other} is not known here")))
    }

    /// The kind that the name ends with.
    fn kind(&self) -> Result<Kind, String> {
        let last = self.parts.last().copied().unwrap_or_default();
        Kind::parse(last).ok_or_else(|| format!("{last} is no type"))
    }

    /// What ends a thread, what orders its accesses, and what changes nothing here.
    fn order(&self) -> Decoded {
        Ok(Some(match self.parts {
            ["ret" | "exit"] => Operation::Exit,
            ["trap"] => Operation::Trap,
            ["membar" | "fence", ..] => {
                self.of.ignore();
                Operation::Fence
            }
            ["griddepcontrol" | "nanosleep" | "prefetch" | "setmaxnreg", ..]
            | ["wgmma", "fence", ..] => {
                self.of.ignore();
                Operation::Nothing
            }
            _ => return Ok(None),
        }))
    }
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
