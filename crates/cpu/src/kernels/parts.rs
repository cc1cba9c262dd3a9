//! Owns the division of many equal items among workers.

use std::ops::Range;

use crate::Worker;

/// How many parts each worker should find, so that none waits long for the last.
const PARTS_PER_WORKER: usize = 4;

/// Calls `body` for consecutive ranges that cover `0..items`, each on one worker; a range has `least` items or more,
/// except where there are fewer.
#[inline]
pub(crate) fn for_each_part(
    worker: &Worker,
    items: usize,
    least: usize,
    mut body: impl FnMut(Range<usize>),
) {
    if items == 0 {
        // The others may still be writing what comes next; the meeting is part of every kernel.
        worker.parallel(0, |_| {});
        return;
    }
    let most = if worker.count() == 1 { 1 } else { worker.count() * PARTS_PER_WORKER };
    let part = items.div_ceil((items / least.max(1)).clamp(1, most));
    worker.parallel(items.div_ceil(part), |index| {
        body(index * part..(index * part + part).min(items));
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SharedOutput;
    use crate::kernels::testing::{run_on, supported_isas};

    #[test]
    fn every_item_belongs_to_one_part() {
        for isa in supported_isas() {
            for (items, least) in [(0, 4), (1, 4), (7, 100), (100, 1), (101, 9), (64, 0)] {
                let counts = run_on(isa, items, |worker, output: SharedOutput<u8>| {
                    for_each_part(worker, items, least, |range| {
                        // SAFETY: parts do not overlap; if they did, the counts would tell.
                        let part = unsafe { output.slice_mut(range.start, range.len()) };
                        part.iter_mut().for_each(|count| *count = count.wrapping_add(1));
                    });
                });
                assert!(counts.iter().all(|&count| count == 0xa6), "{items} {least}: {counts:?}");
            }
        }
    }
}
