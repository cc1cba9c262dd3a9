//! Weights out of nothing: numbers that depend on a seed, a tensor's name and an element's place, and on nothing else.

/// How a tensor's elements are spread.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Spread {
    /// Around zero with this standard deviation, bell-shaped, and never past 3.5 times it.
    Normal(f32),
    /// Evenly from the first to the second.
    Uniform(f32, f32),
}

/// The elements of the tensor `name`. Only exactly rounded operations, so that every machine gives the same bits.
pub(crate) fn draw(seed: u64, name: &str, count: usize, spread: Spread) -> Vec<f32> {
    let key = key(seed, name);
    let words = (0..count as u64).map(|index| mix(key.wrapping_add(index.wrapping_mul(STEP))));
    match spread {
        Spread::Normal(deviation) => {
            let scale = deviation / SUM_DEVIATION;
            words.map(|word| centred_sum(word) as f32 * scale).collect()
        }
        Spread::Uniform(low, high) => {
            let scale = (high - low) / (1u32 << 24) as f32;
            words.map(|word| low + (word >> 40) as f32 * scale).collect()
        }
    }
}

const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// The standard deviation of [`centred_sum`]: that of four independent 16-bit numbers added.
const SUM_DEVIATION: f32 = 37837.23;

/// The word's four 16-bit quarters added, less their mean: close enough to a bell curve, and far cheaper than a true one.
fn centred_sum(word: u64) -> i32 {
    let quarter = |shift: u32| ((word >> shift) & 0xffff) as i32;
    quarter(0) + quarter(16) + quarter(32) + quarter(48) - 2 * 0xffff
}

fn key(seed: u64, name: &str) -> u64 {
    name.bytes().fold(mix(seed ^ STEP), |hash, byte| mix(hash ^ u64::from(byte)).wrapping_add(STEP))
}

/// SplitMix64's finaliser: neighbouring inputs give unrelated outputs.
fn mix(mut word: u64) -> u64 {
    word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moments(elements: &[f32]) -> (f64, f64) {
        let count = elements.len() as f64;
        let mean = elements.iter().map(|&e| f64::from(e)).sum::<f64>() / count;
        let square = elements.iter().map(|&e| (f64::from(e) - mean).powi(2)).sum::<f64>() / count;
        (mean, square.sqrt())
    }

    #[test]
    fn spreads_have_the_moments_they_are_named_for() {
        let (mean, deviation) = moments(&draw(1, "a", 100_000, Spread::Normal(0.5)));
        assert!(mean.abs() < 0.006 && (deviation - 0.5).abs() < 0.006, "{mean} {deviation}");
        let uniform = draw(1, "a", 100_000, Spread::Uniform(1.0, 3.0));
        let (mean, deviation) = moments(&uniform);
        assert!((mean - 2.0).abs() < 0.01 && (deviation - 0.57735).abs() < 0.01);
        assert!(uniform.iter().all(|e| (1.0..3.0).contains(e)));
    }

    #[test]
    fn elements_depend_on_seed_name_and_place_alone() {
        let draw = |seed, name, count| draw(seed, name, count, Spread::Normal(1.0));
        let first = draw(7, "conv1.weight", 64);
        assert_eq!(first, draw(7, "conv1.weight", 128)[..64]);
        for other in [draw(8, "conv1.weight", 64), draw(7, "conv2.weight", 64)] {
            let correlation: f32 = first.iter().zip(&other).map(|(a, b)| a * b).sum::<f32>() / 64.0;
            assert!(correlation.abs() < 0.4, "{correlation}");
        }
    }
}
