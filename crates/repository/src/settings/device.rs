//! `[device]`: what models run on, and how it is divided.

use std::fmt;
use std::path::{Path, PathBuf};

use weft_scheduler::document::{Item, Problems, Section};
use weft_scheduler::policies;

use super::quantity::{count, given, mebibytes, named, path_from};

/// The policy where none is named.
const DEFAULT_POLICY: &str = "weft";

/// What models run on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceSettings {
    /// Which device.
    pub kind: DeviceKind,
    /// How many of its units are used; all where it is not said.
    pub units: Option<u32>,
    /// How much of its memory models may take together.
    pub memory_budget_bytes: Option<u64>,
    /// What models run at.
    pub precision: Option<Precision>,
    /// The policy of the scheduler, by its name; one that exists.
    pub policy: String,
    /// The profiles that are known before anything is measured.
    pub profiles: Option<PathBuf>,
}

/// Which device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DeviceKind {
    /// The first GPU, or the CPU where there is none.
    #[default]
    Auto,
    /// The CPU's cores.
    Cpu,
    /// A GPU by its number.
    Cuda(usize),
}

/// How numbers are stored and multiplied on a GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "each is what its name says")]
pub enum Precision {
    F16,
    Bf16,
    Tf32,
    F32,
}

impl Precision {
    pub(super) const ALL: [Self; 4] = [Self::F16, Self::Bf16, Self::Tf32, Self::F32];
}

impl fmt::Display for Precision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::F16 => "f16",
            Self::Bf16 => "bf16",
            Self::Tf32 => "tf32",
            Self::F32 => "f32",
        })
    }
}

impl fmt::Display for DeviceKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::Cpu => f.write_str("cpu"),
            Self::Cuda(number) => write!(f, "cuda:{number}"),
        }
    }
}

impl Default for DeviceSettings {
    fn default() -> Self {
        Self {
            kind: DeviceKind::Auto,
            units: None,
            memory_budget_bytes: None,
            precision: None,
            policy: DEFAULT_POLICY.into(),
            profiles: None,
        }
    }
}

pub(super) fn read(
    mut section: Section<'_>,
    folder: &Path,
    problems: &mut Problems,
) -> DeviceSettings {
    let s = &mut section;
    let settings = DeviceSettings {
        kind: given(s, "kind", problems, kind).unwrap_or_default(),
        units: given(s, "units", problems, count),
        memory_budget_bytes: given(s, "memory_budget_mib", problems, mebibytes),
        precision: given(s, "precision", problems, named(&Precision::ALL)),
        policy: given(s, "policy", problems, policy).unwrap_or_else(|| DEFAULT_POLICY.into()),
        profiles: given(s, "profiles", problems, path_from(folder)),
    };
    section.close(problems);
    settings
}

fn kind(item: &Item<'_>, problems: &mut Problems) -> Option<DeviceKind> {
    let text = item.text(problems)?;
    let number = text.strip_prefix("cuda:").and_then(|number| number.parse().ok());
    match (text, number) {
        ("auto", _) => Some(DeviceKind::Auto),
        ("cpu", _) => Some(DeviceKind::Cpu),
        ("cuda", _) => Some(DeviceKind::Cuda(0)),
        (_, Some(number)) => Some(DeviceKind::Cuda(number)),
        _ => {
            let what = format!("'kind' must be one of auto, cpu, cuda, cuda:NUMBER, not '{text}'");
            problems.note(item.line(), what);
            None
        }
    }
}

fn policy(item: &Item<'_>, problems: &mut Problems) -> Option<String> {
    let text = item.text(problems)?;
    let is_known = policies::named(text).is_some();
    if !is_known {
        let names: Vec<&str> = policies::ALL.iter().map(|known| known.name).collect();
        let what = format!("'policy' must be one of {}, not '{text}'", names.join(", "));
        problems.note(item.line(), what);
    }
    is_known.then(|| text.to_string())
}
