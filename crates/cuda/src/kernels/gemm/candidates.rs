//! The ways to compute one product, the one expected to be fastest first.

use weft_ir::Activation;

use super::cost::estimate;
use super::epilogue::epilogue_activation;
use super::parameters::Parameters;
use super::problem::{GemmProblem, Image, Left, Operands};
use super::space::Space;
use super::split::Split;
use super::streamed::{Streamed, least_streamed, streamed};
use super::tile::{Multiplier, ROW_BYTES, Tile};
use crate::choosing::Wanted;
use crate::launch::{Argument, Candidate, Copied, CopiedWindows, KernelSource, Launch, TensorMap};
use crate::{Chip, Precision, Storage};

const TEXT: &str = concat!(
    include_str!("../../../kernels/divider.cuh"),
    include_str!("../../../kernels/tensor_core.cuh"),
    include_str!("../../../kernels/gemm_problem.cuh"),
    include_str!("../../../kernels/gemm_tile.cuh"),
    include_str!("../../../kernels/gemm_copies.cuh"),
    include_str!("../../../kernels/gemm_steps.cuh"),
    include_str!("../../../kernels/gemm_finish.cuh"),
    include_str!("../../../kernels/gemm.cu")
);

/// The most candidates of one product that are offered where not all are wanted.
const MAX_RANKED: usize = 16;

/// Steps from which on blocks of several entries should have an SM each: what the next launch could begin with beside them is
/// less than what two on one SM take longer.
const MANY_STEPS: usize = 16;

/// The candidates for products of one shape, one for each of the operands, the one expected to be fastest first; none
/// where the kernel cannot compute it. The first `workspace_from` bytes of the step's workspace belong to somebody else.
pub(crate) fn candidates(
    problem: &GemmProblem,
    operands: &[Operands],
    chip: Chip,
    workspace_from: usize,
    wanted: &Wanted,
) -> Vec<Candidate> {
    assert!(problem.stack == 1 || operands.len() == 1, "products are stacked or grouped");
    let (entries, chip) = wanted.entries_on(chip);
    let all = GemmProblem { stack: problem.stack * operands.len() * entries, ..problem.clone() };
    let space = Space { problem: &all, has_descriptions: problem.stack == 1, chip };
    let make = |(tile, split): &(Tile, Split)| {
        let is_rounded_first = is_rounded_first(&all, tile, *split, chip);
        let mut candidate =
            candidate(problem, operands, tile, *split, is_rounded_first, workspace_from);
        if entries > 1 && problem.steps() / split.count() >= MANY_STEPS {
            candidate.launches[0].spread(entries, chip);
        }
        candidate
    };
    let usual = ranked(&space, space.usual());
    let mut candidates: Vec<Candidate> = match wanted {
        Wanted::Ranked | Wanted::ForEntries(_) => {
            usual.iter().take(MAX_RANKED).map(|(_, choice)| make(choice)).collect()
        }
        Wanted::Named(name) => {
            let first = usual.first().map(|(_, choice)| *choice);
            let named = space
                .legal()
                .find(|(tile, split)| candidate_name(problem, tile, *split) == **name)
                .filter(|choice| Some(*choice) != first);
            first.iter().chain(&named).map(make).collect()
        }
        Wanted::All => {
            let mut every = ranked(&space, space.sensible());
            // What is taken where nothing is known stands first, whatever else there is.
            if let Some(first) = usual.first() {
                every.retain(|(_, choice)| *choice != first.1);
                every.insert(0, *first);
            }
            let least = every.iter().map(|(estimate, _)| *estimate).fold(f64::INFINITY, f64::min);
            let described = |(estimate, choice): &(f64, (Tile, Split))| Candidate {
                traits: Some(space.traits(&choice.0, choice.1, *estimate, least)),
                ..make(choice)
            };
            every.iter().map(described).collect()
        }
    };
    let mut streamed = match operands {
        [operands] => streamed(problem, operands, chip, entries),
        _ => Vec::new(),
    };
    if entries > 1 {
        // Their estimate is not known to hold for several entries: they stand last, where only a measurement finds them.
        candidates.extend(streamed.into_iter().map(|found| found.candidate));
        return candidates;
    }
    // The best stands before the others where it is expected to be faster, else after the first of them.
    let least = usual.first().map(|(estimate, _)| *estimate);
    let best = streamed.first().filter(|best| least.is_none_or(|least| best.cycles < least));
    let best = best.map(|best| best.candidate.name.clone());
    let place = if best.is_some() { 0 } else { candidates.len().min(1) };
    streamed.retain(|Streamed { candidate: Candidate { name, .. }, .. }| {
        wanted.includes(name) || best.as_ref() == Some(name)
    });
    candidates.splice(place..place, streamed.into_iter().map(|found| found.candidate));
    candidates
}

/// The cycles that the candidate which is expected to be fastest takes for one product; `None` where there is none.
pub(crate) fn least_estimate(problem: &GemmProblem, chip: Chip, wanted: &Wanted) -> Option<f64> {
    let (entries, chip) = wanted.entries_on(chip);
    let all = GemmProblem { stack: problem.stack * entries, ..problem.clone() };
    let space = Space { problem: &all, has_descriptions: problem.stack == 1, chip };
    let tiled = ranked(&space, space.usual()).first().map(|(estimate, _)| *estimate);
    let streamed = if entries == 1 { least_streamed(problem, chip) } else { None };
    tiled.into_iter().chain(streamed).min_by(f64::total_cmp)
}

/// Tiles and splits with their estimated times, the shortest first.
fn ranked(
    space: &Space<'_>,
    choices: impl Iterator<Item = (Tile, Split)>,
) -> Vec<(f64, (Tile, Split))> {
    let mut ranked: Vec<(f64, (Tile, Split))> = choices
        .map(|(tile, split)| (estimate(space.problem, &tile, split, space.chip), (tile, split)))
        .collect();
    ranked.sort_by(|a, b| a.0.total_cmp(&b.0));
    ranked
}

/// What a candidate is called, here and in the tuning database.
fn candidate_name(problem: &GemmProblem, tile: &Tile, split: Split) -> String {
    let kind = match problem.left {
        Left::Matrix { .. } => "gemm",
        Left::Image(_) => "implicit_gemm",
    };
    format!("{kind} {}{}", tile.name(), split.name())
}

fn candidate(
    problem: &GemmProblem,
    operands: &[Operands],
    tile: &Tile,
    split: Split,
    is_rounded_first: bool,
    workspace_from: usize,
) -> Candidate {
    let parts = split.count();
    let steps = problem.steps().div_ceil(parts);
    let shared_bytes = match is_rounded_first {
        true => tile.shared_bytes_of_results(steps, problem.has_residual),
        false => tile.shared_bytes(steps),
    };
    let tiles = problem.m.div_ceil(tile.m) * problem.n.div_ceil(tile.n);
    let products = problem.stack * operands.len();
    let (workspace, counters, workspace_bytes) = match split {
        Split::Workspace(_) => (
            Argument::Workspace { offset_bytes: workspace_from },
            Argument::Counters { count: tiles * products },
            tiles * products * parts * tile.m * tile.n * size_of::<f32>(),
        ),
        _ => (Argument::Null, Argument::Null, 0),
    };
    let small = |count: usize| u32::try_from(count).expect("sizes were checked");
    let mut arguments = product_arguments(problem, parts, operands).to_vec();
    arguments.extend([workspace, counters]);
    arguments.extend(tensor_maps(problem, operands, tile));
    let launch = Launch {
        source: source(problem, operands.len(), tile, split, is_rounded_first),
        grid: [small(tiles), small(parts), small(products)],
        threads: small(tile.threads()),
        shared_bytes: small(shared_bytes),
        cluster: match split {
            Split::Cluster(parts) => [1, small(parts), 1],
            _ => [1, 1, 1],
        },
        arguments,
    };
    let name = candidate_name(problem, tile, split);
    Candidate::new(name, vec![launch], workspace_from + workspace_bytes)
}

/// True where sums are better finished in registers: that takes less of an SM, and longer code, so that it pays where every SM
/// has blocks that wait for others, and nothing that it takes besides leaves room for fewer of them.
fn is_rounded_first(all: &GemmProblem, tile: &Tile, split: Split, chip: Chip) -> bool {
    let is_brief = match all.activation {
        None => true,
        Some(activation) => matches!(
            activation,
            Activation::Relu
                | Activation::Clip { .. }
                | Activation::LeakyRelu { .. }
                | Activation::HardSwish
                | Activation::HardSigmoid { .. }
        ),
    };
    if split != Split::None || all.store_elements() != 8 || !is_brief {
        return false;
    }
    let steps = all.steps();
    let shared_bytes = tile.shared_bytes_of_results(steps, all.has_residual);
    let blocks = all.m.div_ceil(tile.m) * all.n.div_ceil(tile.n) * all.stack;
    let at_once = tile.blocks_with(shared_bytes, chip);
    let turns = if all.has_residual { 3 } else { 2 };
    // The bias of a tile and barriers, which the kernel has besides.
    let fixed_bytes = tile.n * size_of::<f32>() + 1024;
    shared_bytes + fixed_bytes <= chip.shared_bytes_per_block as usize
        && at_once >= tile.blocks_per_sm(steps, chip)
        && blocks >= turns * at_once * chip.sm_count as usize
}

/// What every kernel of products is given first: the problem, its sum split into parts, and the operands of each product.
pub(crate) fn product_arguments(
    problem: &GemmProblem,
    parts: usize,
    operands: &[Operands],
) -> [Argument; 2] {
    let parameters = Argument::structure(&Parameters::new(problem, parts));
    [parameters, Argument::Addresses(operands.iter().flat_map(Operands::addresses).collect())]
}

/// True where the copy engine brings rows of the left matrix, or windows of images; else threads find them.
fn bulk_left(problem: &GemmProblem, tile: &Tile) -> bool {
    tile.is_bulk
        && match &problem.left {
            Left::Matrix { .. } => true,
            Left::Image(image) => image.has_bulk_windows(problem.element_bytes()),
        }
}

/// The descriptions of operands that the copy engine brings, as the kernel lists them.
fn tensor_maps(problem: &GemmProblem, operands: &[Operands], tile: &Tile) -> Vec<Argument> {
    if !tile.is_bulk {
        return Vec::new();
    }
    let right_size = [problem.n, problem.right.stride];
    let right = operands.iter().map(|of| matrix_map(problem, &of.right, right_size, tile.n));
    // The left one is the same for all.
    let left =
        operands.first().filter(|_| bulk_left(problem, tile)).map(|of| match &problem.left {
            Left::Matrix { stride } => matrix_map(problem, &of.left, [problem.m, *stride], tile.m),
            Left::Image(image) => window_map(problem, &of.left, image, tile.m),
        });
    right.chain(left).map(Argument::TensorMap).collect()
}

/// A matrix of so many rows, so many elements apart, with k contiguous.
pub(super) fn matrix_map(
    problem: &GemmProblem,
    base: &Argument,
    [rows, stride]: [usize; 2],
    tile_rows: usize,
) -> TensorMap {
    let storage = problem.precision.storage();
    let columns = (ROW_BYTES / storage.size_bytes()) as u32;
    TensorMap {
        base: Box::new(base.clone()),
        storage,
        sizes: vec![problem.k as u64, rows as u64],
        strides_bytes: vec![(stride * storage.size_bytes()) as u64],
        copied: Copied::Box(vec![columns, tile_rows as u32]),
        swizzle_bytes: ROW_BYTES as u32,
    }
}

/// The images whose windows are rows of the left matrix.
pub(super) fn window_map(
    problem: &GemmProblem,
    base: &Argument,
    image: &Image,
    windows: usize,
) -> TensorMap {
    let storage = problem.precision.storage();
    let [height, width] = image.size;
    let images = problem.m / (image.output[0] * image.output[1]);
    let pixel_bytes = image.channels * storage.size_bytes();
    let strides = [pixel_bytes, width * pixel_bytes, height * width * pixel_bytes];
    let small = |value: usize| i32::try_from(value).expect("sizes were checked");
    let corners = [1, 0].map(|axis| {
        let first = -small(image.pads_begin[axis]);
        let last = first + small((image.output[axis] - 1) * image.strides[axis]);
        [first, last - small(image.size[axis] - 1)]
    });
    TensorMap {
        base: Box::new(base.clone()),
        storage,
        sizes: [image.channels, width, height, images].map(|size| size as u64).to_vec(),
        strides_bytes: strides.map(|stride| stride as u64).to_vec(),
        copied: Copied::Windows(CopiedWindows {
            channels: (ROW_BYTES / storage.size_bytes()) as u32,
            count: windows as u32,
            first: corners.map(|[first, _]| first),
            last: corners.map(|[_, last]| last),
            strides: [image.strides[1] as u32, image.strides[0] as u32],
        }),
        swizzle_bytes: ROW_BYTES as u32,
    }
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

/// Taps of a filter along rows and columns, and whether they lie apart.
pub(super) fn taps_of(problem: &GemmProblem) -> ([usize; 2], bool) {
    match problem.left {
        Left::Matrix { .. } => ([1, 1], false),
        Left::Image(image) => (image.kernel, image.dilations != [1, 1]),
    }
}

/// The type of the bias, as kernels name it.
pub(super) fn bias_name(problem: &GemmProblem) -> String {
    problem.bias.unwrap_or(Storage::F32).cuda_name().to_string()
}

pub(super) fn source(
    problem: &GemmProblem,
    group: usize,
    tile: &Tile,
    split: Split,
    is_rounded_first: bool,
) -> KernelSource {
    let flag = |is_set: bool| u8::from(is_set).to_string();
    let (kernel, is_dilated) = taps_of(problem);
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
        ("TAPS", (kernel[0] * kernel[1]).to_string()),
        ("KERNEL_X", kernel[1].to_string()),
        ("IS_DILATED", flag(is_dilated)),
        ("LOAD_BYTES", load_bytes(problem.left_load_bytes())),
        ("RIGHT_BY_ROWS", flag(problem.right.by_rows)),
        ("RIGHT_LOAD_BYTES", load_bytes(problem.right_load_bytes())),
        ("RIGHT_IS_WEIGHTS", flag(problem.right.is_weights)),
        ("STORE_ELEMENTS", problem.store_elements().to_string()),
        ("REDUCTION", split.define().to_string()),
        ("IS_ROUNDED_FIRST", flag(is_rounded_first)),
        ("ACTIVATION", epilogue_activation(problem.activation).0.to_string()),
        ("HAS_BIAS", flag(problem.bias.is_some())),
        ("BIAS", bias_name(problem)),
        ("HAS_RESIDUAL", flag(problem.has_residual)),
    ];
    KernelSource {
        is_exact: tile.multiplier == Multiplier::Warpgroup,
        ..KernelSource::new("gemm.cu", TEXT, "gemm", defines)
    }
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
            let space = Space { problem: &problem, has_descriptions: true, chip };
            let choices: Vec<(Tile, Split)> = space.legal().collect();
            prop_assert!(space.usual().next().is_some());
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

    fn operands() -> Operands {
        Operands {
            left: Argument::Input(0),
            right: Argument::Null,
            bias: Argument::Null,
            residual: Argument::Null,
            output: Argument::Output(0),
        }
    }

    #[test]
    fn a_long_sum_with_few_outputs_is_split() {
        let operands = operands();
        let first = |problem: &GemmProblem, chip| {
            candidates(problem, std::slice::from_ref(&operands), chip, 0, &Wanted::Ranked)[0]
                .clone()
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
    fn blocks_stay_where_sms_have_many_tiles() {
        let is_first_streamed = |m, n, k, sms| {
            let problem = product(m, n, k, Precision::F16);
            let chip = Chip::H200.with_sms(sms);
            let found = candidates(&problem, &[operands()], chip, 0, &Wanted::Ranked);
            let least = least_estimate(&problem, chip, &Wanted::Ranked).unwrap();
            let space = Space { problem: &problem, has_descriptions: true, chip };
            assert!(least <= ranked(&space, space.usual())[0].0);
            found[0].launches[0].source.stays
        };
        assert!(is_first_streamed(25_088, 256, 64, 8));
        assert!(is_first_streamed(1024, 3072, 768, 32));
        assert!(!is_first_streamed(392, 512, 2048, 132));
        // What was found to be fastest is there, after what is expected to be.
        let wide = product(25_088, 256, 64, Precision::F16);
        let name = "streamed 64x256 2 teams 3 stages";
        let named = Wanted::Named(name.into());
        let found = candidates(&wide, &[operands()], Chip::H200.with_sms(8), 0, &named);
        assert!(found.iter().any(|candidate| candidate.name == name));
        let streamed = found.iter().filter(|candidate| candidate.launches[0].source.stays);
        assert!(streamed.count() <= 2);
    }

    #[test]
    fn results_beside_the_stages_leave_room_for_what_is_fixed() {
        let wide = GemmProblem { has_residual: true, ..product(100_352, 768, 768, Precision::F16) };
        let chip = Chip::H200.with_sms(8);
        let space = Space { problem: &wide, has_descriptions: true, chip };
        let mut count = 0;
        for (tile, split) in space.legal() {
            if is_rounded_first(&wide, &tile, split, chip) {
                let shared_bytes = tile.shared_bytes_of_results(wide.steps(), true);
                assert!(
                    shared_bytes + 4 * tile.n < chip.shared_bytes_per_block as usize,
                    "{tile:?}"
                );
                count += 1;
            }
        }
        assert!(count > 0);
        // Where every block finds a place at once there is nothing to gain.
        let few = GemmProblem { m: 128, ..wide };
        assert!(space.legal().all(|(tile, split)| !is_rounded_first(
            &few,
            &tile,
            split,
            Chip::H200
        )));
    }

    #[test]
    fn blocks_of_entries_with_long_sums_that_find_an_sm_each_have_one_each() {
        let operands = operands();
        let of = |k, entries| {
            let problem = product(49, 512, k, Precision::F16);
            let wanted = match entries {
                1 => Wanted::Ranked,
                entries => Wanted::ForEntries(entries),
            };
            let chip = Chip::H200.with_sms(132 / entries);
            candidates(&problem, std::slice::from_ref(&operands), chip, 0, &wanted)
        };
        let spreads = |candidate: &Candidate, entries: u32| {
            let launch = &candidate.launches[0];
            let has_place = launch.grid.iter().product::<u32>() * entries <= 132;
            (has_place, 2 * launch.shared_bytes >= Chip::H200.shared_bytes_per_sm)
        };
        let long = of(4608, 32);
        assert!(long.iter().any(|candidate| spreads(candidate, 32) == (true, true)));
        assert!(long.iter().all(|candidate| spreads(candidate, 32) != (true, false)));
        let small = |candidate: &&Candidate| !spreads(candidate, 1).1;
        assert!(of(4608, 1).iter().any(|candidate| small(&candidate)));
        assert!(of(128, 32).iter().any(|candidate| small(&candidate)));
    }

    #[test]
    fn sizes_past_32_bits_are_refused() {
        assert!(!product(1 << 20, 1 << 12, 64, Precision::F16).is_supported());
        assert!(!product(0, 8, 8, Precision::F16).is_supported());
    }
}
