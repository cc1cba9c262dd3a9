//! Owns pooling of two-dimensional images with channels last.

use std::ops::Range;

use crate::simd::Simd;
use crate::{SharedOutput, SimdTask, Worker};

/// Vectors of channels that are pooled together.
const VECTORS: usize = 4;

/// How a window moves over an image. Pairs are height, width.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PoolingProblem {
    /// Images.
    pub batch: usize,
    /// Rows and columns of an input image.
    pub input: [usize; 2],
    /// Rows and columns of an output image; with rounding up, its last windows may reach past the padding.
    pub output: [usize; 2],
    /// Channels.
    pub channels: usize,
    /// Rows and columns of the window.
    pub kernel: [usize; 2],
    /// Input pixels between neighbouring windows.
    pub strides: [usize; 2],
    /// Input pixels between neighbouring elements of a window.
    pub dilations: [usize; 2],
    /// Padding above and left of the image.
    pub pads_begin: [usize; 2],
    /// Padding below and right of the image.
    pub pads_end: [usize; 2],
}

/// What a window is reduced to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PoolingKind {
    /// The greatest element.
    Max,
    /// The mean of the elements on the image.
    Average,
    /// The mean of the elements on the padded image, padding counting as zero.
    AverageWithPadding,
}

/// A problem whose sizes overflow or whose window cannot move.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("cannot pool {problem:?}")]
pub struct PoolingError {
    /// The problem.
    pub problem: Box<PoolingProblem>,
}

/// Pooling of images of one size.
#[derive(Debug, Clone)]
pub struct Pooling {
    kind: PoolingKind,
    problem: PoolingProblem,
    input_elements: usize,
    output_elements: usize,
    /// For each output row, and for each output column.
    windows: [Vec<Window>; 2],
}

/// The part of a window that lies on the image, along one axis.
#[derive(Debug, Clone, Copy)]
struct Window {
    /// The first input pixel.
    first: usize,
    /// How many window elements lie on the image.
    count: usize,
    /// How many lie on the padded image.
    padded_count: usize,
}

impl Pooling {
    /// Prepares the kernel.
    pub fn new(kind: PoolingKind, problem: &PoolingProblem) -> Result<Self, PoolingError> {
        let error = || PoolingError { problem: Box::new(*problem) };
        let elements = |factors: [usize; 4]| {
            factors
                .iter()
                .try_fold(1usize, |product, &factor| product.checked_mul(factor))
                .filter(|&product| product <= isize::MAX as usize / 64)
                .ok_or_else(error)
        };
        let [input_height, input_width] = problem.input;
        let [output_height, output_width] = problem.output;
        let input_elements =
            elements([problem.batch, input_height, input_width, problem.channels])?;
        let output_elements =
            elements([problem.batch, output_height, output_width, problem.channels])?;
        let windows = |axis| problem.windows(axis).ok_or_else(error);
        Ok(Self {
            kind,
            problem: *problem,
            input_elements,
            output_elements,
            windows: [windows(0)?, windows(1)?],
        })
    }

    /// Pools `input`.
    ///
    /// # Safety
    ///
    /// All workers of the run make the same call, and nothing else accesses the output until all have returned.
    ///
    /// # Panics
    ///
    /// If a slice has another length than the problem asks for.
    pub unsafe fn run(&self, worker: &Worker, input: &[f32], output: SharedOutput<f32>) {
        assert_eq!(input.len(), self.input_elements, "input of pooling");
        assert_eq!(output.len(), self.output_elements, "output of pooling");
        let [height, width] = self.problem.output;
        let row_elements = width * self.problem.channels;
        let channels = self.problem.channels;
        // A task is a row of all channels, or of some where rows are few.
        let rows = self.problem.batch * height;
        let blocks = if rows < 8 * worker.count() { channels.div_ceil(64).max(1) } else { 1 };
        let block = channels.div_ceil(blocks).next_multiple_of(16);
        worker.parallel(rows * blocks, |task| {
            let (row, first) = (task / blocks, task % blocks * block);
            if first >= channels {
                return;
            }
            worker.isa().run(Row {
                pooling: self,
                input,
                output: output.part(row * row_elements, row_elements),
                row,
                channels: first..(first + block).min(channels),
            });
        });
    }
}

impl PoolingProblem {
    fn windows(&self, axis: usize) -> Option<Vec<Window>> {
        let (size, kernel) = (self.input[axis], self.kernel[axis]);
        let (stride, dilation) = (self.strides[axis], self.dilations[axis]);
        let pad = self.pads_begin[axis];
        let padded = size.checked_add(pad)?.checked_add(self.pads_end[axis])?;
        if kernel == 0 || stride == 0 || dilation == 0 {
            return None;
        }
        let window = |output: usize| {
            let start = output.checked_mul(stride)?;
            // How many elements lie before a place of the padded image.
            let before = |place: usize| place.saturating_sub(start).div_ceil(dilation).min(kernel);
            let (outside, end) = (before(pad), before(pad + size));
            let first = start.checked_add(outside.checked_mul(dilation)?)?.saturating_sub(pad);
            Some(Window { first, count: end - outside, padded_count: before(padded) })
        };
        (0..self.output[axis]).map(window).collect()
    }
}

/// Some channels of one output row.
struct Row<'a> {
    pooling: &'a Pooling,
    input: &'a [f32],
    output: SharedOutput<'a, f32>,
    row: usize,
    channels: Range<usize>,
}

impl SimdTask for Row<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Pooling { kind, problem, windows, .. } = self.pooling;
        let [height, _] = problem.output;
        let image = self.row / height * problem.input[0] * problem.input[1] * problem.channels;
        let down = windows[0][self.row % height];
        for (column, &across) in windows[1].iter().enumerate() {
            let divisor = match kind {
                PoolingKind::Max => 1,
                PoolingKind::Average => down.count * across.count,
                PoolingKind::AverageWithPadding => down.padded_count * across.padded_count,
            };
            let factor = 1.0 / divisor as f32;
            let mut channel = self.channels.start;
            while channel < self.channels.end {
                let count = (self.channels.end - channel).min(VECTORS * S::LANES);
                let start = column * problem.channels + channel;
                // SAFETY: this task alone writes these channels of the row.
                let target = unsafe { self.output.slice_mut(start, count) };
                let window = &self.input[image..];
                match kind {
                    PoolingKind::Max => {
                        self.pool::<S, true>(simd, window, channel, [down, across], factor, target);
                    }
                    _ => {
                        self.pool::<S, false>(
                            simd,
                            window,
                            channel,
                            [down, across],
                            factor,
                            target,
                        );
                    }
                }
                channel += count;
            }
        }
    }
}

impl Row<'_> {
    /// Pools one window for some channels.
    #[inline(always)]
    fn pool<S: Simd, const IS_MAX: bool>(
        &self,
        simd: S,
        image: &[f32],
        channel: usize,
        [down, across]: [Window; 2],
        factor: f32,
        target: &mut [f32],
    ) {
        let problem = &self.pooling.problem;
        let start = simd.splat(if IS_MAX { f32::NEG_INFINITY } else { 0.0 });
        let mut sums = [start; VECTORS];
        for row in 0..down.count {
            let y = down.first + row * problem.dilations[0];
            for column in 0..across.count {
                let x = across.first + column * problem.dilations[1];
                let pixel = (y * problem.input[1] + x) * problem.channels + channel;
                let values = &image[pixel..pixel + target.len()];
                for (sum, chunk) in sums.iter_mut().zip(values.chunks(S::LANES)) {
                    let value = simd.load_slice(chunk);
                    *sum = if IS_MAX { simd.max(value, *sum) } else { simd.add(*sum, value) };
                }
            }
        }
        let factor = simd.splat(factor);
        for (chunk, sum) in target.chunks_mut(S::LANES).zip(sums) {
            simd.store_slice(chunk, if IS_MAX { sum } else { simd.mul(sum, factor) });
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::kernels::testing::{assert_close, run_on, supported_isas, values};

    const KINDS: [PoolingKind; 3] =
        [PoolingKind::Max, PoolingKind::Average, PoolingKind::AverageWithPadding];

    fn check(problem: &PoolingProblem) {
        let PoolingProblem { batch, input: [height, width], channels, .. } = *problem;
        let [output_height, output_width] = problem.output;
        let input = values(batch * height * width * channels, 1);
        for kind in KINDS {
            let mut expected = Vec::new();
            for index in 0..batch * output_height * output_width * channels {
                let channel = index % channels;
                let ox = index / channels % output_width;
                let oy = index / channels / output_width % output_height;
                let n = index / channels / output_width / output_height;
                let (mut sum, mut most, mut count, mut padded) = (0.0, f64::NEG_INFINITY, 0, 0);
                for ky in 0..problem.kernel[0] {
                    for kx in 0..problem.kernel[1] {
                        let y = oy * problem.strides[0] + ky * problem.dilations[0];
                        let x = ox * problem.strides[1] + kx * problem.dilations[1];
                        let [top, left] = problem.pads_begin;
                        if y < top + height + problem.pads_end[0]
                            && x < left + width + problem.pads_end[1]
                        {
                            padded += 1;
                        }
                        let (y, x) = (y.wrapping_sub(top), x.wrapping_sub(left));
                        if y < height && x < width {
                            let place = ((n * height + y) * width + x) * channels + channel;
                            sum += f64::from(input[place]);
                            most = most.max(f64::from(input[place]));
                            count += 1;
                        }
                    }
                }
                expected.push(match kind {
                    PoolingKind::Max => most,
                    PoolingKind::Average => sum / f64::from(count),
                    PoolingKind::AverageWithPadding => sum / f64::from(padded),
                });
            }
            if expected.iter().any(|value| !value.is_finite()) {
                continue;
            }
            let pooling = Pooling::new(kind, problem).unwrap();
            for isa in supported_isas() {
                let output = run_on(isa, expected.len(), |worker, output| {
                    // SAFETY: every worker of the pool runs this.
                    unsafe { pooling.run(worker, &input, output) };
                });
                assert_close(&output, &expected, 1e-6, &format!("{isa:?} {kind:?} {problem:?}"));
            }
        }
    }

    const RESNET: PoolingProblem = PoolingProblem {
        batch: 1,
        input: [12, 11],
        output: [6, 6],
        channels: 64,
        kernel: [3, 3],
        strides: [2, 2],
        dilations: [1, 1],
        pads_begin: [1, 1],
        pads_end: [1, 1],
    };

    #[test]
    fn windows_at_borders_and_past_them() {
        check(&RESNET);
        check(&PoolingProblem { channels: 5, batch: 2, ..RESNET });
        let rounded_up = PoolingProblem {
            pads_begin: [0, 0],
            pads_end: [0, 0],
            output: [6, 5],
            channels: 200,
            ..RESNET
        };
        check(&rounded_up);
        assert!(
            Pooling::new(PoolingKind::Max, &PoolingProblem { strides: [0, 1], ..RESNET }).is_err()
        );
        let huge = PoolingProblem { channels: usize::MAX / 8, ..RESNET };
        assert!(Pooling::new(PoolingKind::Max, &huge).is_err());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]
        #[test]
        fn odd_sizes(
            input in [1usize..15, 1usize..15],
            channels in 1usize..80,
            kernel in [1usize..5, 1usize..5],
            strides in [1usize..4, 1usize..4],
            dilations in [1usize..3, 1usize..3],
            pads_begin in [0usize..3, 0usize..3],
            pads_end in [0usize..3, 0usize..3],
            rounds_up: bool,
        ) {
            let mut output = [0; 2];
            for axis in 0..2 {
                let extent = (kernel[axis] - 1) * dilations[axis] + 1;
                let padded = input[axis] + pads_begin[axis] + pads_end[axis];
                prop_assume!(padded >= extent);
                let room = padded - extent;
                let steps = if rounds_up { room.div_ceil(strides[axis]) } else { room / strides[axis] };
                output[axis] = steps + 1;
            }
            check(&PoolingProblem {
                batch: 1, input, output, channels, kernel, strides, dilations, pads_begin, pads_end,
            });
        }
    }
}
