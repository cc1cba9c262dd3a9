//! Products whose weights were packed beforehand, by the copy engine of Hopper and later: `sgemm_panels.cu`.

use super::{ProductKernel, ProductShape};
use crate::launch::KernelSource;

const TEXT: &str = include_str!("../../../kernels/sgemm_panels.cu");

/// Rows of a panel, as the kernel has it.
const PANEL_ROWS: usize = 64;

/// Bytes of a stage besides its operands: its barriers, padded so that the next one begins at a multiple of this.
const BARRIER_BYTES: usize = 128;

/// Weights as the kernel reads them: panels of 64 rows, in each of which the weights of one term follow each other.
/// `None` where panels do not divide the rows.
pub(crate) fn packed(weights: &[f32], shape: &ProductShape) -> Option<Vec<f32>> {
    if !shape.m.is_multiple_of(PANEL_ROWS) {
        return None;
    }
    let mut packed = Vec::with_capacity(weights.len());
    for panel in weights.chunks_exact(PANEL_ROWS * shape.k) {
        for term in 0..shape.k {
            packed.extend(panel.iter().skip(term).step_by(shape.k));
        }
    }
    Some(packed)
}

/// Parameters of `sgemm_panels.cu`, where they are described.
#[derive(Clone, Copy, Debug)]
pub(super) struct Variant {
    tile: [usize; 2],
    thread: [usize; 2],
    tile_k: usize,
    stages: usize,
    is_by_columns: bool,
    square: usize,
    blocks: usize,
}

impl Variant {
    const fn new(tile: [usize; 2], tile_k: usize, stages: usize) -> Self {
        let (thread, is_by_columns) = ([8, 8], true);
        Self { tile, thread, tile_k, stages, is_by_columns, square: 1, blocks: 1 }
    }

    const fn by_rows(self) -> Self {
        Self { is_by_columns: false, ..self }
    }

    const fn in_squares(self) -> Self {
        Self { square: 2, ..self }
    }

    const fn blocks(self, blocks: usize) -> Self {
        Self { blocks, ..self }
    }

    /// With one warp that brings what the others multiply.
    fn threads(&self) -> usize {
        let [rows, columns] =
            [self.tile[0] / (8 * self.thread[0]), self.tile[1] / (4 * self.thread[1])];
        32 * (rows * columns + 1)
    }

    fn shared_bytes(&self) -> u32 {
        let operands = size_of::<f32>() * self.tile_k * (self.tile[0] + self.tile[1]);
        (self.stages * (operands + BARRIER_BYTES)) as u32
    }

    fn tiles(&self, shape: &ProductShape) -> usize {
        shape.m / self.tile[0] * (shape.n / self.tile[1])
    }

    /// True where tiles and stages divide the product.
    pub(super) fn is_legal(&self, shape: &ProductShape) -> bool {
        shape.m.is_multiple_of(self.tile[0])
            && shape.n.is_multiple_of(self.tile[1])
            && shape.k.is_multiple_of(self.tile_k)
    }

    fn name(&self) -> String {
        let [[tile_m, tile_n], [thread_m, thread_n]] = [self.tile, self.thread];
        let order = if self.is_by_columns { "columns" } else { "rows" };
        let mut name = format!(
            "panels, {tile_m}x{tile_n} by {thread_m}x{thread_n}, k {}, {} stages, along {order}",
            self.tile_k, self.stages
        );
        if self.square > 1 {
            name.push_str(" in squares");
        }
        if self.blocks > 1 {
            name.push_str(&format!(", {} per SM", self.blocks));
        }
        name
    }

    pub(super) fn kernel(&self, shape: &ProductShape) -> ProductKernel {
        ProductKernel {
            name: self.name(),
            source: self.source(shape),
            blocks: self.tiles(shape) as u32,
            cluster: 1,
            threads: self.threads() as u32,
            shared_bytes: self.shared_bytes(),
            shape: *shape,
        }
    }

    fn source(&self, shape: &ProductShape) -> KernelSource {
        let flag = |is_set: bool| u8::from(is_set).to_string();
        let defines = vec![
            ("TILE_M", self.tile[0].to_string()),
            ("TILE_N", self.tile[1].to_string()),
            ("THREAD_M", self.thread[0].to_string()),
            ("THREAD_N", self.thread[1].to_string()),
            ("TILE_K", self.tile_k.to_string()),
            ("STAGES", self.stages.to_string()),
            ("BY_COLUMNS", flag(self.is_by_columns)),
            ("SQUARE", self.square.to_string()),
            ("BLOCKS", self.blocks.to_string()),
            ("IS_WHOLE", flag(shape.n == self.tile[1])),
        ];
        // Chips before Hopper have no such copies.
        KernelSource {
            is_exact: true,
            ..KernelSource::new("sgemm_panels.cu", TEXT, "sgemm_panels", defines)
        }
    }
}

/// Long stages have less to do besides multiplying, and short ones shorter code; which order suits the compiler best depends on them.
/// Small tiles are for fewer products, and for a last round of tiles that would leave SMs idle.
pub(super) const VARIANTS: &[Variant] = &[
    Variant::new([128, 128], 32, 4),
    Variant::new([128, 128], 32, 4).in_squares(),
    Variant::new([128, 128], 32, 4).by_rows(),
    Variant::new([128, 128], 16, 6),
    Variant::new([128, 128], 16, 6).in_squares(),
    Variant::new([64, 128], 16, 6).blocks(2),
    Variant::new([64, 128], 32, 4).blocks(2),
    Variant::new([64, 128], 32, 4).blocks(2).in_squares(),
    Variant::new([64, 64], 32, 3).blocks(4),
];

/// All variants, for products of which they take whole rows, and others.
pub(super) fn samples() -> impl Iterator<Item = KernelSource> {
    let shapes = [[256, 128, 256], [256, 256, 256]].map(|[m, n, k]| ProductShape { m, n, k });
    shapes.into_iter().flat_map(|shape| VARIANTS.iter().map(move |variant| variant.source(&shape)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Chip;

    #[test]
    fn weights_of_one_term_follow_each_other_in_a_panel() {
        let shape = ProductShape { m: 128, n: 1, k: 5 };
        let weights: Vec<f32> = (0..shape.m * shape.k).map(|at| at as f32).collect();
        let packed = packed(&weights, &shape).unwrap();
        assert_eq!(packed.len(), weights.len());
        for row in 0..shape.m {
            for term in 0..shape.k {
                let at = (row / PANEL_ROWS * shape.k + term) * PANEL_ROWS + row % PANEL_ROWS;
                assert_eq!(packed[at], weights[row * shape.k + term], "row {row}, term {term}");
            }
        }
        assert_eq!(super::packed(&[0.0; 65], &ProductShape { m: 65, n: 1, k: 1 }), None);
    }

    #[test]
    fn variants_are_what_an_sm_can_run() {
        let chip = Chip::H200;
        for variant in VARIANTS {
            let [warp_m, warp_n] = [8 * variant.thread[0], 4 * variant.thread[1]];
            assert!(variant.tile[0].is_multiple_of(warp_m.max(PANEL_ROWS)), "{variant:?}");
            assert!(variant.tile[1].is_multiple_of(warp_n), "{variant:?}");
            assert!(variant.tile_k.is_multiple_of(2) && variant.stages >= 2, "{variant:?}");
            assert!(variant.thread.iter().all(|side| side.is_multiple_of(4 * variant.square)));
            assert!(variant.shared_bytes() <= chip.shared_bytes_per_block, "{variant:?}");
            // One KiB of every block's is the driver's.
            let of_sm = (variant.shared_bytes() + 1024) * variant.blocks as u32;
            assert!(of_sm <= chip.shared_bytes_per_sm, "{variant:?}: {of_sm}");
            // Sums and two terms of both operands fit the registers of a quarter of the SM, whose warps share them.
            let least =
                variant.thread[0] * variant.thread[1] + 2 * (variant.thread[0] + variant.thread[1]);
            let warps = (variant.blocks * variant.threads() / 32).div_ceil(4);
            assert!(least < 65_536 / 4 / 32 / warps, "{variant:?}: {least}");
        }
        let names: std::collections::HashSet<String> = VARIANTS.iter().map(Variant::name).collect();
        assert_eq!(names.len(), VARIANTS.len());
    }

    #[test]
    fn tiles_cover_the_products_that_they_divide() {
        for variant in VARIANTS {
            let [tile_m, tile_n] = variant.tile;
            let shape = ProductShape { m: 3 * tile_m, n: 2 * tile_n, k: variant.tile_k };
            assert!(variant.is_legal(&shape) && variant.kernel(&shape).launch(7).grid == [6, 7, 1]);
            for [m, n, k] in [[1, 0, 0], [0, 1, 0], [0, 0, 1]] {
                let other = ProductShape { m: shape.m + m, n: shape.n + n, k: shape.k + k };
                assert!(!variant.is_legal(&other), "{variant:?}, {other:?}");
            }
        }
    }
}
