//! Owns tensors of one value, and the padding of tensors with it.

use super::parts::for_each_part;
use super::strided_copy::StridedCopy;
use crate::{SharedOutput, Worker};

/// Fewest elements worth a task.
const LEAST_ELEMENTS: usize = 16 * 1024;

/// Sets every element to `value`.
///
/// # Safety
///
/// All workers of the run make the same call, and nothing else accesses the target until all have returned.
pub unsafe fn fill<T: Copy + Send + Sync>(worker: &Worker, value: T, target: SharedOutput<T>) {
    for_each_part(worker, target.len(), LEAST_ELEMENTS, |range| {
        // SAFETY: parts do not overlap, and the caller keeps everyone else away.
        unsafe { target.slice_mut(range.start, range.len()) }.fill(value);
    });
}

/// Sets every element to `value`, and then copies a view over it.
///
/// # Safety
///
/// All workers of the run make the same call, and nothing else accesses the target until all have returned.
///
/// # Panics
///
/// As [`StridedCopy::run`].
pub unsafe fn pad<T: Copy + Send + Sync>(
    worker: &Worker,
    copy: &StridedCopy,
    value: T,
    source: &[T],
    target: SharedOutput<T>,
) {
    // SAFETY: the caller's promise is the same; the workers meet between the two.
    unsafe {
        fill(worker, value, target);
        copy.run(worker, source, target);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::testing::{run_on, supported_isas, values};

    #[test]
    fn the_border_has_the_value() {
        let source = values(6, 1);
        let copy = StridedCopy::concat_part(&[2, 3], 1, 2, 6).unwrap();
        for isa in supported_isas() {
            let output = run_on(isa, 12, |worker, output| {
                // SAFETY: every worker of the pool runs this.
                unsafe { pad(worker, &copy, 9.0, &source, output) };
            });
            let row =
                |index: usize| [9.0, 9.0, source[index], source[index + 1], source[index + 2], 9.0];
            assert_eq!(output, [row(0), row(3)].concat());
        }
    }
}
