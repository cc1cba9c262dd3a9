//! What lies in the caches when an operator starts: in a model, its inputs do, and its weights do not.

use crate::Worker;

/// How many values one task moves.
const TASK_VALUES: usize = 16 * 1024;

/// How many values a cache line holds.
const LINE_VALUES: usize = 16;

/// Brings values to the caches, as the operator that made them would have left them. All workers of a run call it alike.
pub(super) fn warm(worker: &Worker, values: &[f32]) {
    for_each_line(worker, values, |value| {
        std::hint::black_box(*value);
    });
}

/// Drives values out of all caches, as the other layers of a model do between two runs of one; where the processor has no
/// instruction for it, they stay wherever the control has driven them. All workers of a run call it alike.
pub(super) fn chill(worker: &Worker, values: &[f32]) {
    #[cfg(target_arch = "x86_64")]
    for_each_line(worker, values, |value| {
        // SAFETY: every x86-64 processor has the instruction, and the address is that of a value.
        unsafe { std::arch::x86_64::_mm_clflush(std::ptr::from_ref(value).cast()) }
    });
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (worker, values);
}

/// Calls `visit` with the first value of each cache line.
fn for_each_line(worker: &Worker, values: &[f32], visit: impl Fn(&f32)) {
    worker.parallel(values.len().div_ceil(TASK_VALUES), |task| {
        let start = task * TASK_VALUES;
        let part = &values[start..(start + TASK_VALUES).min(values.len())];
        part.iter().step_by(LINE_VALUES).for_each(&visit);
    });
}
