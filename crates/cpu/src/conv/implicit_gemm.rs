//! Owns convolution as a matrix product whose rows are the patches of the image, gathered when they are needed.

use std::ops::Range;
use std::sync::Arc;

use super::problem::{ConvError, ConvProblem, Geometry, check_length};
use crate::gemm::{Epilogue, PackedB, Residual, RowSource, Rows, WeightMatrix, WeightOrder, gemm};
use crate::{Activation, Isa, SharedOutput, Worker};

/// Values copied at a time; up to this many but one may be copied too much.
const CHUNK: usize = 8;

/// Kernels packed for one instruction set, one matrix per group.
#[derive(Debug)]
pub struct ImplicitGemmWeights {
    kernel: [usize; 2],
    channels_in: usize,
    channels_out: usize,
    matrices: Vec<PackedB>,
}

impl ImplicitGemmWeights {
    /// Packs the weights of a problem, given as `[channels_out, channels_in / group, height, width]`.
    pub fn pack(isa: Isa, problem: &ConvProblem, weights: &[f32]) -> Result<Self, ConvError> {
        let geometry = problem.geometry()?;
        check_length("the weight", weights, geometry.weight_elements)?;
        let positions = problem.kernel[0] * problem.kernel[1];
        let depth = positions * (problem.channels_in / problem.group);
        let columns = problem.channels_out / problem.group;
        let order = WeightOrder::Filters { positions };
        let matrices = weights
            .chunks_exact(depth * columns)
            .map(|data| PackedB::pack(isa, &WeightMatrix { data, depth, columns, order }))
            .collect::<Result<_, _>>()?;
        Ok(Self {
            kernel: problem.kernel,
            channels_in: problem.channels_in,
            channels_out: problem.channels_out,
            matrices,
        })
    }

    /// How much memory they take.
    pub fn bytes(&self) -> usize {
        self.matrices.iter().map(PackedB::bytes).sum()
    }
}

/// A convolution as a matrix product.
#[derive(Debug)]
pub struct ImplicitGemmConv {
    geometry: Geometry,
    weights: Arc<ImplicitGemmWeights>,
    bias: Option<Vec<f32>>,
    activation: Activation,
}

impl ImplicitGemmConv {
    /// Prepares the convolution with weights that may be shared with other sizes of image.
    pub fn new(
        problem: &ConvProblem,
        weights: Arc<ImplicitGemmWeights>,
        bias: Option<&[f32]>,
        activation: Activation,
    ) -> Result<Self, ConvError> {
        let geometry = problem.geometry()?;
        if weights.kernel != problem.kernel
            || weights.channels_in != problem.channels_in
            || weights.channels_out != problem.channels_out
            || weights.matrices.len() != problem.group
        {
            return Err(ConvError::Unsupported { algorithm: "implicit GEMM" });
        }
        if let Some(bias) = bias {
            geometry.check_bias(bias)?;
        }
        Ok(Self { geometry, weights, bias: bias.map(<[f32]>::to_vec), activation })
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
        let problem = &self.geometry.problem;
        let row_stride = problem.channels_out;
        let group_out = problem.channels_out / problem.group;
        for (group, matrix) in self.weights.matrices.iter().enumerate() {
            let first = group * group_out;
            let part = output.part(first, output.len() - first);
            let epilogue = Epilogue {
                bias: self.bias.as_ref().map(|bias| &bias[first..first + group_out]),
                residual: residual.map(|residual| Residual {
                    data: &residual[first..],
                    row_stride,
                    after_activation: false,
                }),
                activation: self.activation,
            };
            if self.is_plain_product() {
                let pixels = self.geometry.input_elements / problem.channels_in;
                let rows = Rows::new(input, pixels, problem.channels_in, problem.channels_in);
                // SAFETY: all workers are here by the caller's promise, and the product writes the channels of its group.
                unsafe { gemm(worker, &rows, matrix, part, row_stride, &epilogue) };
            } else {
                let patches = Patches { geometry: &self.geometry, input, group };
                // SAFETY: all workers are here by the caller's promise, and the product writes the channels of its group.
                unsafe { gemm(worker, &patches, matrix, part, row_stride, &epilogue) };
            }
        }
    }

    /// Whether the patches are just the pixels of the image, in order.
    fn is_plain_product(&self) -> bool {
        let ConvProblem { kernel, strides, pads_begin, pads_end, group, .. } =
            self.geometry.problem;
        group == 1
            && kernel == [1, 1]
            && strides == [1, 1]
            && pads_begin == [0, 0]
            && pads_end == [0, 0]
    }
}

/// The patches of all images, one per output pixel: kernel rows of kernel columns of the channels of one group.
struct Patches<'a> {
    geometry: &'a Geometry,
    input: &'a [f32],
    group: usize,
}

impl Patches<'_> {
    fn group_channels(&self) -> usize {
        self.geometry.problem.channels_in / self.geometry.problem.group
    }

    /// Copies some columns of one patch, whose output pixel is given, to the start of `target`.
    #[inline(always)]
    fn copy_patch(&self, place: Place, columns: &Range<usize>, target: &mut [f32]) {
        let problem = &self.geometry.problem;
        let channels = self.group_channels();
        // A run of columns that lie together in the image: a row of the kernel if nothing comes in between.
        let is_row = problem.dilations[1] == 1 && problem.group == 1;
        let pixels_per_run = if is_row { problem.kernel[1] } else { 1 };
        let run = pixels_per_run * channels;
        let mut next = columns.start;
        while next < columns.end {
            let end = (next / run * run + run).min(columns.end);
            let kernel_pixel = next / run * pixels_per_run;
            let kernel_row = kernel_pixel / problem.kernel[1];
            let kernel_column = kernel_pixel % problem.kernel[1];
            let y = (place.row * problem.strides[0] + kernel_row * problem.dilations[0])
                .wrapping_sub(problem.pads_begin[0]);
            let x = (place.column * problem.strides[1] + kernel_column * problem.dilations[1])
                .wrapping_sub(problem.pads_begin[1]);
            let offset = next % run;
            let target = &mut target[next - columns.start..];
            let line = Line {
                input: self.input,
                start: (place.image * problem.height + y.min(problem.height))
                    * problem.width
                    * problem.channels_in,
                first_channel: self.group * channels,
                x,
                width: if y < problem.height { problem.width } else { 0 },
                pixel: problem.channels_in,
            };
            line.copy(offset, end - next, target);
            next = end;
        }
    }
}

/// Where an output pixel is.
#[derive(Clone, Copy)]
struct Place {
    image: usize,
    row: usize,
    column: usize,
}

/// Neighbouring pixels of a row of the image, possibly beyond its ends.
struct Line<'a> {
    input: &'a [f32],
    /// Where the row of the image starts.
    start: usize,
    first_channel: usize,
    /// The first pixel; left of the image it has wrapped around.
    x: usize,
    /// How many pixels the row has; none outside the image.
    width: usize,
    /// Values per pixel.
    pixel: usize,
}

impl Line<'_> {
    /// Copies `count` values, `offset` after the first, to the start of `target`, and zeros for those outside.
    #[inline(always)]
    fn copy(&self, offset: usize, count: usize, target: &mut [f32]) {
        let row = self.width as isize * self.pixel as isize;
        let first = self.x as isize * self.pixel as isize + (self.first_channel + offset) as isize;
        let end = first + count as isize;
        if first >= 0 && end <= row {
            copy_run(self.input, self.start + first as usize, count, target);
            return;
        }
        let (inside, inside_end) = (first.clamp(0, row), end.clamp(0, row));
        if inside >= inside_end {
            target[..count].fill(0.0);
            return;
        }
        let (before, length) = ((inside - first) as usize, (inside_end - inside) as usize);
        target[..before].fill(0.0);
        copy_run(self.input, self.start + inside as usize, length, &mut target[before..]);
        target[before + length..count].fill(0.0);
    }
}

/// Copies `count` values, and possibly a few more where both slices have them.
#[inline(always)]
fn copy_run(source: &[f32], start: usize, count: usize, target: &mut [f32]) {
    let rounded = count.next_multiple_of(CHUNK);
    match (source.get(start..start + rounded), target.get_mut(..rounded)) {
        (Some(source), Some(target)) => {
            let (source, _) = source.as_chunks::<CHUNK>();
            let (target, _) = target.as_chunks_mut::<CHUNK>();
            for (target, source) in target.iter_mut().zip(source) {
                *target = *source;
            }
        }
        _ => target[..count].copy_from_slice(&source[start..start + count]),
    }
}

impl RowSource for Patches<'_> {
    fn rows(&self) -> usize {
        let Geometry { problem, output_height, output_width, .. } = *self.geometry;
        problem.batch * output_height * output_width
    }

    fn columns(&self) -> usize {
        let [kernel_height, kernel_width] = self.geometry.problem.kernel;
        kernel_height * kernel_width * self.group_channels()
    }

    #[inline(always)]
    fn copy_block(
        &self,
        rows: Range<usize>,
        columns: Range<usize>,
        target: &mut [f32],
        target_stride: usize,
    ) {
        let Geometry { output_height, output_width, .. } = *self.geometry;
        let mut place = Place {
            image: rows.start / output_width / output_height,
            row: rows.start / output_width % output_height,
            column: rows.start % output_width,
        };
        // A chunk more than the row may be written: into the gap, where there is one.
        let room = target_stride.min(columns.len() + CHUNK);
        for index in 0..rows.len() {
            let start = index * target_stride;
            let end = (start + room).min(target.len());
            self.copy_patch(place, &columns, &mut target[start..end]);
            place.column += 1;
            if place.column == output_width {
                place = Place { column: 0, row: place.row + 1, ..place };
                if place.row == output_height {
                    place = Place { row: 0, image: place.image + 1, ..place };
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
