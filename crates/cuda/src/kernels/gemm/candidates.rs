//! The ways to compute one product, the one expected to be fastest first.

use super::cost::estimate;
use super::parameters::Parameters;
use super::problem::{GemmProblem, Left, Operands};
use super::tile::{Multiplier, ROW_BYTES, TILES, Tile};
use crate::kernels::activation::activation;
use crate::launch::{Argument, Candidate, KernelSource, Launch, TensorMap};
use crate::{Chip, Precision, Storage};

const TEXT: &str = concat!(
    include_str!("../../../kernels/divider.cuh"),
    include_str!("../../../kernels/tensor_core.cuh"),
    include_str!("../../../kernels/gemm_tile.cuh"),
    include_str!("../../../kernels/gemm_copies.cuh"),
    include_str!("../../../kernels/gemm_steps.cuh"),
    include_str!("../../../kernels/gemm_finish.cuh"),
    include_str!("../../../kernels/gemm.cu")
);

/// The most candidates that are offered for one product.
const MAX_CANDIDATES: usize = 16;

/// The largest workspace of one product.
const MAX_WORKSPACE_BYTES: usize = 256 << 20;

/// Over how many blocks the sum over k is split, and how their parts are added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Split {
    None,
    Cluster(usize),
    Workspace(usize),
}

impl Split {
    const ALL: [Split; 8] = [
        Split::None,
        Split::Cluster(2),
        Split::Cluster(4),
        Split::Cluster(8),
        Split::Workspace(2),
        Split::Workspace(4),
        Split::Workspace(8),
        Split::Workspace(16),
    ];

    pub(super) fn count(self) -> usize {
        match self {
            Split::None => 1,
            Split::Cluster(parts) | Split::Workspace(parts) => parts,
        }
    }

    fn define(self) -> &'static str {
        match self {
            Split::None => "REDUCTION_NONE",
            Split::Cluster(_) => "REDUCTION_CLUSTER",
            Split::Workspace(_) => "REDUCTION_WORKSPACE",
        }
    }

    fn name(self) -> String {
        match self {
            Split::None => String::new(),
            Split::Cluster(parts) => format!(" cluster of {parts}"),
            Split::Workspace(parts) => format!(" {parts} parts"),
        }
    }
}

/// The candidates for products of one shape, one for each of the operands; none where the kernel cannot compute it. The first `workspace_from` bytes of the
/// step's workspace belong to somebody else.
pub(crate) fn candidates(
    problem: &GemmProblem,
    operands: &[Operands],
    chip: Chip,
    workspace_from: usize,
) -> Vec<Candidate> {
    assert!(problem.stack == 1 || operands.len() == 1, "products are stacked or grouped");
    let all = GemmProblem { stack: problem.stack * operands.len(), ..problem.clone() };
    let mut ranked: Vec<(f64, Tile, Split)> = choices(&all, operands.len(), chip)
        .map(|(tile, split)| (estimate(&all, &tile, split, chip), tile, split))
        .collect();
    ranked.sort_by(|a, b| a.0.total_cmp(&b.0));
    ranked.truncate(MAX_CANDIDATES);
    ranked
        .into_iter()
        .map(|(_, tile, split)| candidate(problem, operands, &tile, split, workspace_from))
        .collect()
}

/// Every tile and split that makes sense for the problem.
fn choices(problem: &GemmProblem, group: usize, chip: Chip) -> impl Iterator<Item = (Tile, Split)> {
    let is_supported = problem.is_supported();
    let all_steps = problem.steps();
    let (m, n) = (problem.m, problem.n);
    let stack = problem.stack;
    let by_rows = problem.right.by_rows;
    // Warpgroups read operands from shared memory, where numbers of 4 bytes are not split.
    let is_narrow = problem.element_bytes() == 2;
    // A launch has one description of each operand, and the copy engine wants rows at multiples of 16 bytes.
    let can_be_bulk = group == 1 && stack == 1 && problem.left_load_bytes() == Some(16);
    let fits = move |tile: &Tile, split: Split| {
        let parts = split.count();
        let tiles = m.div_ceil(tile.m) * n.div_ceil(tile.n) * stack;
        let is_split_evenly = (parts - 1) * all_steps.div_ceil(parts) < all_steps;
        // The smallest tile is always there, so that there is a candidate for every size.
        let is_smallest = *tile == TILES[0] && split == Split::None;
        let is_in_proportion = (tile.m == 16 || tile.m < 2 * m) && (tile.n == 32 || tile.n < 2 * n);
        let is_worth_splitting = parts == 1
            || tiles * parts <= 2 * chip.sm_count as usize * tile.blocks_per_sm(all_steps, chip);
        let has_means = match split {
            Split::None => true,
            Split::Cluster(_) => chip.is_hopper_or_later(),
            Split::Workspace(_) => tiles * parts * tile.m * tile.n * 4 <= MAX_WORKSPACE_BYTES,
        };
        let has_multiplier = match tile.multiplier {
            Multiplier::Warp => true,
            Multiplier::Warpgroup => is_narrow && !by_rows,
        };
        is_supported
            && has_multiplier
            && (!tile.is_bulk || can_be_bulk)
            && tile.is_available(chip)
            && has_means
            && (is_smallest || (is_split_evenly && is_in_proportion && is_worth_splitting))
    };
    TILES
        .iter()
        .flat_map(|tile| tile.variants())
        .flat_map(|tile| Split::ALL.into_iter().map(move |split| (tile, split)))
        .filter(move |(tile, split)| fits(tile, *split))
}

fn candidate(
    problem: &GemmProblem,
    operands: &[Operands],
    tile: &Tile,
    split: Split,
    workspace_from: usize,
) -> Candidate {
    let parts = split.count();
    let tiles = problem.m.div_ceil(tile.m) * problem.n.div_ceil(tile.n);
    let products = problem.stack * operands.len();
    let parameters = Parameters::new(problem, parts);
    let (workspace, counters, workspace_bytes) = match split {
        Split::Workspace(_) => (
            Argument::Workspace { offset_bytes: workspace_from },
            Argument::Counters { count: tiles * products },
            tiles * products * parts * tile.m * tile.n * size_of::<f32>(),
        ),
        _ => (Argument::Null, Argument::Null, 0),
    };
    let small = |count: usize| u32::try_from(count).expect("sizes were checked");
    let mut arguments = vec![
        Argument::structure(&parameters),
        Argument::Addresses(operands.iter().flat_map(Operands::addresses).collect()),
        workspace,
        counters,
    ];
    arguments.extend(tensor_maps(problem, &operands[0], tile));
    let launch = Launch {
        source: source(problem, operands.len(), tile, split),
        grid: [small(tiles), small(parts), small(products)],
        threads: small(tile.threads()),
        shared_bytes: small(tile.shared_bytes(problem.steps().div_ceil(parts))),
        cluster: match split {
            Split::Cluster(parts) => [1, small(parts), 1],
            _ => [1, 1, 1],
        },
        arguments,
    };
    let kind = match problem.left {
        Left::Matrix { .. } => "gemm",
        Left::Image(_) => "implicit_gemm",
    };
    let name = format!("{kind} {}{}", tile.name(), split.name());
    Candidate::new(name, vec![launch], workspace_from + workspace_bytes)
}

/// True where the copy engine brings rows of the left matrix; windows of images are found by threads.
fn bulk_left(problem: &GemmProblem, tile: &Tile) -> bool {
    tile.is_bulk && matches!(problem.left, Left::Matrix { .. })
}

/// The descriptions of operands that the copy engine brings, as the kernel lists them.
fn tensor_maps(problem: &GemmProblem, operands: &Operands, tile: &Tile) -> Vec<Argument> {
    let storage = problem.precision.storage();
    let columns = (ROW_BYTES / storage.size_bytes()) as u32;
    let map = |base: &Argument, rows: usize, stride: usize, tile_rows: usize| {
        Argument::TensorMap(TensorMap {
            base: Box::new(base.clone()),
            storage,
            sizes: vec![problem.k as u64, rows as u64],
            strides_bytes: vec![(stride * storage.size_bytes()) as u64],
            box_sizes: vec![columns, tile_rows as u32],
            swizzle_bytes: ROW_BYTES as u32,
        })
    };
    let right = tile.is_bulk.then(|| map(&operands.right, problem.n, problem.right.stride, tile.n));
    let left = match problem.left {
        Left::Matrix { stride } if tile.is_bulk => {
            Some(map(&operands.left, problem.m, stride, tile.m))
        }
        _ => None,
    };
    right.into_iter().chain(left).collect()
}

/// What multiplies numbers of a precision, as `tensor_core.cuh` names it.
pub(crate) fn math_define(precision: Precision) -> &'static str {
    match precision {
        Precision::F16 => "MATH_F16",
        Precision::Bf16 => "MATH_BF16",
        Precision::Tf32 => "MATH_TF32",
        Precision::F32 => "MATH_F32",
    }
}

fn source(problem: &GemmProblem, group: usize, tile: &Tile, split: Split) -> KernelSource {
    let flag = |is_set: bool| u8::from(is_set).to_string();
    let (channels, kernel, is_dilated) = match problem.left {
        Left::Matrix { .. } => (1, [1, 1], false),
        Left::Image(image) => (image.channels, image.kernel, image.dilations != [1, 1]),
    };
    let load_bytes = |bytes: Option<usize>| bytes.expect("`is_supported` was asked").to_string();
    let defines = vec![
        ("STORAGE", problem.precision.storage().cuda_name().to_string()),
        ("MATH", math_define(problem.precision).to_string()),
        ("GROUP", group.to_string()),
        ("BY_WARPGROUP", flag(tile.multiplier == Multiplier::Warpgroup)),
        ("BULK_LEFT", flag(bulk_left(problem, tile))),
        ("BULK_RIGHT", flag(tile.is_bulk)),
        ("TILE_M", tile.m.to_string()),
        ("TILE_N", tile.n.to_string()),
        ("WARPS_M", tile.warps_m.to_string()),
        ("WARPS_N", tile.warps_n.to_string()),
        ("STAGES", tile.stages.to_string()),
        ("ROW_BYTES", ROW_BYTES.to_string()),
        ("CONVOLUTION", flag(matches!(problem.left, Left::Image(_)))),
        ("CHANNELS", channels.to_string()),
        ("TAPS", (kernel[0] * kernel[1]).to_string()),
        ("KERNEL_X", kernel[1].to_string()),
        ("IS_DILATED", flag(is_dilated)),
        ("LOAD_BYTES", load_bytes(problem.left_load_bytes())),
        ("RIGHT_BY_ROWS", flag(problem.right.by_rows)),
        ("RIGHT_LOAD_BYTES", load_bytes(problem.right_load_bytes())),
        ("RIGHT_IS_WEIGHTS", flag(problem.right.is_weights)),
        ("STORE_ELEMENTS", problem.store_elements().to_string()),
        ("REDUCTION", split.define().to_string()),
        ("ACTIVATION", activation(problem.activation).0.to_string()),
        ("HAS_BIAS", flag(problem.bias.is_some())),
        ("BIAS", problem.bias.unwrap_or(Storage::F32).cuda_name().to_string()),
        ("HAS_RESIDUAL", flag(problem.has_residual)),
    ];
    KernelSource {
        is_exact: tile.multiplier == Multiplier::Warpgroup,
        ..KernelSource::new("gemm.cu", TEXT, "gemm", defines)
    }
}

/// Typical variants, for checking that they compile: every precision, every kind of operand, every way to split.
pub(crate) fn samples() -> Vec<KernelSource> {
    use super::problem::{Image, Right};
    let image = Image {
        size: [14, 14],
        channels: 64,
        output: [14, 14],
        kernel: [3, 3],
        strides: [1, 1],
        dilations: [1, 1],
        pads_begin: [1, 1],
    };
    let mut sources = Vec::new();
    for precision in Precision::ALL {
        let convolution = GemmProblem {
            m: 196,
            n: 64,
            k: 576,
            stack: 1,
            stack_steps: [0; 3],
            left: Left::Image(image),
            right: Right { by_rows: false, stride: 576, is_weights: true },
            bias: Some(Storage::F32),
            has_residual: true,
            activation: Some(weft_ir::Activation::Relu),
            precision,
        };
        let rows = GemmProblem { left: Left::Matrix { stride: 576 }, ..convolution.clone() };
        let product = GemmProblem {
            n: 63,
            left: Left::Matrix { stride: 578 },
            right: Right { by_rows: true, stride: 66, is_weights: false },
            bias: None,
            has_residual: false,
            activation: None,
            ..convolution.clone()
        };
        for split in [Split::None, Split::Cluster(4), Split::Workspace(4)] {
            for tile in [&TILES[3], &TILES[12]] {
                sources.push(source(&convolution, 1, tile, split));
                sources.push(source(&product, 1, tile, split));
            }
            let by_warpgroup =
                TILES.iter().filter(|tile| tile.multiplier == Multiplier::Warpgroup).step_by(4);
            if convolution.element_bytes() == 2 {
                for tile in by_warpgroup {
                    sources.push(source(&convolution, 3, tile, split));
                    let bulk = Tile { is_bulk: true, ..*tile };
                    sources.push(source(&convolution, 1, &bulk, split));
                    sources.push(source(&rows, 1, &bulk, split));
                }
            }
        }
    }
    sources
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::problem::Right;
    use super::*;

    fn product(m: usize, n: usize, k: usize, precision: Precision) -> GemmProblem {
        let aligned = k.next_multiple_of(8);
        GemmProblem {
            m,
            n,
            k,
            stack: 1,
            stack_steps: [0; 3],
            left: Left::Matrix { stride: aligned },
            right: Right { by_rows: false, stride: aligned, is_weights: true },
            bias: None,
            has_residual: false,
            activation: None,
            precision,
        }
    }

    proptest! {
        #[test]
        fn every_product_has_candidates_that_cover_it_once(
            m in 1usize..5000, n in 1usize..3000, k in 1usize..5000,
            precision in prop::sample::select(&Precision::ALL[..]), sms in 1u32..140,
        ) {
            let problem = product(m, n, k, precision);
            let chip = Chip::H200.with_sms(sms);
            let choices: Vec<(Tile, Split)> = choices(&problem, 1, chip).collect();
            prop_assert!(!choices.is_empty());
            for (tile, split) in choices {
                let steps = problem.steps();
                let per_split = steps.div_ceil(split.count());
                // Every block has at least one step, and together they have all of them.
                prop_assert!(per_split * split.count() >= steps);
                prop_assert!(split == Split::None || per_split * (split.count() - 1) < steps);
                prop_assert!(tile.shared_bytes(per_split) <= chip.shared_bytes_per_block as usize);
            }
        }
    }

    #[test]
    fn a_long_sum_with_few_outputs_is_split() {
        let operands = Operands {
            left: Argument::Input(0),
            right: Argument::Null,
            bias: Argument::Null,
            residual: Argument::Null,
            output: Argument::Output(0),
        };
        let first = |problem: &GemmProblem, chip| {
            candidates(problem, std::slice::from_ref(&operands), chip, 0)[0].clone()
        };
        let long = product(49, 512, 4608, Precision::F16);
        assert!(first(&long, Chip::H200).launches[0].grid[1] > 1);
        let wide = product(100_352, 256, 64, Precision::F16);
        assert_eq!(first(&wide, Chip::H200).launches[0].grid[1], 1);
        // A chip without clusters splits too, over a workspace.
        let older = Chip { capability: 80, shared_bytes_per_block: 163 << 10, ..Chip::H200 };
        let candidate = first(&long, older);
        assert_eq!(candidate.launches[0].cluster, [1, 1, 1]);
        assert!(candidate.workspace_bytes > 0);
    }

    #[test]
    fn sizes_past_32_bits_are_refused() {
        assert!(!product(1 << 20, 1 << 12, 64, Precision::F16).is_supported());
        assert!(!product(0, 8, 8, Precision::F16).is_supported());
    }
}
