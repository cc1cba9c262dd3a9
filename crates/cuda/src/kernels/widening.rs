//! Neighbouring elements that kernels move as one.

use crate::Storage;

/// The most bytes that one instruction moves.
pub(crate) const WIDEST_BYTES: usize = 16;

/// How many neighbours can be moved as one where all of these counts of elements have to be whole numbers of them.
pub(crate) fn widening(storage: Storage, counts: impl IntoIterator<Item = usize>) -> usize {
    let most = WIDEST_BYTES / storage.size_bytes();
    counts.into_iter().fold(most, |width, count| match count {
        0 => width,
        count => width.min(1 << count.trailing_zeros().min(4)),
    })
}

/// A type of that many bytes, in kernels that only move elements.
pub(crate) fn element_name(size_bytes: usize) -> &'static str {
    match size_bytes {
        1 => "unsigned char",
        2 => "unsigned short",
        4 => "unsigned int",
        8 => "uint2",
        16 => "uint4",
        _ => unreachable!("elements move in powers of two up to 16 bytes"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_count_is_a_whole_number_of_wide_elements() {
        assert_eq!(widening(Storage::F16, [64, 128, 0]), 8);
        assert_eq!(widening(Storage::F16, [64, 12]), 4);
        assert_eq!(widening(Storage::F16, [7]), 1);
        assert_eq!(widening(Storage::F32, [64]), 4);
        assert_eq!(widening(Storage::U8, [1 << 20]), 16);
        assert_eq!(widening(Storage::I64, [6]), 2);
    }
}
