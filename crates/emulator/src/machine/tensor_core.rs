//! Matrix products, as the lanes of a warp hold their operands and sums.

use half::{bf16, f16};

use super::access::Bytes;
use super::lanes::{LANES, Lanes};
use super::ptx::instruction::Factors;

/// Rows of a warp's product, and columns of the smallest one.
const ROWS: usize = 16;
const COLUMNS: usize = 8;

/// What four warps multiply at once along the sum.
pub(super) const WARPGROUP_DEPTH: usize = 16;

/// The pattern of a tile in shared memory: rows of 128 bytes, whose chunks of 16 change places from row to row for eight rows.
const ROW_BYTES: usize = 128;
const CHUNK_BYTES: usize = 16;

/// Factors that a word of 32 bits holds.
fn factors_in(factors: Factors, word: u64) -> [f32; 2] {
    let [low, high] = [word as u16, (word >> 16) as u16];
    match factors {
        Factors::F16 => [low, high].map(|bits| f16::from_bits(bits).to_f32()),
        Factors::Bf16 => [low, high].map(|bits| bf16::from_bits(bits).to_f32()),
        // The last 13 bits are not looked at.
        Factors::Tf32 => [f32::from_bits(word as u32 & !0x1fff), 0.0],
    }
}

/// A product of 16 rows and 8 columns, and what it is added to.
pub(super) fn multiply(
    factors: Factors,
    depth: usize,
    a: &[Lanes],
    b: &[Lanes],
    c: &[Lanes; 4],
) -> [Lanes; 4] {
    let mut left = [[0f64; WARPGROUP_DEPTH]; ROWS];
    let mut right = [[0f64; WARPGROUP_DEPTH]; COLUMNS];
    let per_word = if factors == Factors::Tf32 { 1 } else { 2 };
    for lane in 0..LANES {
        let (row, first) = (lane / 4, lane % 4 * per_word);
        for (index, word) in a.iter().enumerate() {
            let values = factors_in(factors, word[lane]);
            for (e, value) in values[..per_word].iter().enumerate() {
                let k = first + index / 2 * 4 * per_word + e;
                left[row + index % 2 * 8][k] = f64::from(*value);
            }
        }
        for (index, word) in b.iter().enumerate() {
            let values = factors_in(factors, word[lane]);
            for (e, value) in values[..per_word].iter().enumerate() {
                right[row][first + index * 4 * per_word + e] = f64::from(*value);
            }
        }
    }
    std::array::from_fn(|index| {
        std::array::from_fn(|lane| {
            let (row, column) = (lane / 4 + index / 2 * 8, lane % 4 * 2 + index % 2);
            let products = left[row].iter().zip(&right[column]).take(depth);
            let before = f64::from(f32::from_bits(c[index][lane] as u32));
            let sum = products.fold(before, |sum, (x, y)| sum + x * y);
            u64::from((sum as f32).to_bits())
        })
    })
}

/// A tile in shared memory, as a description of 64 bits says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tile {
    start: usize,
    /// From eight rows to the next eight.
    stride_bytes: usize,
}

impl Tile {
    /// Tiles in the pattern of 128 bytes are all that is known here.
    pub(super) fn described(description: u64) -> Result<Self, String> {
        const SWIZZLE_128: u64 = 1;
        if description >> 62 != SWIZZLE_128 || description >> 49 & 7 != 0 {
            return Err(format!(
                "a tile is described as {description:#x}, which is not known here"
            ));
        }
        let field = |start: u32| ((description >> start & 0x3fff) << 4) as usize;
        Ok(Self { start: field(0), stride_bytes: field(32) })
    }

    /// Where a chunk of a row's next 32 bytes lies.
    fn chunk(self, row: usize, chunk: usize) -> usize {
        let plain =
            self.start + row / 8 * self.stride_bytes + row % 8 * ROW_BYTES + chunk * CHUNK_BYTES;
        swizzled(plain, ROW_BYTES)
    }

    /// The words of the next 32 bytes of some rows.
    pub(super) fn words(
        self,
        rows: std::ops::Range<usize>,
        mut at: impl FnMut(usize, usize) -> Result<Bytes, String>,
    ) -> Result<Vec<u64>, String> {
        let mut words = Vec::with_capacity(rows.len() * 4);
        for row in rows {
            for chunk in 0..2 {
                let bytes = at(self.chunk(row, chunk), CHUNK_BYTES)?;
                words.extend([bytes.read(0, 8), bytes.read(8, 8)]);
            }
        }
        Ok(words)
    }
}

/// Where a byte lies whose rows' chunks change places, after so many bytes again.
pub(super) fn swizzled(address: usize, pattern_bytes: usize) -> usize {
    let mask = match pattern_bytes {
        128 => 7,
        64 => 3,
        32 => 1,
        _ => 0,
    };
    address ^ (address >> 7 & mask) << 4
}

/// A warp's part of a product of four warps: its 16 rows by all columns, whose sums become a lane's, or are added to them.
pub(super) fn multiply_rows(
    factors: Factors,
    left: &[u64],
    right: &[u64],
    sums: &mut [Lanes],
    is_added: bool,
) {
    let factors_of = |words: &[u64]| -> Vec<[f32; WARPGROUP_DEPTH]> {
        let row = |words: &[u64]| {
            let mut row = [0f32; WARPGROUP_DEPTH];
            for (index, word) in words.iter().enumerate() {
                row[index * 4..][..2].copy_from_slice(&factors_in(factors, *word));
                row[index * 4 + 2..][..2].copy_from_slice(&factors_in(factors, word >> 32));
            }
            row
        };
        words.chunks_exact(4).map(row).collect()
    };
    let (left, right) = (factors_of(left), factors_of(right));
    for (index, sum) in sums.iter_mut().enumerate() {
        for (lane, value) in sum.iter_mut().enumerate() {
            let row = lane / 4 + index / 2 % 2 * 8;
            let column = index / 4 * 8 + lane % 4 * 2 + index % 2;
            let before = if is_added { f32::from_bits(*value as u32) } else { 0.0 };
            let products = left[row].iter().zip(&right[column]);
            let total = products.fold(before, |total, (x, y)| total + x * y);
            *value = total.to_bits().into();
        }
    }
}

/// What a lane has of a matrix of eight rows of eight numbers of 16 bits: two of them, as rows and columns.
pub(super) fn elements_of(lane: usize, is_transposed: bool) -> [(usize, usize); 2] {
    let (long, short) = (lane / 4, lane % 4 * 2);
    [0, 1].map(|e| if is_transposed { (short + e, long) } else { (long, short + e) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(low: f32, high: f32) -> u64 {
        let bits = |value| u64::from(f16::from_f32(value).to_bits());
        bits(high) << 16 | bits(low)
    }

    /// The number at a row and a place of the sum: all are different.
    fn left(row: usize, k: usize) -> f32 {
        (row * 3 + k) as f32 - 20.0
    }

    fn right(k: usize, column: usize) -> f32 {
        (k * 2 + column) as f32 - 9.0
    }

    fn product(row: usize, column: usize, depth: usize) -> f32 {
        (0..depth).map(|k| left(row, k) * right(k, column)).sum()
    }

    #[test]
    fn lanes_hold_operands_as_the_instruction_set_says() {
        // For numbers of 16 bits: rows eight apart in turns, then eight further along the sum.
        let a: [Lanes; 4] = std::array::from_fn(|index| {
            std::array::from_fn(|lane| {
                let (row, k) = (lane / 4 + index % 2 * 8, lane % 4 * 2 + index / 2 * 8);
                pair(left(row, k), left(row, k + 1))
            })
        });
        let b: [Lanes; 2] = std::array::from_fn(|index| {
            std::array::from_fn(|lane| {
                let (column, k) = (lane / 4, lane % 4 * 2 + index * 8);
                pair(right(k, column), right(k + 1, column))
            })
        });
        let one = [u64::from(1f32.to_bits()); 32];
        let sums = multiply(Factors::F16, 16, &a, &b, &[one; 4]);
        // A lane has two neighbouring columns of two rows, eight apart.
        for (index, lane) in [(0, 0), (1, 5), (2, 17), (3, 31)] {
            let (row, column) = (lane / 4 + index / 2 * 8, lane % 4 * 2 + index % 2);
            let expected = product(row, column, 16) + 1.0;
            assert_eq!(f32::from_bits(sums[index][lane] as u32), expected, "{index} {lane}");
        }
        let a: [Lanes; 4] = std::array::from_fn(|index| {
            std::array::from_fn(|lane| {
                left(lane / 4 + index % 2 * 8, lane % 4 + index / 2 * 4).to_bits().into()
            })
        });
        let b: [Lanes; 2] = std::array::from_fn(|index| {
            std::array::from_fn(|lane| right(lane % 4 + index * 4, lane / 4).to_bits().into())
        });
        let sums = multiply(Factors::Tf32, 8, &a, &b, &[[0; 32]; 4]);
        assert_eq!(f32::from_bits(sums[3][30] as u32), product(15, 5, 8));
    }

    #[test]
    fn chunks_of_rows_change_places() {
        let tile = Tile { start: 2048, stride_bytes: 1024 };
        assert_eq!(tile.chunk(0, 1), 2048 + 16);
        assert_eq!(tile.chunk(3, 0), 2048 + 3 * 128 + 3 * 16);
        assert_eq!(tile.chunk(9, 1), 2048 + 1024 + 128);
        // A run of rows may begin at any row, and the pattern goes by addresses.
        let later = Tile { start: 2048 + 128, ..tile };
        assert_eq!(later.chunk(0, 0), tile.chunk(1, 0));
        assert_eq!(swizzled(64 * 5 + 16, 64), 64 * 5 + 48);
        let description = 2048 >> 4 | 1 << 16 | (1024 >> 4) << 32 | 1 << 62;
        assert_eq!(Tile::described(description), Ok(tile));
        assert!(Tile::described(description | 1 << 63).is_err());
    }

    #[test]
    fn a_warp_of_four_has_sixteen_rows() {
        let words = |rows: usize, value: &dyn Fn(usize, usize) -> f32| -> Vec<u64> {
            let word = |row: usize, k: usize| {
                pair(value(row, k), value(row, k + 1))
                    | pair(value(row, k + 2), value(row, k + 3)) << 32
            };
            (0..rows).flat_map(|row| (0..16).step_by(4).map(move |k| word(row, k))).collect()
        };
        let mut sums = [[0; 32]; 8];
        let (a, b) = (words(16, &left), words(16, &|column, k| right(k, column)));
        multiply_rows(Factors::F16, &a, &b, &mut sums, false);
        for (index, lane) in [(0, 0), (3, 9), (5, 22), (7, 31)] {
            let row = lane / 4 + index / 2 % 2 * 8;
            let column = index / 4 * 8 + lane % 4 * 2 + index % 2;
            assert_eq!(f32::from_bits(sums[index][lane] as u32), product(row, column, 16));
        }
    }

    #[test]
    fn lanes_have_rows_or_columns_of_small_matrices() {
        assert_eq!(elements_of(6, false), [(1, 4), (1, 5)]);
        assert_eq!(elements_of(6, true), [(4, 1), (5, 1)]);
    }
}
