//! Owns the gathering of rows from a table, as an embedding does.

use super::parts::for_each_part;
use crate::{SharedOutput, Worker};

/// Fewest elements worth a task.
const LEAST_ELEMENTS: usize = 4096;

/// An index that names no row of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("index {index} at position {position} names no row of a table of {rows} rows")]
pub struct RowIndexError {
    /// The index.
    pub index: i64,
    /// Its position among the indices.
    pub position: usize,
    /// Rows of the table.
    pub rows: usize,
}

/// Copies the rows of `row_elements` elements that `indices` name, one after another; negative indices count from the
/// end.
///
/// The indices are checked before anything is written, by every worker alike.
///
/// # Safety
///
/// All workers of the run make the same call, and nothing else accesses the output until all have returned.
///
/// # Panics
///
/// If the table is not whole rows, or the output has not as many rows as there are indices.
pub unsafe fn gather_rows<T: Copy + Send + Sync>(
    worker: &Worker,
    table: &[T],
    row_elements: usize,
    indices: &[i64],
    output: SharedOutput<T>,
) -> Result<(), RowIndexError> {
    let rows = table.len().checked_div(row_elements).unwrap_or(0);
    assert_eq!(rows * row_elements, table.len(), "rows of a table");
    assert_eq!(indices.len().checked_mul(row_elements), Some(output.len()), "gathered rows");
    let resolve = |index: i64| if index < 0 { index.wrapping_add(rows as i64) } else { index };
    for (position, &index) in indices.iter().enumerate() {
        let is_row = usize::try_from(resolve(index)).is_ok_and(|row| row < rows);
        if !is_row && row_elements > 0 {
            return Err(RowIndexError { index, position, rows });
        }
    }
    for_each_part(worker, indices.len(), LEAST_ELEMENTS.div_ceil(row_elements.max(1)), |range| {
        for position in range {
            let row = resolve(indices[position]) as usize;
            // SAFETY: rows do not overlap, and the caller keeps everyone else away.
            unsafe { output.slice_mut(position * row_elements, row_elements) }
                .copy_from_slice(&table[row * row_elements..(row + 1) * row_elements]);
        }
    });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::testing::{run_on, supported_isas, values};

    #[test]
    fn rows_are_found_from_both_ends_or_refused() {
        let table = values(5 * 37, 1);
        let indices: Vec<i64> = (0..400).map(|index| index * 7 % 10 - 5).collect();
        for isa in supported_isas() {
            let output = run_on(isa, 400 * 37, |worker, output| {
                // SAFETY: every worker of the pool runs this.
                unsafe { gather_rows(worker, &table, 37, &indices, output) }.unwrap();
            });
            for (row, &index) in output.chunks(37).zip(&indices) {
                let place = index.rem_euclid(5) as usize;
                assert_eq!(row, &table[place * 37..(place + 1) * 37]);
            }
            for index in [5, -6, i64::MAX, i64::MIN] {
                run_on(isa, 74, |worker, output| {
                    // SAFETY: every worker of the pool runs this.
                    let outcome = unsafe { gather_rows(worker, &table, 37, &[1, index], output) };
                    assert_eq!(outcome, Err(RowIndexError { index, position: 1, rows: 5 }));
                });
            }
        }
    }
}
