//! One function of all elements along some axes.

use bytemuck::{Pod, Zeroable, bytes_of};
use weft_ir::operators::reduction::ReduceFunction;

use super::widening::widening;
use crate::launch::{Argument, Candidate, KernelSource, Launch};
use crate::{Chip, Storage};

const TEXT: &str = concat!(
    include_str!("../../kernels/conversion.cuh"),
    include_str!("../../kernels/arithmetic.cuh"),
    include_str!("../../kernels/reduce.cu")
);

/// Threads of a block that reduces one row, or columns.
const BLOCK_THREADS: u32 = 256;
/// Threads of a block in which each warp reduces a row of its own.
const WARP_BLOCK_THREADS: u32 = 128;
/// The longest row that a single warp reduces.
const MAX_WARP_ROW: usize = 1024;
/// Groups of neighbours that a block reduces, as the template has them.
const COLUMNS: usize = 8;
/// The most blocks that share one result: the last of them combines their results with one warp.
const MAX_SPLITS: usize = 32;
/// The fewest steps of a block that are worth a share of their own.
const LEAST_STEPS: usize = 16;

/// Where scratch memory may start.
const ALIGNMENT_BYTES: usize = 256;

#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
struct Shape {
    outer: u32,
    along: u32,
    inner: u32,
    splits: u32,
    per_split: u32,
    count: f32,
}

/// What is accumulated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Accumulator {
    Float,
    I64,
    I32,
}

impl Accumulator {
    fn of(storage: Storage) -> Option<Self> {
        match storage {
            Storage::F16 | Storage::Bf16 | Storage::F32 => Some(Accumulator::Float),
            Storage::I64 => Some(Accumulator::I64),
            Storage::I32 => Some(Accumulator::I32),
            Storage::U8 | Storage::I8 | Storage::Bool => None,
        }
    }

    fn storage(self) -> Storage {
        match self {
            Accumulator::Float => Storage::F32,
            Accumulator::I64 => Storage::I64,
            Accumulator::I32 => Storage::I32,
        }
    }
}

/// The parts that a function is made of, as the template names them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Parts {
    prepare: &'static str,
    combine: &'static str,
    finish: &'static str,
}

impl Parts {
    fn of(function: ReduceFunction) -> Self {
        let (prepare, combine, finish) = match function {
            ReduceFunction::Sum => ("NONE", "SUM", "NONE"),
            ReduceFunction::Mean => ("NONE", "SUM", "MEAN"),
            ReduceFunction::Max => ("NONE", "MAX", "NONE"),
            ReduceFunction::Min => ("NONE", "MIN", "NONE"),
            ReduceFunction::Prod => ("NONE", "PRODUCT", "NONE"),
            ReduceFunction::L1 => ("MAGNITUDE", "SUM", "NONE"),
            ReduceFunction::L2 => ("SQUARE", "SUM", "SQUARE_ROOT"),
            ReduceFunction::LogSum => ("NONE", "SUM", "LOGARITHM"),
            ReduceFunction::LogSumExp => ("NONE", "LOG_SUM_EXP", "NONE"),
            ReduceFunction::SumSquare => ("SQUARE", "SUM", "NONE"),
        };
        Self { prepare, combine, finish }
    }

    /// The state before the first element, as its bytes lie in memory.
    fn initial(self, accumulator: Accumulator) -> Vec<u8> {
        let floats = |values: &[f32]| bytemuck::cast_slice(values).to_vec();
        let integer = |value: i64| match accumulator {
            Accumulator::I64 => value.to_ne_bytes().to_vec(),
            _ => (value.clamp(i32::MIN.into(), i32::MAX.into()) as i32).to_ne_bytes().to_vec(),
        };
        let is_float = accumulator == Accumulator::Float;
        match self.combine {
            "LOG_SUM_EXP" => floats(&[f32::NEG_INFINITY, 0.0]),
            "MAX" if is_float => floats(&[f32::NEG_INFINITY]),
            "MAX" => integer(i64::MIN),
            "MIN" if is_float => floats(&[f32::INFINITY]),
            "MIN" => integer(i64::MAX),
            "PRODUCT" if is_float => floats(&[1.0]),
            "PRODUCT" => integer(1),
            _ if is_float => floats(&[0.0]),
            _ => integer(0),
        }
    }
}

/// Neighbouring axes that are all reduced or all kept, as one; axes of size 1 are neither.
fn groups(shape: &[usize], axes: &[usize]) -> Vec<(usize, bool)> {
    let mut groups: Vec<(usize, bool)> = Vec::new();
    for (axis, &size) in shape.iter().enumerate().filter(|(_, size)| **size != 1) {
        let is_reduced = axes.contains(&axis);
        match groups.last_mut() {
            Some(group) if group.1 == is_reduced => group.0 *= size,
            _ => groups.push((size, is_reduced)),
        }
    }
    groups
}

/// One launch's work: `[outer, along, inner]` becomes `[outer, inner]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Pass {
    outer: usize,
    along: usize,
    inner: usize,
}

/// The passes that reduce a shape, the last reduced axes first.
fn passes(shape: &[usize], axes: &[usize]) -> Vec<Pass> {
    let mut groups = groups(shape, axes);
    let product = |groups: &[(usize, bool)]| groups.iter().map(|group| group.0).product();
    let mut passes = Vec::new();
    while let Some(place) = groups.iter().rposition(|group| group.1) {
        let (outer, inner) = (product(&groups[..place]), product(&groups[place + 1..]));
        passes.push(Pass { outer, along: groups[place].0, inner });
        groups.remove(place);
    }
    if passes.is_empty() {
        // Nothing is combined, but every element is still prepared and finished.
        passes.push(Pass { outer: 1, along: 1, inner: product(&groups) });
    }
    passes
}

/// How a pass is spread over threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Geometry {
    entry: &'static str,
    width: usize,
    threads: u32,
    threads_per_row: u32,
    splits: usize,
    per_split: usize,
    /// Blocks without the splits: one counter each.
    parts: usize,
}

impl Geometry {
    fn new(pass: Pass, from: Storage, chip: Chip) -> Self {
        if pass.inner > 1 {
            let width = widening(from, [pass.inner]);
            let parts = pass.outer * (pass.inner / width).div_ceil(COLUMNS);
            let step = BLOCK_THREADS as usize / COLUMNS;
            return Self::split("reduce_columns", width, pass.along, step, parts, chip);
        }
        let width = widening(from, [pass.along]);
        if pass.along <= MAX_WARP_ROW {
            let rows_per_block = WARP_BLOCK_THREADS as usize / 32;
            return Self {
                entry: "reduce_rows",
                width,
                threads: WARP_BLOCK_THREADS,
                threads_per_row: 32,
                splits: 1,
                per_split: pass.along,
                parts: pass.outer.div_ceil(rows_per_block),
            };
        }
        let step = BLOCK_THREADS as usize * width;
        Self::split("reduce_rows", width, pass.along, step, pass.outer, chip)
    }

    /// Shares of whole steps, as many as keep the chip busy.
    fn split(
        entry: &'static str,
        width: usize,
        along: usize,
        step: usize,
        parts: usize,
        chip: Chip,
    ) -> Self {
        let steps = along.div_ceil(step);
        let wanted = (chip.sm_count as usize).div_ceil(parts);
        let splits = wanted.min(steps / LEAST_STEPS).clamp(1, MAX_SPLITS);
        let per_split = steps.div_ceil(splits) * step;
        Self {
            entry,
            width,
            threads: BLOCK_THREADS,
            threads_per_row: BLOCK_THREADS,
            splits: along.div_ceil(per_split),
            per_split,
            parts,
        }
    }
}

/// A reduction of one tensor.
#[derive(Clone, Debug)]
pub(crate) struct Reduction {
    parts: Parts,
    storage: Storage,
    accumulator: Accumulator,
    passes: Vec<Pass>,
    /// How many elements become one.
    count: usize,
}

impl Reduction {
    /// `None` where there is no kernel for the type or the axes, or nothing to reduce.
    pub(crate) fn new(
        function: ReduceFunction,
        storage: Storage,
        shape: &[usize],
        axes: &[usize],
    ) -> Option<Self> {
        let accumulator = Accumulator::of(storage)?;
        let parts = Parts::of(function);
        let passes = passes(shape, axes);
        let is_whole = parts.finish == "NONE" && parts.combine != "LOG_SUM_EXP";
        let fits = !shape.contains(&0)
            && (is_whole || accumulator == Accumulator::Float)
            && (passes.len() == 1 || parts.combine != "LOG_SUM_EXP");
        let count = axes.iter().map(|&axis| shape[axis]).product();
        fits.then_some(Self { parts, storage, accumulator, passes, count })
    }

    /// The launches, the first of which reads `from` and the last of which writes `to`.
    pub(crate) fn candidate(
        &self,
        name: &str,
        chip: Chip,
        from: Argument,
        to: Argument,
    ) -> Candidate {
        let mut launches = Vec::new();
        let mut workspace_bytes = 0;
        let mut take = |size_bytes: usize| {
            let offset_bytes = workspace_bytes;
            workspace_bytes += size_bytes.next_multiple_of(ALIGNMENT_BYTES);
            Argument::Workspace { offset_bytes }
        };
        let last = self.passes.len() - 1;
        let mut source = (from, self.storage);
        let initial = self.parts.initial(self.accumulator);
        for (index, &pass) in self.passes.iter().enumerate() {
            let geometry = Geometry::new(pass, source.1, chip);
            let results = pass.outer * pass.inner;
            let target = match index == last {
                true => (to.clone(), self.storage),
                false => {
                    let storage = self.accumulator.storage();
                    (take(results * storage.size_bytes()), storage)
                }
            };
            let (partial, counters) = match geometry.splits {
                1 => (Argument::Null, Argument::Null),
                splits => (
                    take(results * splits * initial.len()),
                    Argument::Counters { count: geometry.parts },
                ),
            };
            let parts = Parts {
                prepare: if index == 0 { self.parts.prepare } else { "NONE" },
                finish: if index == last { self.parts.finish } else { "NONE" },
                ..self.parts
            };
            let shape = Shape {
                outer: pass.outer as u32,
                along: pass.along as u32,
                inner: pass.inner as u32,
                splits: geometry.splits as u32,
                per_split: geometry.per_split as u32,
                count: self.count as f32,
            };
            launches.push(Launch {
                source: kernel(parts, self.accumulator, source.1, target.1, &geometry),
                grid: [(geometry.parts * geometry.splits) as u32, 1, 1],
                threads: geometry.threads,
                shared_bytes: 0,
                cluster: [1, 1, 1],
                arguments: vec![
                    source.0,
                    target.0.clone(),
                    partial,
                    counters,
                    Argument::Bytes(bytes_of(&shape).to_vec()),
                    Argument::Bytes(initial.clone()),
                ],
            });
            source = target;
        }
        Candidate::new(name, launches, workspace_bytes)
    }
}

fn kernel(
    parts: Parts,
    accumulator: Accumulator,
    from: Storage,
    to: Storage,
    geometry: &Geometry,
) -> KernelSource {
    let defines = vec![
        ("FROM", from.cuda_name().to_string()),
        ("TO", to.cuda_name().to_string()),
        ("NUMBER", accumulator.storage().cuda_name().to_string()),
        ("PREPARE", format!("PREPARE_{}", parts.prepare)),
        ("COMBINE", format!("COMBINE_{}", parts.combine)),
        ("FINISH", format!("FINISH_{}", parts.finish)),
        ("WIDTH", geometry.width.to_string()),
        ("THREADS", geometry.threads.to_string()),
        ("THREADS_PER_ROW", geometry.threads_per_row.to_string()),
    ];
    KernelSource::new("reduce.cu", TEXT, geometry.entry, defines)
}

/// Typical variants, for checking that they compile.
pub(crate) fn samples() -> Vec<KernelSource> {
    let sample = |function, storage, shape: &[usize], axes: &[usize]| {
        let reduction = Reduction::new(function, storage, shape, axes);
        let (from, to) = (Argument::Input(0), Argument::Output(0));
        reduction.map(|reduction| reduction.candidate("reduce", Chip::H200, from, to).launches)
    };
    let launches = [
        sample(ReduceFunction::Mean, Storage::F16, &[1, 3136, 72], &[1]),
        sample(ReduceFunction::LogSumExp, Storage::F32, &[4, 5000], &[1]),
        sample(ReduceFunction::LogSumExp, Storage::F16, &[4, 50, 16], &[1]),
        sample(ReduceFunction::Sum, Storage::I64, &[7, 33], &[1]),
        sample(ReduceFunction::L1, Storage::I32, &[9, 3, 4], &[0]),
        sample(ReduceFunction::L2, Storage::Bf16, &[3, 9, 3], &[0, 2]),
        sample(ReduceFunction::Prod, Storage::F32, &[3, 9], &[0, 1]),
        sample(ReduceFunction::Max, Storage::F16, &[3, 9, 9, 16], &[1, 2]),
        sample(ReduceFunction::Min, Storage::I64, &[3, 4], &[1]),
        sample(ReduceFunction::LogSum, Storage::F16, &[3, 4], &[1]),
    ];
    launches.into_iter().flatten().flatten().map(|launch| launch.source).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn axes_collapse_into_passes() {
        let pass = |outer, along, inner| Pass { outer, along, inner };
        assert_eq!(passes(&[2, 7, 7, 64], &[1, 2]), [pass(2, 49, 64)]);
        assert_eq!(passes(&[2, 64, 7, 7], &[2, 3]), [pass(128, 49, 1)]);
        assert_eq!(passes(&[2, 3, 4], &[0, 2]), [pass(6, 4, 1), pass(1, 2, 3)]);
        assert_eq!(passes(&[2, 1, 3], &[1]), [pass(1, 1, 6)]);
        assert_eq!(passes(&[5, 1], &[0, 1]), [pass(1, 5, 1)]);
    }

    #[test]
    fn few_long_results_are_shared_among_blocks() {
        let geometry = |pass| Geometry::new(pass, Storage::F16, Chip::H200);
        let pooled = geometry(Pass { outer: 1, along: 3136, inner: 72 });
        assert_eq!((pooled.entry, pooled.width, pooled.parts), ("reduce_columns", 8, 2));
        assert!(pooled.splits > 4);
        let small = geometry(Pass { outer: 1, along: 49, inner: 960 });
        assert_eq!((small.splits, small.parts), (1, 15));
        let rows = geometry(Pass { outer: 128, along: 768, inner: 1 });
        assert_eq!((rows.threads_per_row, rows.splits, rows.parts), (32, 1, 32));
        let long = geometry(Pass { outer: 1, along: 1 << 20, inner: 1 });
        assert_eq!(long.splits, MAX_SPLITS);
    }

    #[test]
    fn what_integers_do_not_have_is_refused() {
        let new = |function, storage| Reduction::new(function, storage, &[3, 4], &[1]).is_some();
        assert!(new(ReduceFunction::Sum, Storage::I64));
        assert!(!new(ReduceFunction::Mean, Storage::I64));
        assert!(!new(ReduceFunction::LogSumExp, Storage::I32));
        assert!(!new(ReduceFunction::Max, Storage::Bool));
        assert!(Reduction::new(ReduceFunction::Sum, Storage::F16, &[3, 0], &[1]).is_none());
        let apart = Reduction::new(ReduceFunction::LogSumExp, Storage::F16, &[3, 4, 5], &[0, 2]);
        assert!(apart.is_none());
    }

    proptest! {
        #[test]
        fn splits_cover_the_axis_and_none_is_empty(
            outer in 1usize..40, along in 1usize..100_000, inner in 1usize..300,
        ) {
            let geometry = Geometry::new(Pass { outer, along, inner }, Storage::F16, Chip::H200);
            prop_assert!(geometry.splits * geometry.per_split >= along);
            prop_assert!((geometry.splits - 1) * geometry.per_split < along);
            prop_assert!(geometry.splits <= MAX_SPLITS);
            let is_whole = geometry.per_split.is_multiple_of(geometry.width);
            prop_assert!(is_whole || geometry.splits == 1);
        }
    }
}
