//! Convolutions and their transposes.

use weft_ir::Attributes;

use crate::network::{Network, Signal};
use crate::weights::Spread;

/// What a convolution looks like apart from its input.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Convolution {
    channels: usize,
    kernel: [usize; 2],
    stride: usize,
    padding: [usize; 2],
    groups: usize,
    bias: bool,
}

impl Convolution {
    /// A square kernel, stride 1, padded so that the image keeps its size.
    pub(crate) const fn new(channels: usize, kernel: usize) -> Self {
        Self::rectangular(channels, [kernel, kernel])
    }

    /// A kernel of given height and width, stride 1, padded so that the image keeps its size.
    pub(crate) const fn rectangular(channels: usize, kernel: [usize; 2]) -> Self {
        let padding = [kernel[0] / 2, kernel[1] / 2];
        Self { channels, kernel, stride: 1, padding, groups: 1, bias: false }
    }

    /// One filter per channel.
    pub(crate) const fn depthwise(channels: usize, kernel: usize) -> Self {
        Self { groups: channels, ..Self::new(channels, kernel) }
    }

    pub(crate) const fn stride(self, stride: usize) -> Self {
        Self { stride, ..self }
    }

    pub(crate) const fn padding(self, padding: usize) -> Self {
        Self { padding: [padding, padding], ..self }
    }

    pub(crate) const fn bias(self) -> Self {
        Self { bias: true, ..self }
    }

    fn attributes(&self) -> Attributes {
        let both = |pair: [usize; 2]| vec![pair[0] as i64, pair[1] as i64];
        Attributes::new()
            .with("dilations", vec![1, 1])
            .with("group", self.groups as i64)
            .with("kernel_shape", both(self.kernel))
            .with("pads", [both(self.padding), both(self.padding)].concat())
            .with("strides", both([self.stride; 2]))
    }
}

impl Network {
    /// A convolution.
    pub(crate) fn convolve(&mut self, name: &str, x: Signal, shape: Convolution) -> Signal {
        let [height, width] = shape.kernel;
        let depth = x.channels / shape.groups;
        let spread = unit_spread((depth * height * width) as f32, x.energy);
        let weight = [shape.channels, depth, height, width];
        self.convolve_with("Conv", name, x, shape, &weight, spread)
    }

    /// A transposed convolution whose windows do not overlap: it enlarges the image by its kernel's size.
    pub(crate) fn enlarge(
        &mut self,
        name: &str,
        x: Signal,
        channels: usize,
        factor: usize,
    ) -> Signal {
        let shape = Convolution::new(channels, factor).stride(factor).padding(0).bias();
        let weight = [x.channels, channels, factor, factor];
        // Windows that do not overlap give each pixel one product per input channel.
        let spread = unit_spread(x.channels as f32, x.energy);
        self.convolve_with("ConvTranspose", name, x, shape, &weight, spread)
    }

    fn convolve_with(
        &mut self,
        operator: &str,
        name: &str,
        x: Signal,
        shape: Convolution,
        weight: &[usize],
        spread: Spread,
    ) -> Signal {
        let mut inputs = vec![x.id, self.parameter(&format!("{name}.weight"), weight, spread)];
        if shape.bias {
            let bias = format!("{name}.bias");
            inputs.push(self.parameter(&bias, &[shape.channels], Spread::Normal(0.1)));
        }
        let id = self.op_with(operator, &inputs, shape.attributes());
        Signal { id, channels: shape.channels, energy: 1.0 }
    }
}

/// The spread of weights that gives sums of `terms` products mean square 1.
pub(crate) fn unit_spread(terms: f32, energy: f32) -> Spread {
    Spread::Normal((1.0 / (terms * energy)).sqrt())
}
