//! Rows with zeros after each, so that wide loads fit them.

use super::flat::flat_launch;
use crate::Storage;
use crate::launch::{Argument, KernelSource, Launch};

const TEXT: &str = include_str!("../../kernels/pad_rows.cu");

/// What rows are padded to a multiple of.
const ALIGNMENT_BYTES: usize = 8;

/// The number of columns that rows of `columns` elements are padded to.
pub(crate) fn padded_columns(columns: usize, storage: Storage) -> usize {
    columns.next_multiple_of(ALIGNMENT_BYTES / storage.size_bytes())
}

/// The launch that writes `rows` rows of `columns` floating-point elements as padded ones.
pub(crate) fn pad_rows_launch(
    storage: Storage,
    rows: usize,
    columns: usize,
    from: Argument,
    to: Argument,
) -> Launch {
    let pieces = padded_columns(columns, storage) * storage.size_bytes() / ALIGNMENT_BYTES;
    flat_launch(source(storage, columns), rows * pieces, vec![from, to, Argument::u32(rows)])
}

fn source(storage: Storage, columns: usize) -> KernelSource {
    let defines = vec![
        ("STORAGE", storage.cuda_name().to_string()),
        ("COLUMNS", columns.to_string()),
        ("PADDED_COLUMNS", padded_columns(columns, storage).to_string()),
    ];
    KernelSource::new("pad_rows.cu", TEXT, "pad_rows", defines)
}

/// Typical variants, for checking that they compile.
pub(crate) fn samples() -> Vec<KernelSource> {
    [Storage::F16, Storage::Bf16, Storage::F32].map(|storage| source(storage, 3)).to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_padded_to_eight_bytes_and_threads_cover_them() {
        for (storage, columns, padded) in [
            (Storage::F16, 3, 4),
            (Storage::F16, 8, 8),
            (Storage::F32, 3, 4),
            (Storage::Bf16, 5, 8),
        ] {
            assert_eq!(padded_columns(columns, storage), padded);
            let launch = pad_rows_launch(storage, 100, columns, Argument::Null, Argument::Null);
            let threads = launch.grid[0] as usize * launch.threads as usize;
            assert!(threads * ALIGNMENT_BYTES >= 100 * padded * storage.size_bytes());
        }
    }
}
