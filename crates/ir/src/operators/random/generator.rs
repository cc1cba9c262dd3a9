//! The random number generator that every random operator draws from.

use std::sync::atomic::{AtomicU32, Ordering};

const LENGTH: usize = 624;
const SHIFT: usize = 397;

/// The seed of operators that are given none, together with how many of them were evaluated before.
const DEFAULT_SEED: u32 = 5489;

/// MT19937, the Mersenne Twister: slower and larger than younger generators, but the one that the standard's
/// own tests of seeded operators draw from.
pub(crate) struct Generator {
    state: [u32; LENGTH],
    next: usize,
}

impl Generator {
    /// The generator with the given seed; without one, a fixed seed combined with a count, so that runs of
    /// one program repeat, and two evaluations in it do not.
    pub(crate) fn new(seed: Option<u32>) -> Self {
        static UNSEEDED: AtomicU32 = AtomicU32::new(0);
        let seed = seed
            .unwrap_or_else(|| DEFAULT_SEED.wrapping_add(UNSEEDED.fetch_add(1, Ordering::Relaxed)));
        let mut state = [seed; LENGTH];
        for index in 1..LENGTH {
            let last = state[index - 1];
            state[index] =
                (last ^ (last >> 30)).wrapping_mul(1_812_433_253).wrapping_add(index as u32);
        }
        Self { state, next: LENGTH }
    }

    /// The seed that an attribute of type float stands for.
    pub(crate) fn seed(attribute: Option<f32>) -> Option<u32> {
        attribute.map(
            |seed| if seed.fract() == 0.0 && seed >= 0.0 { seed as u32 } else { seed.to_bits() },
        )
    }

    fn twist(&mut self) {
        for index in 0..LENGTH {
            let (upper, lower) = (self.state[index], self.state[(index + 1) % LENGTH]);
            let joined = (upper & 0x8000_0000) | (lower & 0x7FFF_FFFF);
            let twisted = (joined >> 1) ^ if joined & 1 == 1 { 0x9908_B0DF } else { 0 };
            self.state[index] = self.state[(index + SHIFT) % LENGTH] ^ twisted;
        }
        self.next = 0;
    }

    fn bits(&mut self) -> u32 {
        if self.next == LENGTH {
            self.twist();
        }
        let mut bits = self.state[self.next];
        self.next += 1;
        bits ^= bits >> 11;
        bits ^= (bits << 7) & 0x9D2C_5680;
        bits ^= (bits << 15) & 0xEFC6_0000;
        bits ^ (bits >> 18)
    }

    /// Uniform in `[0, 1)`, with 53 random bits.
    pub(crate) fn uniform(&mut self) -> f64 {
        let (high, low) = (self.bits() >> 5, self.bits() >> 6);
        (f64::from(high) * 67_108_864.0 + f64::from(low)) / 9_007_199_254_740_992.0
    }

    /// Normal with mean 0 and standard deviation 1.
    pub(crate) fn normal(&mut self) -> f64 {
        // One minus a number below one is above zero, so its logarithm is finite.
        let radius = (-2.0 * (1.0 - self.uniform()).ln()).sqrt();
        radius * (2.0 * std::f64::consts::PI * self.uniform()).cos()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_numbers_are_the_published_ones() {
        let mut generator = Generator::new(Some(5489));
        let numbers: Vec<u32> = (0..10_000).map(|_| generator.bits()).collect();
        assert_eq!((numbers[0], numbers[9999]), (3_499_211_612, 4_123_659_995));
    }

    #[test]
    fn normals_have_the_right_moments() {
        let mut generator = Generator::new(Some(1));
        let samples: Vec<f64> = (0..20_000).map(|_| generator.normal()).collect();
        let mean = samples.iter().sum::<f64>() / 20_000.0;
        let variance = samples.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / 20_000.0;
        assert!(mean.abs() < 0.03 && (variance - 1.0).abs() < 0.05, "{mean} {variance}");
    }

    #[test]
    fn without_a_seed_no_two_generators_agree() {
        assert_ne!(Generator::new(None).uniform(), Generator::new(None).uniform());
        assert_eq!(Generator::new(Some(3)).uniform(), Generator::new(Some(3)).uniform());
    }
}
