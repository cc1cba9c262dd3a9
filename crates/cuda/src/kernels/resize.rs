//! Axes grown or shrunk by interpolation, along tables of which input elements make an output element.

use bytemuck::{Pod, Zeroable, cast_slice};
use weft_ir::operators::convolution::{AxisResize, AxisSamples};
use weft_ir::strides;

use super::divider::Divider;
use super::flat::flat_launch;
use super::widening::widening;
use crate::Storage;
use crate::launch::{Argument, KernelSource, Launch};

const TEXT: &str =
    concat!(include_str!("../../kernels/divider.cuh"), include_str!("../../kernels/resize.cu"));

/// The most input elements that make one output element: the loops over them are unrolled.
const MAX_TAPS: usize = 64;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
struct KernelAxis {
    size: Divider,
    stride: u32,
    table: u32,
}

/// One axis of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Axis {
    size: usize,
    /// From one element to the next in the input.
    stride: usize,
    /// Input elements per output element; 0 where the axis is not resized.
    taps: usize,
    /// Where its samples start.
    table: usize,
}

/// A tensor to be resized.
#[derive(Clone, Debug)]
pub(crate) struct Resizing {
    storage: Storage,
    is_nearest: bool,
    /// The innermost first.
    axes: Vec<Axis>,
    samples: Vec<(u32, f32)>,
}

impl Resizing {
    /// `None` where there is no kernel for it. Each resize comes with its samples; the rest of the axes stay. Nothing
    /// is empty.
    pub(crate) fn new(
        storage: Storage,
        is_nearest: bool,
        shape: &[usize],
        resizes: &[(AxisResize, AxisSamples)],
    ) -> Option<Self> {
        let own = strides(shape);
        let (mut axes, mut samples): (Vec<Axis>, Vec<(u32, f32)>) = (Vec::new(), Vec::new());
        for axis in (0..shape.len()).rev() {
            let resized = resizes.iter().find(|(resize, _)| resize.axis == axis);
            let is_resized = |(resize, _): &&(AxisResize, AxisSamples)| !resize.is_identity();
            match resized.filter(is_resized) {
                Some((resize, table)) => {
                    if !table.outside.is_empty() {
                        return None;
                    }
                    let (size, taps) = (resize.output, table.taps);
                    axes.push(Axis { size, stride: own[axis], taps, table: samples.len() });
                    let sources = table.sources.iter().map(|&source| source as u32);
                    samples.extend(sources.zip(table.weights.iter().map(|&weight| weight as f32)));
                }
                None if shape[axis] == 1 => {}
                None => match axes.last_mut() {
                    // Neighbouring axes that stay are one.
                    Some(inside) if inside.taps == 0 => inside.size *= shape[axis],
                    _ => {
                        let (size, stride) = (shape[axis], own[axis]);
                        axes.push(Axis { size, stride, taps: 0, table: 0 });
                    }
                },
            }
        }
        let taps: usize = axes.iter().map(|axis| axis.taps.max(1)).product();
        let fits = !samples.is_empty() && taps <= MAX_TAPS && (is_nearest || storage.is_float());
        fits.then_some(Self { storage, is_nearest, axes, samples })
    }

    /// The samples as the kernel reads them.
    pub(crate) fn tables(&self) -> Vec<u8> {
        let words = |&(source, weight): &(u32, f32)| [source, weight.to_bits()];
        let words: Vec<u32> = self.samples.iter().flat_map(words).collect();
        cast_slice(&words).to_vec()
    }

    /// The launch.
    pub(crate) fn launch(&self, tables: Argument, from: Argument, to: Argument) -> Launch {
        let width = match self.axes[0] {
            Axis { size, taps: 0, .. } => widening(self.storage, [size]),
            _ => 1,
        };
        let mut wide = self.axes.clone();
        if width > 1 {
            wide[0].size /= width;
            wide[1..].iter_mut().for_each(|axis| axis.stride /= width);
        }
        let axis = |axis: &Axis| KernelAxis {
            size: Divider::new(axis.size),
            stride: axis.stride as u32,
            table: axis.table as u32,
        };
        let axes: Vec<KernelAxis> = wide.iter().map(axis).collect();
        let count = wide.iter().map(|axis| axis.size).product();
        let axes = Argument::Bytes(cast_slice(&axes).to_vec());
        flat_launch(self.source(width), count, vec![from, to, tables, axes, Argument::u32(count)])
    }

    fn source(&self, width: usize) -> KernelSource {
        let taps: Vec<String> = self.axes.iter().map(|axis| axis.taps.to_string()).collect();
        let storage = match self.is_nearest {
            true => self.storage.bits_name(),
            false => self.storage.cuda_name(),
        };
        let defines = vec![
            ("STORAGE", storage.to_string()),
            ("NEAREST", u8::from(self.is_nearest).to_string()),
            ("RANK", self.axes.len().to_string()),
            ("WIDTH", width.to_string()),
            ("TAPS", taps.join(", ")),
        ];
        KernelSource::new("resize.cu", TEXT, "resize", defines)
    }
}

fn example(storage: Storage, is_nearest: bool, taps: usize, shape: &[usize]) -> Option<Resizing> {
    let resize = |axis: usize| {
        let (input, scale, region) = (shape[axis], 2.0, (0.0, 1.0));
        let output = 2 * input;
        let samples = AxisSamples {
            taps,
            sources: (0..output * taps).map(|place| place / taps / 2).collect(),
            weights: vec![1.0 / taps as f64; output * taps],
            outside: Vec::new(),
        };
        (AxisResize { axis, input, output, scale, region }, samples)
    };
    Resizing::new(storage, is_nearest, shape, &[resize(1), resize(2)])
}

/// Typical variants, for checking that they compile.
pub(crate) fn samples() -> Vec<KernelSource> {
    let examples = [
        example(Storage::F16, true, 1, &[1, 5, 6, 16]),
        example(Storage::Bf16, false, 2, &[2, 5, 6, 16]),
        example(Storage::F32, false, 4, &[3, 5, 6]),
        example(Storage::U8, true, 1, &[2, 5, 6]),
    ];
    let launch = |resizing: Resizing| {
        resizing.launch(Argument::Null, Argument::Input(0), Argument::Output(0)).source
    };
    examples.into_iter().flatten().map(launch).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_that_stay_merge_and_widen() {
        let resizing = example(Storage::F16, false, 2, &[1, 5, 6, 4, 8]).unwrap();
        let sizes: Vec<usize> = resizing.axes.iter().map(|axis| axis.size).collect();
        assert_eq!(sizes, [32, 12, 10]);
        let launch = resizing.launch(Argument::Null, Argument::Input(0), Argument::Output(0));
        let Argument::Bytes(axes) = &launch.arguments[3] else { panic!("{launch:?}") };
        let axes: Vec<KernelAxis> = bytemuck::pod_collect_to_vec(axes);
        let strides: Vec<u32> = axes.iter().map(|axis| axis.stride).collect();
        assert_eq!(strides, [1, 4, 24]);
        assert_eq!(axes[2].table, 24);
        assert_eq!(resizing.tables().len(), (24 + 20) * 8);
    }

    #[test]
    fn what_the_kernel_cannot_do_is_refused() {
        assert!(example(Storage::F16, false, 4, &[1, 5, 6]).is_some());
        assert!(example(Storage::F16, false, 9, &[1, 5, 6]).is_none());
        assert!(example(Storage::U8, false, 2, &[1, 5, 6]).is_none());
        assert!(Resizing::new(Storage::F16, true, &[2, 3], &[]).is_none());
    }
}
