//! What lies in the caches when an operator starts: in a model, its inputs do, and its weights do not.

use std::ops::Range;

use crate::Worker;

/// How many values one task moves.
const TASK_VALUES: usize = 16 * 1024;

/// How many values a cache line holds.
const LINE_VALUES: usize = 16;

/// Brings values to the caches, as the operator that made them would have left them. All workers of a run call it alike.
pub(super) fn warm(worker: &Worker, values: &[f32]) {
    for_each_part(worker, values.len(), |part| {
        for value in values[part].iter().step_by(LINE_VALUES) {
            std::hint::black_box(*value);
        }
    });
}

/// Drives values out of all caches, as the other layers of a model do between two runs of one. All workers of a run call it
/// alike.
pub(super) fn chill(worker: &Worker, values: &[f32]) {
    for_each_part(worker, values.len(), |part| chill_alone(&values[part]));
}

/// The same by one worker. Where the processor has no instruction for it, values stay wherever they were driven by what came
/// after them.
pub(super) fn chill_alone(values: &[f32]) {
    #[cfg(target_arch = "x86_64")]
    for value in values.iter().step_by(LINE_VALUES) {
        // SAFETY: every x86-64 processor has the instruction, and the address is that of a value.
        unsafe { std::arch::x86_64::_mm_clflush(std::ptr::from_ref(value).cast()) }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = values;
}

/// Shares so many values among the workers.
fn for_each_part(worker: &Worker, count: usize, visit: impl Fn(Range<usize>)) {
    worker.parallel(count.div_ceil(TASK_VALUES), |task| {
        let start = task * TASK_VALUES;
        visit(start..(start + TASK_VALUES).min(count));
    });
}
