//! Scaled dot-product attention in one pass: `attention.cu`.

use std::fmt;

use bytemuck::{Pod, Zeroable};
use weft_ir::operators::fused::AttentionSizes;

use super::gemm::math_define;
use crate::launch::{Argument, Candidate, KernelSource, Launch};
use crate::{Chip, Precision};

const TEXT: &str = concat!(
    include_str!("../../kernels/tensor_core.cuh"),
    include_str!("../../kernels/attention.cu")
);

/// Stages of keys and values.
const STAGES: usize = 2;

/// The deepest heads that fit the registers of a thread.
const MAX_DEPTH: usize = 128;

/// How a block is made up: warps that have queries of their own, warps that share the keys of the same queries, and keys
/// of one warp in one step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Block {
    query_warps: usize,
    key_warps: usize,
    keys: usize,
}

/// Every block that is compiled.
const BLOCKS: &[Block] = &[
    block(1, 1, 64),
    block(1, 2, 32),
    block(1, 2, 64),
    block(1, 4, 32),
    block(1, 8, 32),
    block(2, 1, 64),
    block(2, 2, 32),
    block(2, 2, 64),
    block(2, 4, 32),
    block(4, 1, 64),
    block(4, 2, 32),
    block(4, 2, 64),
    block(8, 1, 64),
];

const fn block(query_warps: usize, key_warps: usize, keys: usize) -> Block {
    Block { query_warps, key_warps, keys }
}

impl Block {
    fn queries(self) -> usize {
        16 * self.query_warps
    }

    fn threads(self) -> usize {
        32 * self.query_warps * self.key_warps
    }

    /// Keys of all warps in one step.
    fn span(self) -> usize {
        self.keys * self.key_warps
    }
}

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

/// All that a candidate's time depends on, apart from the precision and the partition.
impl fmt::Display for AttentionProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let AttentionSizes { batch, heads, queries, keys, depth, value_depth } = self.sizes;
        write!(f, "attention {batch}x{heads}x{queries}x{keys}x{depth}x{value_depth}")?;
        let layouts = [self.query, self.key, self.value, self.output];
        write!(f, ", steps")?;
        for strides in layouts {
            write!(f, " {}/{}/{}", strides[0], strides[1], strides[2])?;
        }
        match self.mask {
            Some([batch, head, query, key]) => {
                write!(f, ", mask {batch}/{head}/{query}/{key}")
            }
            None => Ok(()),
        }
    }
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
        let mut blocks: Vec<Block> = BLOCKS
            .iter()
            .copied()
            .filter(|block| self.shared_bytes(*block) <= chip.shared_bytes_per_block as usize)
            .filter(|block| block.query_warps == 1 || block.queries() < 2 * sizes.queries)
            .filter(|block| block.key_warps == 1 || block.span() < 2 * sizes.keys)
            .collect();
        blocks.sort_by(|a, b| self.estimate(*a, chip).total_cmp(&self.estimate(*b, chip)));
        blocks.into_iter().map(|block| self.candidate(block)).collect()
    }

    /// An estimate of the time in cycles of an SM, for ranking: as many turns as it takes for all blocks to have been on an SM,
    /// and what the SM loads meanwhile.
    fn estimate(&self, block: Block, chip: Chip) -> f64 {
        // Until the first keys are there; a warp's step of 64 keys alone, and what one takes of an SM that is full; warps that
        // join what they have of the same queries.
        const FILL: f64 = 2600.0;
        const STEP: f64 = 2500.0;
        const STEP_OF_FULL_SM: f64 = 300.0;
        const JOIN: f64 = 1500.0;
        const LOAD_BYTES_PER_CYCLE: f64 = 55.0;
        let sizes = &self.sizes;
        let steps = (sizes.keys.div_ceil(block.span()) * block.keys) as f64 / 64.0;
        let blocks = sizes.batch * sizes.heads * sizes.queries.div_ceil(block.queries());
        let blocks_of_sm = blocks.div_ceil(chip.sm_count as usize);
        let turns = blocks_of_sm.div_ceil(self.blocks_per_sm(block, chip)) as f64;
        let join = if block.key_warps > 1 { JOIN } else { 0.0 };
        let by_latency = turns * (FILL + steps * STEP + join);
        let warps_of_sm = (blocks_of_sm * block.threads() / 32) as f64;
        let by_throughput = warps_of_sm * steps * STEP_OF_FULL_SM;
        let row_bytes = (self.row_bytes() + self.value_row_bytes()) as f64;
        let loaded_bytes = (sizes.keys as f64 + block.queries() as f64 / 2.0) * row_bytes;
        by_latency.max(by_throughput) + blocks_of_sm as f64 * loaded_bytes / LOAD_BYTES_PER_CYCLE
    }

    /// How many blocks one SM holds, as far as shared memory and registers tell.
    fn blocks_per_sm(&self, block: Block, chip: Chip) -> usize {
        const REGISTERS: u32 = 128;
        let [threads, shared_bytes] =
            [block.threads(), self.shared_bytes(block)].map(|count| count as u32);
        chip.blocks_per_sm(threads, REGISTERS, shared_bytes).max(1) as usize
    }

    /// A row of queries or keys in shared memory: whole steps of the tensor cores, and a power of two.
    fn row_bytes(&self) -> usize {
        (self.sizes.depth * self.precision.storage().size_bytes()).next_power_of_two().max(32)
    }

    /// A row of values in shared memory: whole tiles of 16, and a power of two.
    fn value_row_bytes(&self) -> usize {
        self.sizes.value_depth.next_power_of_two().max(16) * self.precision.storage().size_bytes()
    }

    /// Queries and stages of keys and values; then, in their place, what warps of the same queries join.
    fn shared_bytes(&self, block: Block) -> usize {
        let (row, value_row) = (self.row_bytes(), self.value_row_bytes());
        let loaded = block.queries() * row + STAGES * block.span() * (row + value_row);
        let part_row = (self.sizes.value_depth.next_multiple_of(16) + 8) * size_of::<f32>();
        let joined =
            if block.key_warps > 1 { block.key_warps * block.queries() * part_row } else { 0 };
        loaded.max(joined)
    }

    /// The widest load that fits rows of `depth` elements at these distances.
    fn load_bytes(&self, depth: usize, strides: &[HeadStrides]) -> Option<usize> {
        let element_bytes = self.precision.storage().size_bytes();
        let distances = || strides.iter().flatten().copied().chain([depth]);
        [16, 8, 4].into_iter().find(|&bytes| {
            distances().all(|distance| (distance * element_bytes).is_multiple_of(bytes))
        })
    }

    fn candidate(&self, block: Block) -> Candidate {
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
            source: self.source(block),
            grid: [
                small(sizes.queries.div_ceil(block.queries())),
                small(sizes.batch * sizes.heads),
                1,
            ],
            threads: small(block.threads()),
            shared_bytes: small(self.shared_bytes(block)),
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
        let Block { query_warps, key_warps, keys } = block;
        let name = format!("attention {query_warps}x{key_warps} warps {keys} keys");
        Candidate::new(name, vec![launch], 0)
    }

    fn source(&self, block: Block) -> KernelSource {
        let sizes = &self.sizes;
        let load = |bytes: Option<usize>| bytes.expect("`candidates` has asked").to_string();
        let is_even = self.output.iter().all(|stride| stride.is_multiple_of(2))
            && sizes.value_depth.is_multiple_of(2);
        let mask = match self.mask {
            None => "MASK_NONE",
            Some([_, _, 0, _]) => "MASK_BY_KEY",
            Some(_) => "MASK_BY_QUERY",
        };
        let defines = vec![
            ("STORAGE", self.precision.storage().cuda_name().to_string()),
            ("MATH", math_define(self.precision).to_string()),
            ("BY_WARPGROUP", "0".to_string()),
            ("QUERY_WARPS", block.query_warps.to_string()),
            ("KEY_WARPS", block.key_warps.to_string()),
            ("KEYS", block.keys.to_string()),
            ("DEPTH", sizes.depth.to_string()),
            ("VALUE_DEPTH", sizes.value_depth.to_string()),
            ("LOAD_BYTES", load(self.load_bytes(sizes.depth, &[self.query, self.key]))),
            ("VALUE_LOAD_BYTES", load(self.load_bytes(sizes.value_depth, &[self.value]))),
            ("STORE_ELEMENTS", if is_even { "2" } else { "1" }.to_string()),
            ("MASK", mask.to_string()),
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
    problems.flat_map(|problem| [BLOCKS[0], BLOCKS[8]].map(|block| problem.source(block))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_heads_share_their_keys_among_warps_and_many_do_not() {
        let [bert, _] = examples(Precision::F16);
        let first = |problem: &AttentionProblem, sms| {
            problem.candidates(Chip::H200.with_sms(sms))[0].launches[0].source.defines.clone()
        };
        let key_warps = |defines: Vec<(&str, String)>| {
            let define = defines.into_iter().find(|(name, _)| *name == "KEY_WARPS");
            define.unwrap().1.parse::<usize>().unwrap()
        };
        assert!(key_warps(first(&bert, 132)) > 1);
        assert_eq!(key_warps(first(&bert, 8)), 1);
    }

    /// Warps of a block share what they load, and shared memory leaves room for few blocks.
    #[test]
    fn queries_of_many_heads_share_a_block() {
        let [bert, _] = examples(Precision::F16);
        let many = AttentionProblem { sizes: AttentionSizes { batch: 8, ..bert.sizes }, ..bert };
        let threads = |sms| many.candidates(Chip::H200.with_sms(sms))[0].launches[0].threads;
        assert!(threads(8) >= 4 * 32);
        assert!(threads(132) >= 4 * 32);
    }

    #[test]
    fn blocks_cover_every_query() {
        for problem in Precision::ALL.into_iter().flat_map(examples) {
            let candidates = problem.candidates(Chip::H200);
            assert!(!candidates.is_empty());
            for (block, launch) in
                BLOCKS.iter().map(|&block| (block, problem.candidate(block).launches.remove(0)))
            {
                assert!(launch.grid[0] as usize * block.queries() >= problem.sizes.queries);
                assert_eq!(launch.threads as usize, block.threads());
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
