//! Owns the transforms of Winograd convolution along one axis, for tiles of two and of four output pixels.

use crate::SimdTask;
use crate::simd::Simd;

/// A kernel of three elements applied to `INPUT` pixels gives `OUTPUT` pixels: transform pixels and kernel, multiply
/// element by element, transform the products.
pub(super) trait Transform<const INPUT: usize, const OUTPUT: usize>: Send + Sync {
    /// One row per product: its factors for the elements of the kernel.
    fn kernel() -> [[f64; 3]; INPUT];

    /// The factors of the pixels.
    fn input<S: Simd>(simd: S, pixels: [S::F32; INPUT]) -> [S::F32; INPUT];

    /// The sums of the products.
    fn output<S: Simd>(simd: S, products: [S::F32; INPUT]) -> [S::F32; OUTPUT];
}

/// Two output pixels from four, by interpolation at 0, 1, -1 and infinity.
pub(super) struct Two;

/// Four output pixels from six, by interpolation at 0, `NEAR`, `-NEAR`, `FAR`, `-FAR` and infinity.
pub(super) struct Four;

/// The points are chosen for accuracy: with 1 and 2, which need fewer multiplications, the error doubles.
const NEAR: f64 = 0.625;
const FAR: f64 = 1.5;

impl Transform<4, 2> for Two {
    fn kernel() -> [[f64; 3]; 4] {
        [[1.0, 0.0, 0.0], [0.5, 0.5, 0.5], [0.5, -0.5, 0.5], [0.0, 0.0, 1.0]]
    }

    #[inline(always)]
    fn input<S: Simd>(simd: S, d: [S::F32; 4]) -> [S::F32; 4] {
        [simd.sub(d[0], d[2]), simd.add(d[2], d[1]), simd.sub(d[2], d[1]), simd.sub(d[3], d[1])]
    }

    #[inline(always)]
    fn output<S: Simd>(simd: S, m: [S::F32; 4]) -> [S::F32; 2] {
        let (sum, difference) = (simd.add(m[1], m[2]), simd.sub(m[1], m[2]));
        [simd.add(m[0], sum), simd.add(difference, m[3])]
    }
}

impl Transform<6, 4> for Four {
    fn kernel() -> [[f64; 3]; 6] {
        let (a, b) = (NEAR * NEAR, FAR * FAR);
        let at = |point: f64, scale: f64| [1.0 / scale, point / scale, point * point / scale];
        let (near_scale, far_scale) = (2.0 * a * (a - b), 2.0 * b * (b - a));
        [
            at(0.0, a * b),
            at(NEAR, near_scale),
            at(-NEAR, near_scale),
            at(FAR, far_scale),
            at(-FAR, far_scale),
            [0.0, 0.0, 1.0],
        ]
    }

    #[inline(always)]
    fn input<S: Simd>(simd: S, d: [S::F32; 6]) -> [S::F32; 6] {
        let (near_square, far_square) = (NEAR * NEAR, FAR * FAR);
        let minus_sum = constant(simd, -(near_square + far_square));
        let product = constant(simd, near_square * far_square);
        let even_near = simd.fma(d[2], constant(simd, -far_square), d[4]);
        let odd_near =
            simd.mul(simd.fma(d[1], constant(simd, -far_square), d[3]), constant(simd, NEAR));
        let even_far = simd.fma(d[2], constant(simd, -near_square), d[4]);
        let odd_far =
            simd.mul(simd.fma(d[1], constant(simd, -near_square), d[3]), constant(simd, FAR));
        [
            simd.fma(d[0], product, simd.fma(d[2], minus_sum, d[4])),
            simd.add(even_near, odd_near),
            simd.sub(even_near, odd_near),
            simd.add(even_far, odd_far),
            simd.sub(even_far, odd_far),
            simd.fma(d[1], product, simd.fma(d[3], minus_sum, d[5])),
        ]
    }

    #[inline(always)]
    fn output<S: Simd>(simd: S, m: [S::F32; 6]) -> [S::F32; 4] {
        let (near_sum, near_difference) = (simd.add(m[1], m[2]), simd.sub(m[1], m[2]));
        let (far_sum, far_difference) = (simd.add(m[3], m[4]), simd.sub(m[3], m[4]));
        [
            simd.add(m[0], simd.add(near_sum, far_sum)),
            combine(simd, near_difference, far_difference, 1),
            combine(simd, near_sum, far_sum, 2),
            simd.add(combine(simd, near_difference, far_difference, 3), m[5]),
        ]
    }
}

/// The value in every lane.
#[inline(always)]
fn constant<S: Simd>(simd: S, value: f64) -> S::F32 {
    simd.splat(value as f32)
}

/// `near` and `far`, each times a power of its point.
#[inline(always)]
fn combine<S: Simd>(simd: S, near: S::F32, far: S::F32, power: i32) -> S::F32 {
    let far = simd.mul(far, constant(simd, FAR.powi(power)));
    simd.fma(near, constant(simd, NEAR.powi(power)), far)
}

/// Kernels that are transformed together.
pub(super) const KERNELS: usize = 16;

/// Transforms up to `KERNELS` 3x3 kernels, in double precision. Value `k` of product `p` of kernel `i` goes to
/// `target[p * stride + i]`.
pub(super) struct TransformKernels<'a, const INPUT: usize> {
    pub(super) matrix: &'a [[f64; 3]; INPUT],
    pub(super) kernels: &'a [[f32; 9]],
    pub(super) target: &'a mut [f32],
    pub(super) stride: usize,
}

impl<const INPUT: usize> SimdTask for TransformKernels<'_, INPUT> {
    type Output = ();

    /// Written as loops over lanes, which the compiler turns into vectors of doubles.
    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        for (index, kernels) in self.kernels.chunks(KERNELS).enumerate() {
            let mut values = [[0f64; KERNELS]; 9];
            for (lane, kernel) in kernels.iter().enumerate() {
                for (value, &element) in values.iter_mut().zip(kernel) {
                    value[lane] = f64::from(element);
                }
            }
            let mut rows = [[[0f64; KERNELS]; 3]; INPUT];
            for (row, factors) in rows.iter_mut().zip(self.matrix) {
                for (column, sums) in row.iter_mut().enumerate() {
                    for lane in 0..KERNELS {
                        sums[lane] = factors[0] * values[column][lane]
                            + factors[1] * values[3 + column][lane]
                            + factors[2] * values[6 + column][lane];
                    }
                }
            }
            for (down, row) in rows.iter().enumerate() {
                for (across, factors) in self.matrix.iter().enumerate() {
                    let mut products = [0f32; KERNELS];
                    for lane in 0..KERNELS {
                        let sum = factors[0] * row[0][lane]
                            + factors[1] * row[1][lane]
                            + factors[2] * row[2][lane];
                        products[lane] = sum as f32;
                    }
                    let start = (down * INPUT + across) * self.stride + index * KERNELS;
                    self.target[start..start + kernels.len()]
                        .copy_from_slice(&products[..kernels.len()]);
                }
            }
        }
    }
}
