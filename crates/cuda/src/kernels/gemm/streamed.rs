//! Products and convolutions by blocks that stay and compute tile after tile: `stream_gemm.cu`.

use weft_ir::Activation;

use super::candidates::{
    bias_name, math_define, matrix_map, product_arguments, taps_of, window_map,
};
use super::epilogue::epilogue_activation;
use super::problem::{GemmProblem, Image, Left, Operands};
use super::streamed_cost::estimate;
use super::tile::ROW_BYTES;
use crate::launch::{Argument, Candidate, Copied, KernelSource, Launch, TensorMap};
use crate::{Chip, Precision};

const TEXT: &str = concat!(
    include_str!("../../../kernels/divider.cuh"),
    include_str!("../../../kernels/tensor_core.cuh"),
    include_str!("../../../kernels/gemm_problem.cuh"),
    include_str!("../../../kernels/stream_gemm.cu")
);

/// Shared memory lies at multiples of this, which the kernel sees to.
const ALIGNMENT: usize = 1024;

/// Columns of results that the copy engine stores at once.
const BOX_COLUMNS: usize = 64;

/// How a block computes its tiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StreamedTile {
    /// Tiles that are computed at a time.
    pub(super) teams: usize,
    /// Warpgroups of a team, and 64 rows that each of them has so many times.
    groups_m: usize,
    parts_m: usize,
    pub(super) n: usize,
    /// Steps of k in shared memory at once.
    stages: usize,
}

const TILES: [StreamedTile; 8] = [
    of(2, [1, 2], 64, 6),
    of(3, [1, 2], 64, 5),
    of(3, [1, 1], 128, 6),
    of(2, [1, 2], 128, 4),
    of(2, [1, 1], 256, 3),
    of(1, [1, 1], 64, 12),
    of(1, [1, 1], 128, 8),
    of(1, [1, 1], 256, 4),
];

const fn of(teams: usize, rows: [usize; 2], n: usize, stages: usize) -> StreamedTile {
    let [groups_m, parts_m] = rows;
    StreamedTile { teams, groups_m, parts_m, n, stages }
}

impl StreamedTile {
    pub(super) fn m(&self) -> usize {
        64 * self.groups_m * self.parts_m
    }

    /// Those that multiply, a warp that brings operands, and one for each team that stores.
    fn threads(&self) -> usize {
        128 * self.teams * self.groups_m + 32 + 32 * self.teams
    }

    /// Operands of all stages, and a place for the results of each team.
    fn shared_bytes(&self) -> usize {
        let stages = self.stages * (self.m() + self.n) * ROW_BYTES;
        stages + self.teams * self.m() * self.n * size_of::<u16>() + ALIGNMENT
    }

    /// For products of few rows, which take as long as their weights: all of shared memory is for what is on its way.
    fn is_for_few_rows(&self) -> bool {
        self.teams == 1
    }

    pub(super) fn tiles(&self, problem: &GemmProblem) -> usize {
        problem.m.div_ceil(self.m()) * problem.n.div_ceil(self.n)
    }

    /// For reports and for the tuning database.
    fn name(&self) -> String {
        let Self { n, stages, .. } = self;
        let teams = match self.teams {
            1 => "one team".to_string(),
            teams => format!("{teams} teams"),
        };
        format!("streamed {}x{n} {teams} {stages} stages", self.m())
    }
}

/// A candidate and the cycles that it is expected to take.
pub(super) struct Streamed {
    pub(super) cycles: f64,
    pub(super) candidate: Candidate,
}

/// True where the kernel can compute it on a chip.
fn is_supported(problem: &GemmProblem, chip: Chip) -> bool {
    let is_bulk = match &problem.left {
        Left::Matrix { .. } => problem.left_load_bytes() == Some(16),
        Left::Image(image) => image.has_bulk_windows(problem.element_bytes()),
    };
    chip.is_hopper()
        && matches!(problem.precision, Precision::F16 | Precision::Bf16)
        && problem.is_supported()
        && problem.stack == 1
        && is_bulk
        && problem.right.is_weights
        && !problem.right.by_rows
        && problem.right_load_bytes() == Some(16)
        && problem.store_elements() == 8
}

/// The tiles of a product on so many SMs, which compute it for all entries of a launch; none where an SM has no more than one of them,
/// since nothing is gained then, but for those of few rows, where most SMs must have one.
fn tiles_of(
    problem: &GemmProblem,
    chip: Chip,
    entries: usize,
) -> impl Iterator<Item = &'static StreamedTile> {
    let tiles = if is_supported(problem, chip) { &TILES[..] } else { &[] };
    let sms = chip.sm_count as usize;
    tiles.iter().filter(move |tile| {
        let tiles = tile.tiles(problem) * entries;
        let is_sensible = match tile.is_for_few_rows() {
            true => problem.m <= tile.m() && tiles > sms / 2,
            false => tile.m() < 2 * problem.m && tiles > sms,
        };
        is_sensible && tile.n < 2 * problem.n
    })
}

/// The ways to compute one product for so many entries on so many SMs together, the one expected to be fastest first.
pub(super) fn streamed(
    problem: &GemmProblem,
    operands: &Operands,
    chip: Chip,
    entries: usize,
) -> Vec<Streamed> {
    let expected = |tile: &StreamedTile| Streamed {
        cycles: estimate(problem, tile, chip, entries),
        candidate: candidate(problem, operands, tile, entries),
    };
    let mut found: Vec<Streamed> = tiles_of(problem, chip, entries).map(expected).collect();
    found.sort_by(|a, b| a.cycles.total_cmp(&b.cycles));
    found
}

/// The cycles that the first of them is expected to take.
pub(super) fn least_streamed(problem: &GemmProblem, chip: Chip) -> Option<f64> {
    tiles_of(problem, chip, 1).map(|tile| estimate(problem, tile, chip, 1)).min_by(f64::total_cmp)
}

fn candidate(
    problem: &GemmProblem,
    operands: &Operands,
    tile: &StreamedTile,
    entries: usize,
) -> Candidate {
    let small = |count: usize| u32::try_from(count).expect("sizes were checked");
    let mut arguments = product_arguments(problem, 1, std::slice::from_ref(operands)).to_vec();
    let right = matrix_map(problem, &operands.right, [problem.n, problem.right.stride], tile.n);
    let left = match &problem.left {
        Left::Matrix { stride } => {
            matrix_map(problem, &operands.left, [problem.m, *stride], tile.m())
        }
        Left::Image(image) => window_map(problem, &operands.left, image, tile.m()),
    };
    let results = |base: &Argument| result_map(problem, base, tile.m());
    let residual = problem.has_residual.then(|| results(&operands.residual));
    let maps = [right, left, results(&operands.output)].into_iter().chain(residual);
    arguments.extend(maps.map(Argument::TensorMap));
    arguments.push(Argument::i32(0));
    let launch = Launch {
        source: source(problem, tile),
        grid: [small(tile.tiles(problem) * entries), 1, 1],
        threads: small(tile.threads()),
        shared_bytes: small(tile.shared_bytes()),
        cluster: [1, 1, 1],
        arguments,
    };
    Candidate::new(tile.name(), vec![launch], 0)
}

/// Results, or what is added to them, in boxes of the rows of a tile.
fn result_map(problem: &GemmProblem, base: &Argument, rows: usize) -> TensorMap {
    let storage = problem.precision.storage();
    TensorMap {
        base: Box::new(base.clone()),
        storage,
        sizes: vec![problem.n as u64, problem.m as u64],
        strides_bytes: vec![(problem.n * storage.size_bytes()) as u64],
        copied: Copied::Box(vec![BOX_COLUMNS as u32, rows as u32]),
        swizzle_bytes: ROW_BYTES as u32,
    }
}

fn source(problem: &GemmProblem, tile: &StreamedTile) -> KernelSource {
    let flag = |is_set: bool| u8::from(is_set).to_string();
    let ([_, kernel_x], is_dilated) = taps_of(problem);
    let defines = vec![
        ("STORAGE", problem.precision.storage().cuda_name().to_string()),
        ("MATH", math_define(problem.precision).to_string()),
        ("BY_WARPGROUP", flag(true)),
        ("GROUP", "1".to_string()),
        ("TEAMS", tile.teams.to_string()),
        ("GROUPS_M", tile.groups_m.to_string()),
        ("PARTS_M", tile.parts_m.to_string()),
        ("TILE_N", tile.n.to_string()),
        ("STAGES", tile.stages.to_string()),
        ("CONVOLUTION", flag(matches!(problem.left, Left::Image(_)))),
        ("KERNEL_X", kernel_x.to_string()),
        ("IS_DILATED", flag(is_dilated)),
        ("ACTIVATION", epilogue_activation(problem.activation).0.to_string()),
        ("HAS_BIAS", flag(problem.bias.is_some())),
        ("BIAS", bias_name(problem)),
        ("HAS_RESIDUAL", flag(problem.has_residual)),
    ];
    KernelSource {
        is_exact: true,
        stays: true,
        ..KernelSource::new("stream_gemm.cu", TEXT, "stream_gemm", defines)
    }
}

/// Typical variants, for checking that they compile.
pub(super) fn samples(problems: &[GemmProblem]) -> Vec<KernelSource> {
    let supported = problems.iter().filter(|problem| is_supported(problem, Chip::H200));
    let of_tiles = |problem| TILES.iter().map(move |tile| source(&problem, tile));
    let bare = supported.clone().filter(|problem| problem.precision == Precision::F16).map(bare);
    supported.cloned().chain(bare).flat_map(of_tiles).collect()
}

/// A problem without all that may be added, with the longest of activations and windows that are spread out.
fn bare(problem: &GemmProblem) -> GemmProblem {
    let left = match problem.left {
        Left::Image(image) => Left::Image(Image { dilations: [2, 2], ..image }),
        rows => rows,
    };
    let activation = Some(Activation::Gelu);
    GemmProblem { left, bias: None, has_residual: false, activation, ..problem.clone() }
}

#[cfg(test)]
mod tests {
    use super::super::candidates::candidates;
    use super::super::problem::Right;
    use super::super::samples::sample_problems;
    use super::*;
    use crate::choosing::Wanted;

    fn operands() -> Operands {
        let (bias, residual) = (Argument::Null, Argument::Input(3));
        let (left, right) = (Argument::Input(0), Argument::Input(1));
        Operands { left, right, bias, residual, output: Argument::Output(0) }
    }

    #[test]
    fn every_tile_fits_a_block() {
        // Barriers and biases, which the kernel has besides.
        for tile in TILES {
            let fixed = 4 * tile.n * tile.teams * tile.groups_m + 512;
            let bytes = tile.shared_bytes() + fixed;
            assert!(bytes <= Chip::H200.shared_bytes_per_block as usize, "{tile:?}: {bytes}");
            assert!(tile.threads() <= 512 && [64, 128, 256].contains(&tile.n));
            // The copy engine moves boxes of at most 256 rows.
            assert!(tile.m() <= 256);
        }
    }

    #[test]
    fn blocks_stay_where_there_are_more_tiles_than_sms() {
        let problem = sample_problems()
            .into_iter()
            .find(|problem| {
                problem.precision == Precision::F16 && matches!(problem.left, Left::Matrix { .. })
            })
            .expect("there is a product of matrices");
        let large = GemmProblem { m: 25_088, n: 256, ..problem.clone() };
        let on = |problem: &GemmProblem, sms| {
            streamed(problem, &operands(), Chip::H200.with_sms(sms), 1)
        };
        let few = on(&large, 8);
        assert_eq!(few.len(), TILES.iter().filter(|tile| !tile.is_for_few_rows()).count());
        assert!(few.iter().all(|found| found.candidate.launches[0].source.stays));
        assert!(few.windows(2).all(|pair| pair[0].cycles <= pair[1].cycles));
        // Weights of few rows are brought by most SMs at least.
        let of_few = GemmProblem { m: 8, n: 4096, k: 25_088, ..large.clone() };
        let names = |sms| on(&of_few, sms).into_iter().map(|found| found.candidate.name);
        assert!(names(8).all(|name| name.starts_with("streamed 64x") && name.contains("one team")));
        let counts = [8, 32, 64, 127, 132].map(|sms| names(sms).count());
        assert_eq!(counts, [3, 2, 1, 1, 0]);
        // One tile for each SM is nothing to stay for.
        assert!(on(&GemmProblem { m: 64, ..large.clone() }, 132).is_empty());
        // Rows of the output that no box can be stored to.
        assert!(on(&GemmProblem { n: 252, ..large.clone() }, 8).is_empty());
        assert!(on(&GemmProblem { precision: Precision::F32, ..large.clone() }, 8).is_empty());
        // What is read before the predecessor has ended must not be what it computes.
        let right = Right { is_weights: false, ..large.right };
        assert!(on(&GemmProblem { right, ..large }, 8).is_empty());
    }

    #[test]
    fn blocks_that_stay_and_compute_several_entries_are_not_taken_by_their_estimate() {
        let problem = sample_problems()
            .into_iter()
            .find(|problem| {
                problem.precision == Precision::F16 && matches!(problem.left, Left::Matrix { .. })
            })
            .expect("there is a product of matrices");
        let of = |m, n, k, entries: u32| {
            let (left, right) = (Left::Matrix { stride: k }, Right { stride: k, ..problem.right });
            let problem = GemmProblem { m, n, k, left, right, ..problem.clone() };
            let chip = Chip::H200.with_sms(132 / entries);
            candidates(&problem, &[operands()], chip, 0, &Wanted::ForEntries(entries))
        };
        let stays = |candidate: &Candidate| candidate.launches[0].source.stays;
        // However long the others are expected to take.
        for (m, n, k, entries) in [(25_088, 256, 64, 4), (12_544, 96, 16, 32), (3136, 64, 576, 8)] {
            let found = of(m, n, k, entries);
            let first = found.iter().position(stays).unwrap();
            assert!(first > 0 && found[first..].iter().all(stays), "{m} {n} {k} {entries}");
        }
        let has =
            |found: &[Candidate], name: &str| found.iter().any(|of| of.name.starts_with(name));
        // Blocks are there for the tiles of all entries.
        let found = of(3136, 64, 576, 32);
        assert!(has(&found, "streamed 128x64 2 teams"));
        assert!(
            found.iter().filter(|of| stays(of)).all(|of| of.launches[0].grid == [25 * 32, 1, 1])
        );
        // Few rows of each are enough where all have them.
        assert!(has(&of(49, 512, 4608, 32), "streamed 64x64 one team"));
        // All of them together have less than a tile for each SM.
        assert!(!has(&of(196, 64, 576, 32), "streamed"));
    }
}
