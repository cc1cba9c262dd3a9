//! Which of a node's candidates is taken.

use std::fmt::Write;

use weft_device::DeviceError;
use xxhash_rust::xxh3::xxh3_128;

use crate::Storage;
use crate::launch::Candidate;

/// The memory that one operand of a problem takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Extent {
    pub(crate) storage: Storage,
    pub(crate) size_bytes: usize,
}

/// One thing to compute, and the ways to do it.
pub(crate) struct Problem<'a> {
    /// At least one.
    pub(crate) candidates: &'a [Candidate],
    /// The operands that lie on the device, as the candidates' arguments number them.
    pub(crate) inputs: Vec<Option<Extent>>,
    pub(crate) outputs: Vec<Option<Extent>>,
}

impl Problem<'_> {
    /// Equal for problems whose candidates do exactly the same work, wherever their operands lie.
    pub(crate) fn signature(&self) -> u128 {
        let mut text = String::new();
        for candidate in self.candidates {
            let _ = write!(text, "{};{};", candidate.name, candidate.workspace_bytes);
            for launch in &candidate.launches {
                let source = &launch.source;
                let _ = write!(
                    text,
                    "{}/{}/{:?}/{}/{:?}/{}/{}/{:?}/{:?};",
                    source.template,
                    source.entry,
                    source.defines,
                    source.generated,
                    launch.grid,
                    launch.threads,
                    launch.shared_bytes,
                    launch.cluster,
                    launch.arguments,
                );
            }
        }
        let _ = write!(text, "{:?}{:?}", self.inputs, self.outputs);
        xxh3_128(text.as_bytes())
    }
}

/// Decides among the candidates of problems.
pub(crate) trait Chooser {
    /// For each problem, the index of the candidate to use.
    fn choose(&self, problems: &[Problem<'_>]) -> Vec<Result<usize, DeviceError>>;
}

/// Takes the candidate that its selector expects to be fastest.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FirstCandidate;

impl Chooser for FirstCandidate {
    fn choose(&self, problems: &[Problem<'_>]) -> Vec<Result<usize, DeviceError>> {
        problems.iter().map(|_| Ok(0)).collect()
    }
}
