//! How far values are from a reference: `difference.cu`.

use bytemuck::{Pod, Zeroable};

use crate::Storage;
use crate::launch::{Argument, KernelSource, Launch};

const TEXT: &str = include_str!("../../kernels/difference.cu");

const THREADS: usize = 256;

/// Blocks are few: each ends in atomic additions to the same words.
const MAX_BLOCKS: usize = 64;

/// The structure `Difference` of `difference.cu`, zero before the first launch.
#[derive(Clone, Copy, Debug, Default, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Difference {
    difference_squares: f64,
    reference_squares: f64,
    largest_difference: f32,
    largest_reference: f32,
}

impl Difference {
    /// The norm of the difference, relative to that of the reference.
    pub(crate) fn of_norms(&self) -> f64 {
        relative(self.difference_squares.sqrt(), self.reference_squares.sqrt())
    }

    /// The largest difference, relative to the largest reference.
    pub(crate) fn of_largest(&self) -> f64 {
        relative(f64::from(self.largest_difference), f64::from(self.largest_reference))
    }
}

fn relative(difference: f64, reference: f64) -> f64 {
    match difference == 0.0 {
        true => 0.0,
        false => difference / reference,
    }
}

/// The launch that adds to `result` how far `count` values are from the reference.
pub(crate) fn difference_launch(
    storage: Storage,
    count: usize,
    values: Argument,
    reference: Argument,
    result: Argument,
) -> Launch {
    Launch {
        source: source(storage),
        grid: [count.div_ceil(THREADS).clamp(1, MAX_BLOCKS) as u32, 1, 1],
        threads: THREADS as u32,
        shared_bytes: 0,
        cluster: [1, 1, 1],
        arguments: vec![values, reference, result, Argument::u32(count)],
    }
}

fn source(storage: Storage) -> KernelSource {
    let defines = vec![("STORAGE", storage.cuda_name().to_string())];
    KernelSource::new("difference.cu", TEXT, "difference", defines)
}

/// Typical variants, for checking that they compile.
pub(crate) fn samples() -> Vec<KernelSource> {
    [Storage::F16, Storage::Bf16, Storage::F32].map(source).to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_equal_is_no_distance_apart() {
        assert_eq!(Difference::default().of_norms(), 0.0);
        let of_zeros = Difference { difference_squares: 1.0, ..Difference::default() };
        assert_eq!(of_zeros.of_norms(), f64::INFINITY);
        let half = Difference {
            difference_squares: 1.0,
            reference_squares: 4.0,
            largest_difference: 0.5,
            largest_reference: 2.0,
        };
        assert_eq!((half.of_norms(), half.of_largest()), (0.5, 0.25));
    }
}
