//! Scaled dot-product attention in one pass: `attention.cu`.

use bytemuck::{Pod, Zeroable};
use weft_ir::operators::fused::AttentionSizes;

use super::gemm::math_define;
use crate::launch::{Argument, Candidate, KernelSource, Launch};
use crate::{Chip, Precision};

const TEXT: &str = concat!(
    include_str!("../../kernels/tensor_core.cuh"),
    include_str!("../../kernels/attention.cu")
);

/// Keys that are in shared memory at once, as the kernel has it.
const KEYS: usize = 64;

/// Stages of keys and values.
const STAGES: usize = 2;

/// The deepest heads that fit the registers of a thread.
const MAX_DEPTH: usize = 128;

/// Distances in elements between neighbours in batch, head and sequence.
pub(crate) type HeadStrides = [usize; 3];

/// An attention, without any choice of how it is computed.
#[derive(Clone, Debug)]
pub(crate) struct AttentionProblem {
    pub(crate) sizes: AttentionSizes,
    pub(crate) scale: f32,
    pub(crate) query: HeadStrides,
    pub(crate) key: HeadStrides,
    pub(crate) value: HeadStrides,
    pub(crate) output: HeadStrides,
    /// Of the mask: batch, head, query, key; 0 where it is the same for all.
    pub(crate) mask: Option<[usize; 4]>,
    pub(crate) precision: Precision,
}

/// The structure `Problem` of `attention.cu`.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct Parameters {
    heads: i32,
    queries: i32,
    keys: i32,
    scale: f32,
    strides: [[i64; 3]; 4],
    mask: [i64; 4],
}

impl AttentionProblem {
    /// The candidates; none where the kernel cannot compute it. Inputs 0 to 3 are Q, K, V and the mask.
    pub(crate) fn candidates(&self, chip: Chip) -> Vec<Candidate> {
        let sizes = &self.sizes;
        let is_empty = [sizes.batch, sizes.heads, sizes.queries, sizes.keys].contains(&0);
        let depths = [sizes.depth, sizes.value_depth];
        let fits = depths.iter().all(|depth| (1..=MAX_DEPTH).contains(depth))
            && sizes.batch * sizes.heads <= 65_535
            && self.load_bytes(sizes.depth, &[self.query, self.key]).is_some()
            && self.load_bytes(sizes.value_depth, &[self.value]).is_some();
        if is_empty || !fits {
            return Vec::new();
        }
        let mut warps: Vec<usize> = [1, 2, 4, 8]
            .into_iter()
            .filter(|&warps| warps == 1 || (warps - 1) * 16 < sizes.queries)
            .filter(|&warps| self.shared_bytes(warps) <= chip.shared_bytes_per_block as usize)
            .collect();
        // Large blocks read keys and values less often; small ones keep every SM busy.
        let heads = sizes.batch * sizes.heads;
        let fills =
            |warps: usize| heads * sizes.queries.div_ceil(warps * 16) >= chip.sm_count as usize;
        warps.sort_by_key(|&warps| (!fills(warps), if fills(warps) { 8 - warps } else { warps }));
        warps.into_iter().map(|warps| self.candidate(warps)).collect()
    }

    fn row_bytes(&self, depth: usize) -> usize {
        (depth * self.precision.storage().size_bytes()).next_power_of_two().max(32)
    }

    fn shared_bytes(&self, warps: usize) -> usize {
        let row = self.row_bytes(self.sizes.depth);
        let value_row = self.row_bytes(self.sizes.value_depth);
        warps * 16 * row + STAGES * KEYS * (row + value_row)
    }

    /// The widest load that fits rows of `depth` elements at these distances.
    fn load_bytes(&self, depth: usize, strides: &[HeadStrides]) -> Option<usize> {
        let element_bytes = self.precision.storage().size_bytes();
        let distances = || strides.iter().flatten().copied().chain([depth]);
        [16, 8, 4].into_iter().find(|&bytes| {
            distances().all(|distance| (distance * element_bytes).is_multiple_of(bytes))
        })
    }

    fn candidate(&self, warps: usize) -> Candidate {
        let sizes = &self.sizes;
        let small = |count: usize| u32::try_from(count).expect("sizes were checked");
        let parameters = Parameters {
            heads: small(sizes.heads) as i32,
            queries: small(sizes.queries) as i32,
            keys: small(sizes.keys) as i32,
            scale: self.scale,
            strides: [self.query, self.key, self.value, self.output]
                .map(|strides| strides.map(|stride| stride as i64)),
            mask: self.mask.unwrap_or_default().map(|stride| stride as i64),
        };
        let mask = if self.mask.is_some() { Argument::Input(3) } else { Argument::Null };
        let launch = Launch {
            source: self.source(warps),
            grid: [small(sizes.queries.div_ceil(warps * 16)), small(sizes.batch * sizes.heads), 1],
            threads: small(warps * 32),
            shared_bytes: small(self.shared_bytes(warps)),
            cluster: [1, 1, 1],
            arguments: vec![
                Argument::structure(&parameters),
                Argument::Input(0),
                Argument::Input(1),
                Argument::Input(2),
                mask,
                Argument::Output(0),
            ],
        };
        let name = format!("attention {} warps", warps);
        Candidate { name, launches: vec![launch], workspace_bytes: 0 }
    }

    fn source(&self, warps: usize) -> KernelSource {
        let sizes = &self.sizes;
        let load = |bytes: Option<usize>| bytes.expect("`candidates` has asked").to_string();
        let is_even = self.output.iter().all(|stride| stride.is_multiple_of(2))
            && sizes.value_depth.is_multiple_of(2);
        let defines = vec![
            ("STORAGE", self.precision.storage().cuda_name().to_string()),
            ("MATH", math_define(self.precision).to_string()),
            ("BY_WARPGROUP", "0".to_string()),
            ("WARPS", warps.to_string()),
            ("DEPTH", sizes.depth.to_string()),
            ("VALUE_DEPTH", sizes.value_depth.to_string()),
            ("LOAD_BYTES", load(self.load_bytes(sizes.depth, &[self.query, self.key]))),
            ("VALUE_LOAD_BYTES", load(self.load_bytes(sizes.value_depth, &[self.value]))),
            ("STORE_ELEMENTS", if is_even { "2" } else { "1" }.to_string()),
            ("HAS_MASK", u8::from(self.mask.is_some()).to_string()),
        ];
        KernelSource::new("attention.cu", TEXT, "attention", defines)
    }
}

/// An attention of BERT's shape, and one of awkward sizes.
fn examples(precision: Precision) -> [AttentionProblem; 2] {
    let sizes =
        AttentionSizes { batch: 2, heads: 12, queries: 128, keys: 128, depth: 64, value_depth: 64 };
    let strides = [128 * 768, 64, 768];
    let bert = AttentionProblem {
        sizes,
        scale: 0.125,
        query: strides,
        key: strides,
        value: strides,
        output: strides,
        mask: Some([128, 0, 0, 1]),
        precision,
    };
    let odd = AttentionSizes { queries: 7, keys: 33, depth: 20, value_depth: 6, ..sizes };
    let awkward = AttentionProblem {
        sizes: odd,
        query: [12 * 7 * 20, 7 * 20, 20],
        key: [12 * 33 * 20, 33 * 20, 20],
        value: [12 * 33 * 6, 33 * 6, 6],
        output: [12 * 7 * 6, 7 * 6, 6],
        mask: None,
        ..bert.clone()
    };
    [bert, awkward]
}

/// Typical variants, for checking that they compile.
pub(crate) fn samples() -> Vec<KernelSource> {
    let problems = Precision::ALL.into_iter().flat_map(examples);
    problems.flat_map(|problem| [1, 4].map(|warps| problem.source(warps))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_block_per_sm_is_preferred_to_large_blocks() {
        let [bert, awkward] = examples(Precision::F16);
        let first = |problem: &AttentionProblem, sms| {
            problem.candidates(Chip::H200.with_sms(sms))[0].launches[0].threads
        };
        assert_eq!(first(&bert, 132), 32);
        assert_eq!(first(&bert, 8), 256);
        assert_eq!(first(&awkward, 132), 32);
    }

    #[test]
    fn blocks_cover_every_query() {
        for problem in Precision::ALL.into_iter().flat_map(examples) {
            for candidate in problem.candidates(Chip::H200) {
                let launch = &candidate.launches[0];
                let queries = launch.grid[0] as usize * launch.threads as usize / 2;
                assert!(queries >= problem.sizes.queries);
            }
        }
    }

    #[test]
    fn heads_too_deep_or_odd_are_refused() {
        let [bert, _] = examples(Precision::F16);
        for depth in [129, 63] {
            let sizes = AttentionSizes { depth, ..bert.sizes };
            assert!(AttentionProblem { sizes, ..bert.clone() }.candidates(Chip::H200).is_empty());
        }
    }
}
