//! Which of a node's candidates is taken.

use std::fmt::Write;

use weft_device::DeviceError;
use xxhash_rust::xxh3::xxh3_128;

use crate::choosing::{Choosing, Wanted};
use crate::launch::Candidate;
use crate::{Precision, Storage};

/// The memory that one operand of a problem takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Extent {
    pub(crate) storage: Storage,
    pub(crate) size_bytes: usize,
}

/// One thing to compute, and the ways to do it.
pub(crate) struct Problem<'a> {
    /// What is computed, as choices know it; `None` where there is nothing to choose.
    pub(crate) operator: Option<&'a str>,
    pub(crate) precision: Precision,
    /// At least one.
    pub(crate) candidates: &'a [Candidate],
    /// A slow way that is right, where a search asked for all candidates.
    pub(crate) reference: Option<&'a Candidate>,
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
            let _ = write!(text, "{:?};", candidate.library_call);
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

/// Takes the first candidate whose name starts with the text, and the first of all where there is none.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NamedCandidate(pub(crate) &'static str);

impl Chooser for NamedCandidate {
    fn choose(&self, problems: &[Problem<'_>]) -> Vec<Result<usize, DeviceError>> {
        let is_named = |candidate: &Candidate| candidate.name.starts_with(self.0);
        let named = |problem: &Problem<'_>| problem.candidates.iter().position(is_named);
        problems.iter().map(|problem| Ok(named(problem).unwrap_or(0))).collect()
    }
}

/// Takes the candidates that were found to be fastest, and where nothing is known the ones expected to be.
#[derive(Clone, Copy)]
pub(crate) struct KnownCandidate<'a>(pub(crate) Choosing<'a>);

impl Chooser for KnownCandidate<'_> {
    fn choose(&self, problems: &[Problem<'_>]) -> Vec<Result<usize, DeviceError>> {
        let known = |problem: &Problem<'_>| {
            let Wanted::Named(name) = self.0.wanted(problem.operator?, problem.precision) else {
                return None;
            };
            problem.candidates.iter().position(|candidate| *candidate.name == *name)
        };
        problems.iter().map(|problem| Ok(known(problem).unwrap_or(0))).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use weft_device::{KernelChoices, OperatorKey};

    use super::*;
    use crate::launch::{Argument, DeviceWeights, KernelSource, Launch};

    fn candidate(blocks: u32, weights_address: u64) -> Candidate {
        let weights =
            DeviceWeights { address: weights_address, size_bytes: 64, memory: Box::new(()) };
        let launch = Launch {
            source: KernelSource::new("k.cu", "text", "k", vec![("TILE", "8".into())]),
            grid: [blocks, 1, 1],
            threads: 32,
            shared_bytes: 0,
            cluster: [1; 3],
            arguments: vec![Argument::Input(0), Argument::Weights(Arc::new(weights))],
        };
        Candidate::new("k", vec![launch], 0)
    }

    fn problem(candidates: &[Candidate]) -> Problem<'_> {
        Problem {
            operator: Some("product"),
            precision: Precision::F16,
            candidates,
            reference: None,
            inputs: vec![],
            outputs: vec![],
        }
    }

    #[test]
    fn a_known_choice_is_taken_where_it_is_among_the_candidates() {
        struct Known(&'static str);
        impl KernelChoices for Known {
            fn choice(&self, key: &OperatorKey, sms: usize) -> Option<Arc<str>> {
                let is_known = key.operator == "product" && key.precision == "f16" && sms == 8;
                is_known.then(|| self.0.into())
            }
        }
        let candidates = ["a", "b"].map(|name| Candidate::new(name, Vec::new(), 0));
        let choose = |name, operator, sm_count| {
            let choosing = Choosing::Known { choices: &Known(name), sm_count };
            let problem = Problem { operator, ..problem(&candidates) };
            *KnownCandidate(choosing).choose(&[problem])[0].as_ref().unwrap()
        };
        assert_eq!(choose("b", Some("product"), 8), 1);
        assert_eq!(choose("c", Some("product"), 8), 0, "no such candidate");
        assert_eq!(choose("b", Some("other"), 8), 0);
        assert_eq!(choose("b", Some("product"), 16), 0);
        assert_eq!(choose("b", None, 8), 0);
    }

    #[test]
    fn problems_are_equal_where_their_work_is() {
        let signature = |candidates: &[Candidate], size_bytes| {
            let extent = Some(Extent { storage: Storage::F16, size_bytes });
            let (inputs, outputs) = (vec![extent], vec![extent]);
            Problem { inputs, outputs, ..problem(candidates) }.signature()
        };
        let first = signature(&[candidate(4, 0x100)], 64);
        assert_eq!(first, signature(&[candidate(4, 0x900)], 64), "weights lie elsewhere");
        assert_ne!(first, signature(&[candidate(5, 0x100)], 64));
        assert_ne!(first, signature(&[candidate(4, 0x100)], 128));
        assert_ne!(first, signature(&[candidate(4, 0x100), candidate(5, 0x100)], 64));
    }

    #[test]
    fn a_name_picks_its_candidate_or_the_first() {
        let names = ["gemm 64x64", "cublaslt", "cudnn implicit_gemm"];
        let candidates = names.map(|name| Candidate::new(name, Vec::new(), 0));
        let problem = problem(&candidates);
        for (name, expected) in [("cublaslt", 1), ("cudnn", 2), ("gemm", 0), ("other", 0)] {
            let choices = NamedCandidate(name).choose(std::slice::from_ref(&problem));
            assert_eq!(*choices[0].as_ref().unwrap(), expected, "{name}");
        }
    }
}
