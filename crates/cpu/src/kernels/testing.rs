//! Owns what the tests of kernels share: values, pools of every kind, and comparison.

use std::sync::OnceLock;

use crate::{Isa, Pool, SharedOutput, Worker};

/// `count` values between -1 and 1 that depend on `seed`.
pub(crate) fn values(count: usize, seed: u64) -> Vec<f32> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x2545_f491_4f6c_dd1d;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 40) as f32 / (1u64 << 23) as f32 - 1.0
    };
    (0..count).map(|_| next()).collect()
}

/// The instruction sets of this machine.
pub(crate) fn supported_isas() -> impl Iterator<Item = Isa> {
    Isa::ALL.into_iter().filter(|isa| isa.is_supported())
}

/// One pool for each instruction set and number of workers from one to three, made once for all tests.
fn pools() -> &'static [Pool] {
    static POOLS: OnceLock<Vec<Pool>> = OnceLock::new();
    POOLS.get_or_init(|| {
        supported_isas()
            .flat_map(|isa| (1..=3).map(move |count| Pool::unpinned(count, isa).unwrap()))
            .collect()
    })
}

/// Runs a kernel with one to three workers, and checks that the number makes no difference.
pub(crate) fn run_on<T: Bits>(
    isa: Isa,
    output_len: usize,
    kernel: impl Fn(&Worker, SharedOutput<T>) + Sync,
) -> Vec<T> {
    let mut first: Option<Vec<T>> = None;
    for pool in pools().iter().filter(|pool| pool.isa() == isa) {
        let mut output = vec![T::POISON; output_len];
        let shared = SharedOutput::new(&mut output);
        pool.run(|worker| kernel(worker, shared)).unwrap();
        match &first {
            None => first = Some(output),
            Some(first) => {
                for (index, (a, b)) in first.iter().zip(&output).enumerate() {
                    let workers = pool.workers();
                    assert_eq!(a.bits(), b.bits(), "{index} with {workers} workers, {isa:?}");
                }
            }
        }
    }
    first.unwrap()
}

/// Elements whose identity can be checked.
pub(crate) trait Bits: Copy + Send {
    /// A value that kernels do not compute, to find elements that are never written.
    const POISON: Self;
    /// All of the value, also of NaN.
    fn bits(&self) -> u64;
}

impl Bits for f32 {
    const POISON: f32 = f32::NAN;
    fn bits(&self) -> u64 {
        self.to_bits().into()
    }
}

impl Bits for u8 {
    const POISON: u8 = 0xa5;
    fn bits(&self) -> u64 {
        (*self).into()
    }
}

/// Fails unless every value is within `tolerance` of the expected one, relative to the largest expected one.
#[track_caller]
pub(crate) fn assert_close(given: &[f32], expected: &[f64], tolerance: f64, context: &str) {
    assert_eq!(given.len(), expected.len(), "{context}");
    let scale = expected.iter().fold(1e-30f64, |scale, value| scale.max(value.abs()));
    for (index, (&a, &b)) in given.iter().zip(expected).enumerate() {
        let is_close = (f64::from(a) - b).abs() <= tolerance * scale;
        assert!(is_close, "{context}: element {index} is {a}, expected {b} (scale {scale})");
    }
}
