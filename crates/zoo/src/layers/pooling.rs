//! Pools, concatenation and flattening: layers without weights.

use weft_ir::{Attributes, ValueId};

use crate::network::{Network, Signal};

/// A pool's window.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window {
    size: usize,
    stride: usize,
    padding: usize,
    ceil: bool,
}

impl Window {
    pub(crate) const fn new(size: usize, stride: usize) -> Self {
        Self { size, stride, padding: 0, ceil: false }
    }

    pub(crate) const fn padding(self, padding: usize) -> Self {
        Self { padding, ..self }
    }

    /// Windows that hang over the edge count too.
    pub(crate) const fn ceil(self) -> Self {
        Self { ceil: true, ..self }
    }

    fn attributes(&self) -> Attributes {
        Attributes::new()
            .with("ceil_mode", i64::from(self.ceil))
            .with("kernel_shape", vec![self.size as i64; 2])
            .with("pads", vec![self.padding as i64; 4])
            .with("strides", vec![self.stride as i64; 2])
    }
}

/// What pools do to the energy of a rectified signal: the largest of several is larger, their mean is nearer to the
/// mean of all.
const LARGEST: f32 = 2.5;
const MEAN: f32 = 0.7;

impl Network {
    pub(crate) fn max_pool(&mut self, x: Signal, window: Window) -> Signal {
        x.then(self.op_with("MaxPool", &[x.id], window.attributes()), x.energy * LARGEST)
    }

    pub(crate) fn average_pool(&mut self, x: Signal, window: Window) -> Signal {
        let attributes = window.attributes().with("count_include_pad", 1i64);
        x.then(self.op_with("AveragePool", &[x.id], attributes), x.energy * MEAN)
    }

    /// Each channel's mean, as an image of one pixel.
    pub(crate) fn global_average_pool(&mut self, x: Signal) -> Signal {
        x.then(self.op("GlobalAveragePool", &[x.id]), x.energy * MEAN)
    }

    /// Each channel's mean, as frameworks write it that take means over axes.
    pub(crate) fn mean_over_pixels(&mut self, x: Signal, keep_axes: bool) -> Signal {
        let attributes =
            Attributes::new().with("axes", vec![2, 3]).with("keepdims", i64::from(keep_axes));
        x.then(self.op_with("ReduceMean", &[x.id], attributes), x.energy * MEAN)
    }

    /// A matrix with one row per request, out of images with this many pixels.
    pub(crate) fn flatten(&mut self, x: Signal, pixels: usize) -> Signal {
        let id = self.op_with("Flatten", &[x.id], Attributes::new().with("axis", 1i64));
        Signal { id, channels: x.channels * pixels, energy: x.energy }
    }

    /// Images side by side along the channel axis.
    pub(crate) fn concat(&mut self, parts: &[Signal]) -> Signal {
        let ids: Vec<ValueId> = parts.iter().map(|part| part.id).collect();
        let id = self.op_with("Concat", &ids, Attributes::new().with("axis", 1i64));
        let channels = parts.iter().map(|part| part.channels).sum();
        let total: f32 = parts.iter().map(|part| part.energy * part.channels as f32).sum();
        Signal { id, channels, energy: total / channels as f32 }
    }

    /// The sum of two branches.
    pub(crate) fn add(&mut self, x: Signal, y: Signal) -> Signal {
        x.then(self.op("Add", &[x.id, y.id]), x.energy + y.energy)
    }

    /// Images twice as high and wide, each pixel repeated.
    pub(crate) fn upsample(&mut self, x: Signal) -> Signal {
        let scales = self.list(&[1f32, 1.0, 2.0, 2.0]);
        let attributes = Attributes::new()
            .with("coordinate_transformation_mode", "asymmetric")
            .with("mode", "nearest")
            .with("nearest_mode", "floor");
        let inputs = [Some(x.id), None, Some(scales)];
        x.then(self.op_outputs("Resize", &inputs, 1, attributes)[0], x.energy)
    }
}
