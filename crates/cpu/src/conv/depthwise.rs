//! Owns depthwise convolution: every channel has its own kernel, so vectors run over channels.

mod parameters;

use std::sync::Arc;

use super::problem::{ConvError, ConvProblem, Geometry, check_length};
use crate::Activation;
use crate::kernels::activate;
use crate::simd::Simd;
use crate::{AlignedBuffer, SharedOutput, SimdTask, Worker};
pub use parameters::DepthwiseParameters;
pub(super) use parameters::TaskSize;

/// Output pixels of a row that are computed together; the maps of common networks are multiples of it.
const PIXELS: usize = 7;

/// The widest vector of any instruction set: channels are padded to a multiple of it in the packed weights.
const CHANNEL_MULTIPLE: usize = 16;

/// Kernels of one value per channel, element by element.
#[derive(Debug)]
pub struct DepthwiseWeights {
    kernel: [usize; 2],
    channels: usize,
    padded_channels: usize,
    data: AlignedBuffer,
}

impl DepthwiseWeights {
    /// Packs `weights`, given as `[channels, 1, height, width]`.
    pub fn pack(channels: usize, kernel: [usize; 2], weights: &[f32]) -> Result<Self, ConvError> {
        let kernel_elements = kernel[0].checked_mul(kernel[1]).ok_or(ConvError::Overflow)?;
        let expected = channels.checked_mul(kernel_elements).ok_or(ConvError::Overflow)?;
        check_length("the weight", weights, expected)?;
        let padded_channels = channels.next_multiple_of(CHANNEL_MULTIPLE);
        let padded = padded_channels.checked_mul(kernel_elements).ok_or(ConvError::Overflow)?;
        let mut data = AlignedBuffer::zeroed(padded)?;
        for (channel, values) in weights.chunks_exact(kernel_elements.max(1)).enumerate() {
            for (element, &weight) in values.iter().enumerate() {
                data[element * padded_channels + channel] = weight;
            }
        }
        Ok(Self { kernel, channels, padded_channels, data })
    }

    /// All their values, as they lie in memory.
    pub(crate) fn values(&self) -> impl Iterator<Item = &[f32]> {
        std::iter::once(&*self.data)
    }

    /// How much memory they take.
    pub fn bytes(&self) -> usize {
        size_of_val::<[f32]>(&self.data)
    }
}

/// A depthwise convolution of images of one size.
#[derive(Debug)]
pub struct DepthwiseConv {
    geometry: Geometry,
    weights: Arc<DepthwiseWeights>,
    parameters: DepthwiseParameters,
    /// One value per channel, padded like the weights.
    bias: AlignedBuffer,
    /// Bounds of the result while it is still in registers.
    low: f32,
    high: f32,
    /// What the bounds cannot express, computed over each row once it is complete.
    activation: Option<Activation>,
}

impl DepthwiseConv {
    /// Whether the problem is a depthwise convolution.
    pub fn supports(problem: &ConvProblem) -> bool {
        problem.is_depthwise()
    }

    /// Prepares the convolution with weights that may be shared with other sizes of image.
    pub fn new(
        problem: &ConvProblem,
        weights: Arc<DepthwiseWeights>,
        parameters: DepthwiseParameters,
        bias: Option<&[f32]>,
        activation: Activation,
    ) -> Result<Self, ConvError> {
        let geometry = problem.geometry()?;
        let is_for_weights =
            weights.kernel == problem.kernel && weights.channels == problem.channels_in;
        if !Self::supports(problem) || !is_for_weights {
            return Err(ConvError::Unsupported { algorithm: "depthwise convolution" });
        }
        let mut padded_bias = AlignedBuffer::zeroed(weights.padded_channels)?;
        if let Some(bias) = bias {
            geometry.check_bias(bias)?;
            padded_bias[..bias.len()].copy_from_slice(bias);
        }
        let (range, activation) = match activation.as_range() {
            Some(range) => (range, None),
            None => ((f32::NEG_INFINITY, f32::INFINITY), Some(activation)),
        };
        Ok(Self {
            geometry,
            weights,
            parameters,
            bias: padded_bias,
            low: range.0,
            high: range.1,
            activation,
        })
    }

    /// How many bytes the packed weights take.
    pub fn weight_bytes(&self) -> usize {
        self.weights.bytes()
    }

    /// Computes `activation(convolution + bias + residual)`.
    ///
    /// # Safety
    ///
    /// All workers of the run make the same call, and nothing else accesses the output until all have returned.
    pub unsafe fn run(
        &self,
        worker: &Worker,
        input: &[f32],
        residual: Option<&[f32]>,
        output: SharedOutput<f32>,
    ) {
        self.geometry.assert_activations(input.len(), output.len(), residual.map(<[f32]>::len));
        let Geometry { problem, output_height, .. } = self.geometry;
        let rows = problem.batch * output_height;
        let task = self.parameters.task_size(&self.geometry, worker.count());
        let row_blocks = rows.div_ceil(task.rows);
        let channel_blocks = problem.channels_in.div_ceil(task.channels);
        worker.parallel(row_blocks * channel_blocks, |index| {
            let first_row = index / channel_blocks * task.rows;
            let first_channel = index % channel_blocks * task.channels;
            worker.isa().run(Rows {
                conv: self,
                input,
                residual,
                output,
                rows: first_row..(first_row + task.rows).min(rows),
                channels: first_channel..(first_channel + task.channels).min(problem.channels_in),
            });
        });
    }
}

/// Some rows of the output of all images, and some of their channels.
struct Rows<'a> {
    conv: &'a DepthwiseConv,
    input: &'a [f32],
    residual: Option<&'a [f32]>,
    output: SharedOutput<'a, f32>,
    rows: std::ops::Range<usize>,
    channels: std::ops::Range<usize>,
}

/// One row of the output, and the input rows that it needs.
struct Row<'a> {
    conv: &'a DepthwiseConv,
    /// The first pixel of the first input row that the kernel covers.
    input: *const f32,
    residual: Option<*const f32>,
    output: *mut f32,
    /// The kernel rows that lie on the image.
    kernel_rows: std::ops::Range<usize>,
    channels: std::ops::Range<usize>,
}

impl SimdTask for Rows<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Geometry { problem, output_height, output_width, .. } = self.conv.geometry;
        let channels = problem.channels_in;
        let image = problem.height * problem.width * channels;
        let output_row = output_width * channels;
        for row in self.rows.clone() {
            let top = row % output_height * problem.strides[0];
            let pad = problem.pads_begin[0];
            let dilation = problem.dilations[0];
            let kernel_begin = pad.saturating_sub(top).div_ceil(dilation).min(problem.kernel[0]);
            let kernel_end = (problem.height + pad)
                .saturating_sub(top)
                .div_ceil(dilation)
                .clamp(kernel_begin, problem.kernel[0]);
            let image_start = row / output_height * image;
            let first_input = if kernel_begin < kernel_end {
                image_start + (top + kernel_begin * dilation - pad) * problem.width * channels
            } else {
                image_start
            };
            let row = Row {
                conv: self.conv,
                input: self.input[first_input..].as_ptr(),
                residual: self.residual.map(|residual| residual[row * output_row..].as_ptr()),
                output: self.output.part(row * output_row, output_row).as_mut_ptr(),
                kernel_rows: kernel_begin..kernel_end,
                channels: self.channels.clone(),
            };
            // SAFETY: the pointers start the rows that the geometry names, the kernel rows lie on the image, and this
            // task alone writes these channels of the output row.
            unsafe {
                match (problem.kernel[1], problem.strides[1], problem.dilations[1]) {
                    (3, 1, 1) => row.compute::<S, 3, 1>(simd),
                    (3, 2, 1) => row.compute::<S, 3, 2>(simd),
                    (5, 1, 1) => row.compute::<S, 5, 1>(simd),
                    (5, 2, 1) => row.compute::<S, 5, 2>(simd),
                    _ => row.compute_any(simd),
                }
                row.activate(simd);
            }
        }
    }
}

impl Row<'_> {
    /// Loads a vector of channels, all or the first `count`.
    ///
    /// # Safety
    ///
    /// `source` is valid for as many values.
    #[inline(always)]
    unsafe fn load<S: Simd, const FULL: bool>(simd: S, source: *const f32, count: usize) -> S::F32 {
        // SAFETY: the caller's promise.
        unsafe { if FULL { simd.load(source) } else { simd.load_partial(source, count) } }
    }

    /// Computes the row for a kernel of `WIDTH` columns that moves by `STRIDE` pixels.
    ///
    /// # Safety
    ///
    /// The pointers and ranges of the row are what their descriptions say, for this kernel.
    #[inline(always)]
    unsafe fn compute<S: Simd, const WIDTH: usize, const STRIDE: usize>(&self, simd: S) {
        let geometry = &self.conv.geometry;
        let pad = geometry.problem.pads_begin[1];
        let width = geometry.problem.width;
        let output_width = geometry.output_width;
        let mut next = 0;
        while next < output_width {
            // The last block moves back over pixels that are already done rather than past the end.
            let pixel = next.min(output_width.saturating_sub(PIXELS));
            let is_inside = pixel * STRIDE >= pad
                && (pixel + PIXELS - 1) * STRIDE + WIDTH <= width + pad
                && pixel + PIXELS <= output_width;
            let mut channel = self.channels.start;
            // SAFETY: inside, all input columns of the block lie on the image; elsewhere each is checked; the last
            // vector is cut to the channels that exist.
            unsafe {
                if is_inside {
                    while channel + S::LANES <= self.channels.end {
                        self.block::<S, WIDTH, STRIDE, true, false>(simd, pixel, channel);
                        channel += S::LANES;
                    }
                    if channel < self.channels.end {
                        self.block::<S, WIDTH, STRIDE, false, true>(simd, pixel, channel);
                    }
                } else {
                    while channel + S::LANES <= self.channels.end {
                        self.block::<S, WIDTH, STRIDE, true, true>(simd, pixel, channel);
                        channel += S::LANES;
                    }
                    if channel < self.channels.end {
                        self.block::<S, WIDTH, STRIDE, false, true>(simd, pixel, channel);
                    }
                }
            }
            next = pixel + PIXELS;
        }
    }

    /// Computes `PIXELS` pixels of the row from `pixel` on, for one vector of channels.
    ///
    /// # Safety
    ///
    /// As for [`Row::compute`]; unless `CHECKED`, all input columns of the block lie on the image and all pixels in the
    /// row; if `FULL`, a whole vector of channels exists.
    #[inline(always)]
    unsafe fn block<
        S: Simd,
        const WIDTH: usize,
        const STRIDE: usize,
        const FULL: bool,
        const CHECKED: bool,
    >(
        &self,
        simd: S,
        pixel: usize,
        channel: usize,
    ) {
        let problem = &self.conv.geometry.problem;
        let channels = problem.channels_in;
        let padded_channels = self.conv.weights.padded_channels;
        let count = self.channels.end - channel;
        let row_step = problem.dilations[0] * problem.width * channels;
        // Positions left of the image wrap around and are then seen to lie outside.
        let left = (pixel * STRIDE).wrapping_sub(problem.pads_begin[1]);
        let mut row = self.input.wrapping_add(left.wrapping_mul(channels).wrapping_add(channel));
        // SAFETY: the packed weights and the bias are padded to whole vectors; input columns lie on the image by the
        // caller's promise or by the check.
        unsafe {
            let bias = simd.load(self.conv.bias.as_ptr().add(channel));
            let mut sums = [bias; PIXELS];
            let mut weights = self
                .conv
                .weights
                .data
                .as_ptr()
                .add(self.kernel_rows.start * WIDTH * padded_channels + channel);
            for _ in self.kernel_rows.clone() {
                let mut taps = [bias; WIDTH];
                for tap in &mut taps {
                    *tap = simd.load(weights);
                    weights = weights.add(padded_channels);
                }
                if STRIDE == 1 {
                    // Column by column, so that each is loaded once for all pixels that it belongs to.
                    for column in 0..PIXELS - 1 + WIDTH {
                        if CHECKED && left.wrapping_add(column) >= problem.width {
                            continue;
                        }
                        let source = row.wrapping_add(column * channels);
                        let x = Self::load::<S, FULL>(simd, source, count);
                        for (tap, &weight) in taps.iter().enumerate() {
                            if column >= tap && column - tap < PIXELS {
                                let sum = &mut sums[column - tap];
                                *sum = simd.fma(x, weight, *sum);
                            }
                        }
                    }
                } else {
                    for (tap, &weight) in taps.iter().enumerate() {
                        for (index, sum) in sums.iter_mut().enumerate() {
                            let column = index * STRIDE + tap;
                            if CHECKED && left.wrapping_add(column) >= problem.width {
                                continue;
                            }
                            let source = row.wrapping_add(column * channels);
                            let x = Self::load::<S, FULL>(simd, source, count);
                            *sum = simd.fma(x, weight, *sum);
                        }
                    }
                }
                row = row.wrapping_add(row_step);
            }
            self.finish::<S, FULL, CHECKED>(simd, pixel, channel, sums);
        }
    }

    /// Computes the row for any kernel.
    ///
    /// # Safety
    ///
    /// The pointers and ranges of the row are what their descriptions say.
    #[inline(always)]
    unsafe fn compute_any<S: Simd>(&self, simd: S) {
        let problem = &self.conv.geometry.problem;
        let channels = problem.channels_in;
        let padded_channels = self.conv.weights.padded_channels;
        let [dilation_height, dilation_width] = problem.dilations;
        let row_step = dilation_height * problem.width * channels;
        for pixel in (0..self.conv.geometry.output_width).step_by(PIXELS) {
            for channel in self.channels.clone().step_by(S::LANES) {
                let count = (self.channels.end - channel).min(S::LANES);
                // SAFETY: the packed weights and the bias are padded to whole vectors; each input column is checked to
                // lie on the image.
                unsafe {
                    let mut sums = [simd.load(self.conv.bias.as_ptr().add(channel)); PIXELS];
                    let kernel_width = problem.kernel[1];
                    let mut weights = self
                        .conv
                        .weights
                        .data
                        .as_ptr()
                        .add(self.kernel_rows.start * kernel_width * padded_channels + channel);
                    let mut row = self.input.wrapping_add(channel);
                    for _ in self.kernel_rows.clone() {
                        for tap in 0..kernel_width {
                            let weight = simd.load(weights);
                            weights = weights.wrapping_add(padded_channels);
                            for (index, sum) in sums.iter_mut().enumerate() {
                                let column = ((pixel + index) * problem.strides[1]
                                    + tap * dilation_width)
                                    .wrapping_sub(problem.pads_begin[1]);
                                if column < problem.width {
                                    let source = row.wrapping_add(column * channels);
                                    let x = simd.load_partial(source, count);
                                    *sum = simd.fma(x, weight, *sum);
                                }
                            }
                        }
                        row = row.wrapping_add(row_step);
                    }
                    self.finish::<S, false, true>(simd, pixel, channel, sums);
                }
            }
        }
    }

    /// Adds the residual, applies the bounds and stores the pixels; if `CHECKED`, only those that the row has.
    ///
    /// # Safety
    ///
    /// As for [`Row::block`].
    #[inline(always)]
    unsafe fn finish<S: Simd, const FULL: bool, const CHECKED: bool>(
        &self,
        simd: S,
        pixel: usize,
        channel: usize,
        sums: [S::F32; PIXELS],
    ) {
        let channels = self.conv.geometry.problem.channels_in;
        let count = (self.channels.end - channel).min(S::LANES);
        let pixels = self.conv.geometry.output_width - pixel;
        let low = simd.splat(self.conv.low);
        let high = simd.splat(self.conv.high);
        for (index, mut sum) in sums.into_iter().enumerate() {
            if CHECKED && index >= pixels {
                break;
            }
            let offset = (pixel + index) * channels + channel;
            // SAFETY: the pixel and the channels lie in the row, which this task alone writes.
            unsafe {
                if let Some(residual) = self.residual {
                    sum = simd.add(sum, Self::load::<S, FULL>(simd, residual.add(offset), count));
                }
                let sum = simd.min(high, simd.max(low, sum));
                if FULL {
                    simd.store(self.output.add(offset), sum);
                } else {
                    simd.store_partial(self.output.add(offset), sum, count);
                }
            }
        }
    }

    /// Applies the activation that the bounds cannot express to the finished row.
    ///
    /// # Safety
    ///
    /// The output is a row of the geometry, whose channels this task alone writes.
    #[inline(always)]
    unsafe fn activate<S: Simd>(&self, simd: S) {
        let Some(activation) = self.conv.activation else {
            return;
        };
        for pixel in 0..self.conv.geometry.output_width {
            let offset = pixel * self.conv.geometry.problem.channels_in + self.channels.start;
            // SAFETY: the channels of this task lie in the row.
            let values = unsafe {
                std::slice::from_raw_parts_mut(self.output.add(offset), self.channels.len())
            };
            activate(simd, activation, values);
        }
    }
}

#[cfg(test)]
mod tests;
