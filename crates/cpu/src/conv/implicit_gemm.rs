//! Owns convolution as a matrix product whose rows are the patches of the image, gathered when they are needed.

use std::ops::Range;
use std::sync::Arc;

use super::problem::{ConvError, ConvProblem, Geometry, check_length};
use crate::gemm::{
    Epilogue, GemmShape, PackedB, PanelWidth, Residual, RowSource, Rows, TileLimits, WeightMatrix,
    WeightOrder, gemm,
};
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
    pub fn pack(
        isa: Isa,
        width: PanelWidth,
        problem: &ConvProblem,
        weights: &[f32],
    ) -> Result<Self, ConvError> {
        let geometry = problem.geometry()?;
        check_length("the weight", weights, geometry.weight_elements)?;
        let positions = problem.kernel[0] * problem.kernel[1];
        let depth = positions * (problem.channels_in / problem.group);
        let columns = problem.channels_out / problem.group;
        let order = WeightOrder::Filters { positions };
        let matrices = weights
            .chunks_exact(depth * columns)
            .map(|data| PackedB::pack(isa, width, &WeightMatrix { data, depth, columns, order }))
            .collect::<Result<_, _>>()?;
        Ok(Self {
            kernel: problem.kernel,
            channels_in: problem.channels_in,
            channels_out: problem.channels_out,
            matrices,
        })
    }

    /// All their values, as they lie in memory.
    pub(crate) fn values(&self) -> impl Iterator<Item = &[f32]> {
        self.matrices.iter().map(PackedB::data)
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
    limits: TileLimits,
    bias: Option<Vec<f32>>,
    activation: Activation,
}

impl ImplicitGemmConv {
    /// Prepares the convolution with weights that may be shared with other sizes of image.
    pub fn new(
        problem: &ConvProblem,
        weights: Arc<ImplicitGemmWeights>,
        limits: TileLimits,
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
        Ok(Self { geometry, weights, limits, bias: bias.map(<[f32]>::to_vec), activation })
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
            if is_plain_product(problem) {
                let pixels = self.geometry.input_elements / problem.channels_in;
                let rows = Rows::new(input, pixels, problem.channels_in, problem.channels_in);
                // SAFETY: all workers are here by the caller's promise, and the product writes the channels of its group.
                unsafe { gemm(worker, &rows, matrix, &self.limits, part, row_stride, &epilogue) };
            } else {
                let patches = Patches { geometry: &self.geometry, input, group };
                // SAFETY: all workers are here by the caller's promise, and the product writes the channels of its group.
                unsafe {
                    gemm(worker, &patches, matrix, &self.limits, part, row_stride, &epilogue)
                };
            }
        }
    }
}

/// Whether the patches are just the pixels of the image, in order.
fn is_plain_product(problem: &ConvProblem) -> bool {
    problem.group == 1
        && problem.kernel == [1, 1]
        && problem.strides == [1, 1]
        && problem.pads_begin == [0, 0]
        && problem.pads_end == [0, 0]
}

/// The shape of the product for each group.
pub(super) fn product_shape(geometry: &Geometry) -> GemmShape {
    let Geometry { problem, output_height, output_width, .. } = geometry;
    GemmShape {
        rows: problem.batch * output_height * output_width,
        depth: problem.kernel[0] * problem.kernel[1] * (problem.channels_in / problem.group),
        columns: problem.channels_out / problem.group,
        stride: is_plain_product(problem).then_some(problem.channels_in),
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

    /// Which parts of a patch some of its columns are.
    fn runs(&self, columns: &Range<usize>) -> Runs {
        let problem = &self.geometry.problem;
        // Columns that lie together in the image: a row of the kernel, if nothing comes in between.
        let is_row = problem.dilations[1] == 1 && problem.group == 1;
        let pixels = if is_row { problem.kernel[1] } else { 1 };
        let length = pixels * self.group_channels();
        let first_pixel = columns.start / length * pixels;
        Runs {
            pixels,
            length,
            first_row: first_pixel / problem.kernel[1],
            first_column: first_pixel % problem.kernel[1],
            offset: columns.start % length,
            count: columns.len(),
        }
    }

    /// Copies some columns of the patch of an output pixel to the start of `target`.
    #[inline(always)]
    fn copy_patch(&self, place: Place, runs: &Runs, target: &mut [f32]) {
        let problem = &self.geometry.problem;
        let pixel = problem.channels_in as isize;
        let line = problem.width as isize * pixel;
        let top = (place.row * problem.strides[0]).wrapping_sub(problem.pads_begin[0]);
        let left = (place.column * problem.strides[1]).wrapping_sub(problem.pads_begin[1]);
        let image = place.image * problem.height;
        let first_channel = (self.group * self.group_channels()) as isize;
        let (mut row, mut column, mut offset) = (runs.first_row, runs.first_column, runs.offset);
        let mut done = 0;
        while done < runs.count {
            let count = (runs.length - offset).min(runs.count - done);
            let y = top.wrapping_add(row * problem.dilations[0]);
            let x = left.wrapping_add(column * problem.dilations[1]);
            let target = &mut target[done..];
            // Left of the image, `x` has wrapped around and is negative as a signed number.
            let first = x as isize * pixel + first_channel + offset as isize;
            if y >= problem.height {
                target[..count].fill(0.0);
            } else if first >= 0 && first + count as isize <= line {
                let start = (image + y) * line as usize + first as usize;
                copy_run(self.input, start, count, target);
            } else {
                let start = (image + y) * line as usize;
                let row = &self.input[start..start + line as usize];
                copy_clipped(row, first, count, target);
            }
            done += count;
            offset = 0;
            column += runs.pixels;
            if column == problem.kernel[1] {
                column = 0;
                row += 1;
            }
        }
    }
}

/// Some columns of a patch as runs of values that lie together in the image.
struct Runs {
    /// Pixels per run.
    pixels: usize,
    /// Values per run.
    length: usize,
    /// Where in the kernel the first run is.
    first_row: usize,
    first_column: usize,
    /// How many values of the first run come before the first column.
    offset: usize,
    /// How many columns there are.
    count: usize,
}

/// Where an output pixel is.
#[derive(Clone, Copy)]
struct Place {
    image: usize,
    row: usize,
    column: usize,
}

/// Copies `count` values from `first` on, which may lie before or after the row of the image: there are zeros.
#[inline(never)]
fn copy_clipped(row: &[f32], first: isize, count: usize, target: &mut [f32]) {
    let length = row.len() as isize;
    let (inside, end) = (first.clamp(0, length), (first + count as isize).clamp(0, length));
    if inside >= end {
        target[..count].fill(0.0);
        return;
    }
    let (before, kept) = ((inside - first) as usize, (end - inside) as usize);
    target[..before].fill(0.0);
    target[before..before + kept].copy_from_slice(&row[inside as usize..end as usize]);
    target[before + kept..count].fill(0.0);
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
        let runs = self.runs(&columns);
        // A chunk more than the row may be written: into the gap, where there is one.
        let room = target_stride.min(columns.len() + CHUNK);
        for index in 0..rows.len() {
            let start = index * target_stride;
            let end = (start + room).min(target.len());
            self.copy_patch(place, &runs, &mut target[start..end]);
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
