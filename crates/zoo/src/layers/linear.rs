//! Fully connected layers, in the two ways that exporters write them.

use weft_ir::Attributes;

use crate::layers::convolution::unit_spread;
use crate::network::{Network, Signal};
use crate::weights::Spread;

impl Network {
    /// A layer on a matrix: `Gemm` with the weight as the framework stores it, one row per output.
    pub(crate) fn classify(&mut self, name: &str, x: Signal, outputs: usize) -> Signal {
        let spread = unit_spread(x.channels as f32, x.energy);
        let weight = self.parameter(&format!("{name}.weight"), &[outputs, x.channels], spread);
        let bias = self.parameter(&format!("{name}.bias"), &[outputs], Spread::Normal(0.1));
        let attributes =
            Attributes::new().with("alpha", 1f32).with("beta", 1f32).with("transB", 1i64);
        let id = self.op_with("Gemm", &[x.id, weight, bias], attributes);
        Signal { id, channels: outputs, energy: 1.0 }
    }

    /// A layer on the last axis of whatever rank: `MatMul` and `Add`. `gain` scales what comes out.
    pub(crate) fn project(&mut self, name: &str, x: Signal, outputs: usize, gain: f32) -> Signal {
        let spread = unit_spread(x.channels as f32, x.energy / (gain * gain));
        let weight = self.parameter(&format!("{name}.weight"), &[x.channels, outputs], spread);
        let bias = self.parameter(&format!("{name}.bias"), &[outputs], Spread::Normal(0.1 * gain));
        let product = self.op("MatMul", &[x.id, weight]);
        let id = self.op("Add", &[bias, product]);
        Signal { id, channels: outputs, energy: gain * gain }
    }
}
