//! Lines of elements that become shares of one.

use std::fmt;

use super::flat::flat_launch;
use super::rows::Rows;
use crate::launch::{Argument, Candidate, KernelSource, Launch};
use crate::{Chip, Storage};

const TEXT: &str =
    concat!(include_str!("../../kernels/reduction.cuh"), include_str!("../../kernels/softmax.cu"));

/// Lines along the middle axis of `[outer, along, inner]`, none of which is empty.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Softmax {
    pub(crate) storage: Storage,
    /// The logarithms of the shares are wanted.
    pub(crate) is_logarithm: bool,
    pub(crate) outer: usize,
    pub(crate) along: usize,
    pub(crate) inner: usize,
}

/// All that a candidate's time depends on, apart from the precision and the partition.
impl fmt::Display for Softmax {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = if self.is_logarithm { "log softmax" } else { "softmax" };
        write!(f, "{kind} {}x{}x{}", self.outer, self.along, self.inner)
    }
}

impl Softmax {
    /// The ways to compute it, the one expected to be fastest first.
    pub(crate) fn candidates(&self, chip: Chip, from: Argument, to: Argument) -> Vec<Candidate> {
        let launches = match self.inner {
            1 => self.rows(chip, from, to),
            _ => vec![("softmax strided", self.strided(from, to))],
        };
        let candidate = |(name, launch)| Candidate::new(name, vec![launch], 0);
        launches.into_iter().map(candidate).collect()
    }

    fn rows(&self, chip: Chip, from: Argument, to: Argument) -> Vec<(&'static str, Launch)> {
        let rows = Rows { storage: self.storage, rows: self.outer, columns: self.along };
        let arguments = vec![from, to, Argument::u32(self.outer), Argument::u32(self.along)];
        let launch = |source, blocks, threads| Launch {
            source,
            grid: [blocks, 1, 1],
            threads,
            shared_bytes: 0,
            cluster: [1, 1, 1],
            arguments: arguments.clone(),
        };
        let mut launches = Vec::new();
        if let Some(warp) = rows.warp_per_row(chip) {
            let source = self.source(
                "softmax_warp",
                warp.width,
                Some(("VECTORS", warp.vectors.to_string())),
            );
            launches.push(("softmax warp", launch(source, warp.blocks, warp.threads)));
        }
        let block = rows.block_per_row();
        // A block of which most threads have nothing to read gains nothing.
        if launches.is_empty() || self.along >= block.width * 128 {
            let threads = Some(("THREADS", block.threads.to_string()));
            let source = self.source("softmax_block", block.width, threads);
            launches.push(("softmax block", launch(source, self.outer as u32, block.threads)));
        }
        launches
    }

    fn strided(&self, from: Argument, to: Argument) -> Launch {
        let sizes = [self.outer, self.along, self.inner].map(Argument::u32);
        let arguments = [vec![from, to], sizes.to_vec()].concat();
        flat_launch(self.source("softmax_strided", 1, None), self.outer * self.inner, arguments)
    }

    fn source(
        &self,
        entry: &'static str,
        width: usize,
        more: Option<(&'static str, String)>,
    ) -> KernelSource {
        let mut defines = vec![
            ("STORAGE", self.storage.cuda_name().to_string()),
            ("LOGARITHM", u8::from(self.is_logarithm).to_string()),
            ("WIDTH", width.to_string()),
        ];
        defines.extend(more);
        KernelSource::new("softmax.cu", TEXT, entry, defines)
    }
}

/// Typical variants, for checking that they compile.
pub(crate) fn samples() -> Vec<KernelSource> {
    let sample = |storage, is_logarithm, outer, along, inner| {
        let softmax = Softmax { storage, is_logarithm, outer, along, inner };
        softmax.candidates(Chip::H200, Argument::Input(0), Argument::Output(0))
    };
    let candidates = [
        sample(Storage::F16, false, 1536, 128, 1),
        sample(Storage::Bf16, true, 8, 1000, 1),
        sample(Storage::F32, false, 1, 50_257, 1),
        sample(Storage::F32, false, 2, 20, 30),
    ];
    let launches = candidates.into_iter().flatten().flat_map(|candidate| candidate.launches);
    launches.map(|launch| launch.source).collect()
}
