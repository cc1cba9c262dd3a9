//! Products of many tenants' matrices with one vector each, in one launch: `sgemv.cu`.

use crate::launch::KernelSource;

const TEXT: &str = include_str!("../../kernels/sgemv.cu");

/// Parameters of `sgemv.cu`, where they are described.
#[derive(Clone, Copy, Debug)]
pub(super) struct Variant {
    rows: usize,
    warps: usize,
    depth: usize,
}

impl Variant {
    const fn new(rows: usize, warps: usize, depth: usize) -> Self {
        Self { rows, warps, depth }
    }

    pub(super) fn name(&self) -> String {
        format!("{} rows by {} warps, {} deep", self.rows, self.warps, self.depth)
    }

    pub(super) fn threads(&self) -> usize {
        32 * self.warps
    }

    /// Blocks of one product with so many outputs.
    pub(super) fn blocks(&self, m: usize) -> usize {
        m.div_ceil(self.rows * self.warps)
    }

    /// The kernel for sums of so many terms.
    pub(super) fn source(&self, k: usize) -> KernelSource {
        let defines = vec![
            ("ROWS", self.rows.to_string()),
            ("WARPS", self.warps.to_string()),
            ("DEPTH", self.depth.to_string()),
            ("WIDE", u8::from(k.is_multiple_of(4)).to_string()),
        ];
        KernelSource::new("sgemv.cu", TEXT, "sgemv", defines)
    }
}

/// Few rows fill the GPU with few products, many read the vector less often.
pub(super) const VARIANTS: &[Variant] = &[
    Variant::new(1, 2, 4),
    Variant::new(1, 4, 4),
    Variant::new(1, 8, 4),
    Variant::new(2, 2, 4),
    Variant::new(2, 4, 4),
    Variant::new(2, 8, 2),
    Variant::new(2, 8, 4),
    Variant::new(4, 4, 2),
    Variant::new(4, 4, 4),
    Variant::new(4, 8, 2),
    Variant::new(4, 8, 4),
    Variant::new(8, 4, 2),
];

/// Typical variants, for checking that they compile.
pub(crate) fn samples() -> Vec<KernelSource> {
    VARIANTS.iter().flat_map(|variant| [512, 513].map(|k| variant.source(k))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_one_warps() {
        for variant in VARIANTS {
            for m in [1, 7, 510, 512] {
                let rows = variant.blocks(m) * variant.warps * variant.rows;
                assert!((m..m + variant.warps * variant.rows).contains(&rows), "{variant:?}, {m}");
            }
            assert!(variant.threads() <= 1024);
        }
    }
}
