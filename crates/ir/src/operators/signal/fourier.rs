//! The discrete Fourier transform of one line of complex numbers, of any length, in `n log n` steps.

use std::f64::consts::PI;

/// Real and imaginary part.
pub(super) type Complex = [f64; 2];

fn multiply([a, b]: Complex, [c, d]: Complex) -> Complex {
    [a * c - b * d, a * d + b * c]
}

fn conjugate([real, imaginary]: Complex) -> Complex {
    [real, -imaginary]
}

/// `e^(i angle)`.
fn unit(angle: f64) -> Complex {
    [angle.cos(), angle.sin()]
}

/// The forward transform.
pub(super) fn forward(signal: &[Complex]) -> Vec<Complex> {
    if signal.len().is_power_of_two() { by_halves(signal) } else { by_chirps(signal) }
}

/// The inverse transform, divided by the length.
pub(super) fn inverse(spectrum: &[Complex]) -> Vec<Complex> {
    let turned: Vec<Complex> = spectrum.iter().map(|&value| conjugate(value)).collect();
    let length = spectrum.len() as f64;
    let scaled = |[real, imaginary]: Complex| [real / length, -imaginary / length];
    forward(&turned).into_iter().map(scaled).collect()
}

/// Cooley and Tukey's transform, for powers of two.
fn by_halves(signal: &[Complex]) -> Vec<Complex> {
    let length = signal.len();
    let bits = length.trailing_zeros();
    let mut values: Vec<Complex> = (0..length)
        .map(|index| match bits {
            0 => signal[index],
            _ => signal[index.reverse_bits() >> (usize::BITS - bits)],
        })
        .collect();
    let roots: Vec<Complex> =
        (0..length / 2).map(|index| unit(-2.0 * PI * index as f64 / length as f64)).collect();
    let mut half = 1;
    while half < length {
        for block in values.chunks_exact_mut(2 * half) {
            let (low, high) = block.split_at_mut(half);
            for (index, (low, high)) in low.iter_mut().zip(high).enumerate() {
                let turned = multiply(*high, roots[index * (length / (2 * half))]);
                *high = [low[0] - turned[0], low[1] - turned[1]];
                *low = [low[0] + turned[0], low[1] + turned[1]];
            }
        }
        half *= 2;
    }
    values
}

/// Bluestein's transform: a convolution with a chirp, done by transforms whose length is a power of two.
fn by_chirps(signal: &[Complex]) -> Vec<Complex> {
    let length = signal.len();
    let padded = (2 * length).next_power_of_two();
    // The square is reduced before it becomes an angle, since large angles lose precision.
    let chirp: Vec<Complex> = (0..length)
        .map(|index| {
            let square = (index as u128 * index as u128) % (2 * length as u128);
            unit(-PI * square as f64 / length as f64)
        })
        .collect();
    let mut turned = vec![[0.0; 2]; padded];
    let mut filter = vec![[0.0; 2]; padded];
    for (index, &factor) in chirp.iter().enumerate() {
        turned[index] = multiply(signal[index], factor);
        filter[index] = conjugate(factor);
        if index > 0 {
            filter[padded - index] = conjugate(factor);
        }
    }
    let filter = by_halves(&filter);
    let product: Vec<Complex> =
        by_halves(&turned).into_iter().zip(filter).map(|(a, b)| multiply(a, b)).collect();
    inverse(&product)
        .into_iter()
        .zip(chirp)
        .map(|(value, factor)| multiply(value, factor))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_length_agrees_with_the_definition() {
        for length in [1, 2, 3, 4, 5, 7, 8, 12, 16, 31, 100] {
            let signal: Vec<Complex> = (0..length)
                .map(|index| [(index * 5 % 7) as f64 - 3.0, (index * 3 % 5) as f64])
                .collect();
            let expected: Vec<Complex> = (0..length)
                .map(|bin| {
                    signal.iter().enumerate().fold([0.0; 2], |sum, (index, &value)| {
                        let angle = -2.0 * PI * (bin * index % length) as f64 / length as f64;
                        let term = multiply(value, unit(angle));
                        [sum[0] + term[0], sum[1] + term[1]]
                    })
                })
                .collect();
            let close = |left: &[Complex], right: &[Complex]| {
                left.as_flattened()
                    .iter()
                    .zip(right.as_flattened())
                    .all(|(a, b)| (a - b).abs() < 1e-10)
            };
            let spectrum = forward(&signal);
            assert!(close(&spectrum, &expected), "length {length}");
            assert!(close(&inverse(&spectrum), &signal), "length {length}");
        }
    }
}
