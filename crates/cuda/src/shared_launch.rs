//! Problems of several kernels, of whatever models, as one launch: a list of tiles from all of them.

use crate::Chip;
use crate::launch::{KernelSource, Shared, SharedKernel};

/// What kernels take as parameters on every chip.
const MAX_PARAMETER_BYTES: usize = 4096;

/// What a block may have of shared memory that is not asked for at launch.
const MAX_STATIC_SHARED_BYTES: u32 = 48 << 10;

/// What the largest pattern of shared memory begins at a multiple of.
const SHARED_ALIGNMENT: u32 = 1024;

/// Threads of a warp.
const WARP: u32 = 32;

/// A kernel has at least one block in so many of those on an SM that it would have alone.
const LEAST_ROOM: u32 = 2;

/// What every parameter in a shared launch lies at a multiple of, and what descriptions for the copy engine do.
const PARAMETER_ALIGNMENT: usize = 16;
pub(crate) const DESCRIPTION_ALIGNMENT: usize = 64;

/// The bytes of one parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Parameter {
    pub(crate) bytes: Vec<u8>,
    /// What its type asks of its place.
    pub(crate) alignment: usize,
}

/// One launch of a kernel, all of which is known.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Problem<'a> {
    pub(crate) source: &'a KernelSource,
    pub(crate) grid: [u32; 3],
    pub(crate) threads: u32,
    pub(crate) cluster: [u32; 3],
    /// Shared memory that is asked for at launch, and that the kernel has by itself.
    pub(crate) shared_bytes: u32,
    pub(crate) static_shared_bytes: u32,
    /// Of one thread.
    pub(crate) registers: u32,
    pub(crate) parameters: &'a [Parameter],
}

/// The launch that several problems share.
#[derive(Clone, Debug)]
pub(crate) struct SharedLaunch {
    pub(crate) source: KernelSource,
    pub(crate) blocks: u32,
    pub(crate) threads: u32,
    pub(crate) shared_bytes: u32,
    pub(crate) parameters: Vec<u8>,
}

impl Problem<'_> {
    fn blocks(&self) -> u64 {
        self.grid.iter().map(|&blocks| u64::from(blocks)).product()
    }
}

/// The launch that problems share, whose blocks begin in this order, but for those of one kernel, which follow each other; `None`
/// where they would rather have launches of their own.
pub(crate) fn shared(problems: &[Problem<'_>], chip: Chip) -> Option<SharedLaunch> {
    if problems.len() < 2 || !problems.iter().all(can_share) {
        return None;
    }
    let mut kernels: Vec<(SharedKernel, Vec<Problem<'_>>)> = Vec::new();
    for problem in problems {
        let is_same = |(kernel, _): &(SharedKernel, _)| {
            kernel.source == *problem.source && kernel.threads == problem.threads
        };
        let place = kernels.iter().position(is_same).unwrap_or_else(|| {
            let (source, threads) = (problem.source.clone(), problem.threads);
            kernels.push((SharedKernel { source, threads, grids: Vec::new() }, Vec::new()));
            kernels.len() - 1
        });
        kernels[place].0.grids.push(problem.grid);
        kernels[place].1.push(*problem);
    }
    let statics = kernels.iter().map(|(_, problems)| problems[0].static_shared_bytes);
    let room = Room {
        threads: problems.iter().map(|problem| problem.threads).max()?,
        registers: problems.iter().map(|problem| problem.registers).max()?,
        shared_bytes: problems.iter().map(|problem| problem.shared_bytes).max()?,
        static_shared_bytes: statics.sum(),
    };
    if !room.suits(problems, chip) {
        return None;
    }
    let blocks: u64 = problems.iter().map(Problem::blocks).sum();
    let blocks = i32::try_from(blocks).ok()?.unsigned_abs();
    let mut parameters = Structure::default();
    for (_, problems) in &kernels {
        // Problems of one kernel are an array.
        for problem in problems {
            parameters.add(&Structure::of(problem.parameters));
        }
    }
    let parameters = parameters.ended();
    if parameters.len() > MAX_PARAMETER_BYTES {
        return None;
    }
    let kernels = kernels.into_iter().map(|(kernel, _)| kernel).collect();
    let source = KernelSource::of_shared(Shared { kernels, parameter_bytes: parameters.len() });
    let Room { threads, shared_bytes, .. } = room;
    Some(SharedLaunch { source, blocks, threads, shared_bytes, parameters })
}

/// Problems that share launches, by their places: each is put into the first launch that takes it.
pub(crate) fn grouped(problems: &[Problem<'_>], chip: Chip) -> Vec<Vec<usize>> {
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for place in 0..problems.len() {
        let takes = |group: &&mut Vec<usize>| {
            let with = group.iter().chain([&place]).map(|&of| problems[of]);
            shared(&with.collect::<Vec<_>>(), chip).is_some()
        };
        match groups.iter_mut().find(takes) {
            Some(group) => group.push(place),
            None => groups.push(vec![place]),
        }
    }
    groups
}

/// Blocks of a cluster find each other by the launch's coordinates; blocks that stay gain nothing where each has one tile; barriers
/// are for whole warps.
fn can_share(problem: &Problem<'_>) -> bool {
    problem.cluster == [1; 3]
        && !problem.source.stays
        && problem.source.entries.is_none()
        && problem.source.shared.is_none()
        && problem.threads.is_multiple_of(WARP)
        && problem.blocks() > 0
        && !problem.parameters.is_empty()
}

/// What a block takes of an SM.
struct Room {
    threads: u32,
    registers: u32,
    shared_bytes: u32,
    static_shared_bytes: u32,
}

impl Room {
    fn of(problem: &Problem<'_>) -> Self {
        Self {
            threads: problem.threads,
            registers: problem.registers,
            shared_bytes: problem.shared_bytes,
            static_shared_bytes: problem.static_shared_bytes,
        }
    }

    fn all_shared_bytes(&self) -> u32 {
        match self.shared_bytes {
            0 => self.static_shared_bytes,
            asked => self.static_shared_bytes.next_multiple_of(SHARED_ALIGNMENT) + asked,
        }
    }

    /// Blocks that an SM has at once.
    fn blocks_per_sm(&self, chip: Chip) -> u32 {
        chip.blocks_per_sm(self.threads, self.registers, self.all_shared_bytes())
    }

    /// Every block of a launch takes as much as the largest. A kernel of many small blocks would wait for room beside one of few
    /// large ones.
    fn suits(&self, problems: &[Problem<'_>], chip: Chip) -> bool {
        let fits = self.static_shared_bytes <= MAX_STATIC_SHARED_BYTES
            && self.all_shared_bytes() <= chip.shared_bytes_per_block;
        let shared = self.blocks_per_sm(chip);
        let has_room = |problem: &Problem<'_>| {
            let wanted = problem.blocks().div_ceil(u64::from(chip.sm_count));
            let alone = u64::from(Room::of(problem).blocks_per_sm(chip)).min(wanted);
            alone <= u64::from(shared * LEAST_ROOM)
        };
        fits && problems.iter().all(has_room)
    }
}

/// Bytes of a structure as the compiler lays it out.
#[derive(Default)]
struct Structure {
    bytes: Vec<u8>,
    alignment: usize,
}

impl Structure {
    /// The prelude's list of values: each is followed by a structure of those after it.
    fn of(parameters: &[Parameter]) -> Self {
        let value = |parameter: &Parameter| {
            let alignment = parameter.alignment.max(PARAMETER_ALIGNMENT);
            let mut bytes = parameter.bytes.clone();
            bytes.resize(bytes.len().next_multiple_of(alignment), 0);
            Self { bytes, alignment }
        };
        let list = |rest: Option<Self>, parameter: &Parameter| {
            let mut list = value(parameter);
            rest.iter().for_each(|rest| list.add(rest));
            Some(Self { bytes: list.ended(), alignment: list.alignment })
        };
        parameters.iter().rev().fold(None, list).unwrap_or_default()
    }

    /// Adds another one after what is there.
    fn add(&mut self, other: &Self) {
        let alignment = other.alignment.max(1);
        self.alignment = self.alignment.max(alignment);
        self.bytes.resize(self.bytes.len().next_multiple_of(alignment), 0);
        self.bytes.extend(&other.bytes);
    }

    /// With what follows it in an array.
    fn ended(&self) -> Vec<u8> {
        let mut bytes = self.bytes.clone();
        bytes.resize(bytes.len().next_multiple_of(self.alignment.max(1)), 0);
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parameter(size: usize, alignment: usize) -> Parameter {
        Parameter { bytes: vec![size as u8; size], alignment }
    }

    /// Where each parameter begins, which is told by its size, and the size of all.
    fn layout(sizes: &[(usize, usize)]) -> (Vec<usize>, usize) {
        let parameters: Vec<Parameter> =
            sizes.iter().map(|&(size, alignment)| parameter(size, alignment)).collect();
        let bytes = Structure::of(&parameters).bytes;
        let begin = |&(size, _): &(usize, usize)| {
            bytes.iter().position(|&byte| byte == size as u8).unwrap()
        };
        (sizes.iter().map(begin).collect(), bytes.len())
    }

    #[test]
    fn parameters_lie_where_the_compiler_has_them() {
        assert_eq!(layout(&[(8, 8), (4, 4), (24, 8)]), (vec![0, 16, 32], 64));
        // What comes before a description is a structure each, which begins where the description may.
        assert_eq!(layout(&[(120, 8), (8, 8), (128, 64)]), (vec![0, 128, 192], 320));
        assert_eq!(layout(&[(128, 64), (8, 8)]), (vec![0, 128], 192));
        assert_eq!(layout(&[(5, 1)]), (vec![0], 16));
    }

    fn problem<'a>(source: &'a KernelSource, parameters: &'a [Parameter]) -> Problem<'a> {
        Problem {
            source,
            grid: [10, 2, 1],
            threads: 128,
            cluster: [1; 3],
            shared_bytes: 0,
            static_shared_bytes: 0,
            registers: 64,
            parameters,
        }
    }

    fn source(entry: &'static str) -> KernelSource {
        KernelSource::new("k.cu", "", entry, Vec::new())
    }

    #[test]
    fn problems_of_one_kernel_share_its_code_and_differ_in_parameters() {
        let (one, other) = (source("one"), source("other"));
        let (few, many) = ([parameter(8, 8)], [parameter(9, 1), parameter(7, 1)]);
        let large = Problem { threads: 256, shared_bytes: 2000, ..problem(&other, &many) };
        let again = Problem { grid: [7, 1, 1], ..problem(&one, &few) };
        let launch = shared(&[problem(&one, &few), large, again], Chip::H200).unwrap();
        assert_eq!((launch.blocks, launch.threads, launch.shared_bytes), (47, 256, 2000));
        let kernels = &launch.source.shared.as_ref().unwrap().kernels;
        assert_eq!(kernels.len(), 2);
        assert_eq!(kernels[0].grids, [[10, 2, 1], [7, 1, 1]]);
        assert_eq!((kernels[1].threads, kernels[1].grids.len()), (256, 1));
        let places: Vec<u8> = launch.parameters.chunks(16).map(|value| value[0]).collect();
        assert_eq!(places, [8, 8, 9, 7]);
        assert_eq!(launch.source.shared.as_ref().unwrap().parameter_bytes, 64);
    }

    #[test]
    fn what_cannot_share_has_a_launch_of_its_own() {
        let (one, other) = (source("one"), source("other"));
        let few = [parameter(8, 8)];
        let plain = problem(&one, &few);
        let with = |changed: Problem<'_>| shared(&[plain, changed], Chip::H200).is_some();
        let of_other = problem(&other, &few);
        assert!(with(of_other) && with(plain));
        assert!(!with(Problem { cluster: [1, 2, 1], ..of_other }));
        assert!(!with(Problem { threads: 48, ..of_other }));
        assert!(!with(Problem { grid: [1 << 30, 4, 1], ..of_other }));
        assert!(!with(Problem { static_shared_bytes: 49 << 10, ..of_other }));
        let staying = KernelSource { stays: true, ..source("other") };
        assert!(!with(problem(&staying, &few)));
        let exact = KernelSource { is_exact: true, ..source("other") };
        let launch = shared(&[plain, problem(&exact, &few)], Chip::H200).unwrap();
        assert!(launch.source.is_exact);
        let again = problem(&launch.source, &few);
        assert!(!with(again) && shared(&[plain], Chip::H200).is_none());
        let large = [parameter(2100, 8)];
        assert!(with(problem(&one, &large)));
        assert!(shared(&[problem(&one, &large), problem(&other, &large)], Chip::H200).is_none());
    }

    #[test]
    fn each_problem_is_in_one_launch() {
        let (one, other) = (source("one"), source("other"));
        let few = [parameter(8, 8)];
        let alone = Problem { cluster: [2, 1, 1], ..problem(&one, &few) };
        let [plain, of_other] = [problem(&one, &few), problem(&other, &few)];
        let groups = grouped(&[plain, alone, of_other, alone, plain], Chip::H200);
        assert_eq!(groups, [vec![0, 2, 4], vec![1], vec![3]]);
    }

    #[test]
    fn many_small_blocks_do_not_wait_for_the_room_of_few_large_ones() {
        let (small, large) = (source("small"), source("large"));
        let few = [parameter(8, 8)];
        let large = Problem { shared_bytes: 200 << 10, ..problem(&large, &few) };
        let of_blocks = |blocks| Problem { grid: [blocks, 1, 1], ..problem(&small, &few) };
        let shares = |blocks| shared(&[of_blocks(blocks), large], Chip::H200).is_some();
        assert!(shares(132) && shares(264) && !shares(265) && !shares(5000));
    }
}
