//! The peak of one core, measured with multiply-adds that never leave the registers.

use std::hint::black_box;
use std::time::Instant;

use crate::simd::Simd;
use crate::{Isa, SimdTask};

/// Enough independent chains to hide the latency of a multiply-add on any core.
const CHAINS: usize = 12;
const STEPS: usize = 20_000;
const TRIES: usize = 40;

struct MultiplyInRegisters;

impl SimdTask for MultiplyInRegisters {
    type Output = usize;

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> usize {
        let factor = simd.splat(black_box(0.999));
        let term = simd.splat(black_box(0.001));
        let mut sums = [simd.splat(black_box(1.0)); CHAINS];
        for _ in 0..STEPS {
            for sum in &mut sums {
                *sum = simd.fma(*sum, factor, term);
            }
        }
        black_box(sums.into_iter().map(|sum| simd.sum(sum)).sum::<f32>());
        2 * CHAINS * STEPS * S::LANES
    }
}

/// The best rate that the calling thread reaches in `f32`, in GFLOP/s.
pub fn peak_gflops(isa: Isa) -> f64 {
    let mut best = 0f64;
    for _ in 0..TRIES {
        let start = Instant::now();
        let flops = isa.run(MultiplyInRegisters);
        best = best.max(flops as f64 / start.elapsed().as_secs_f64() * 1e-9);
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wider_instruction_set_is_not_slower() {
        let best = peak_gflops(Isa::detect());
        assert!(best > 1.0, "{best} GFLOP/s");
        assert!(best > 0.8 * peak_gflops(Isa::Portable));
    }
}
