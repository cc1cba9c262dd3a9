//! Batch and layer normalisation.

use weft_ir::Attributes;

use crate::network::{Network, Signal};
use crate::weights::Spread;

impl Network {
    /// Batch normalisation as a node of its own, with statistics near those of a signal of mean square 1.
    /// `gain` scales what comes out: below 1 at the end of residual branches, so that their sum stays bounded.
    pub(crate) fn batch_norm(&mut self, name: &str, x: Signal, epsilon: f32, gain: f32) -> Signal {
        let shape = [x.channels];
        let inputs = [
            x.id,
            self.parameter(
                &format!("{name}.weight"),
                &shape,
                Spread::Uniform(0.8 * gain, 1.2 * gain),
            ),
            self.parameter(&format!("{name}.bias"), &shape, Spread::Normal(0.1 * gain)),
            self.statistic(&format!("{name}.running_mean"), &shape, Spread::Normal(0.1)),
            self.statistic(&format!("{name}.running_var"), &shape, Spread::Uniform(0.8, 1.2)),
        ];
        let attributes = Attributes::new().with("epsilon", epsilon).with("momentum", 0.9f32);
        let id = self.op_with("BatchNormalization", &inputs, attributes);
        x.then(id, x.energy * gain * gain)
    }

    fn layer_norm_parameters(&mut self, name: &str, x: Signal) -> [weft_ir::ValueId; 2] {
        let shape = [x.channels];
        let weight = self.parameter(&format!("{name}.weight"), &shape, Spread::Uniform(0.8, 1.2));
        [weight, self.parameter(&format!("{name}.bias"), &shape, Spread::Normal(0.1))]
    }

    /// Layer normalisation over the last axis as one node.
    pub(crate) fn layer_norm(&mut self, name: &str, x: Signal, epsilon: f32) -> Signal {
        let [weight, bias] = self.layer_norm_parameters(name, x);
        let attributes = Attributes::new().with("axis", -1i64).with("epsilon", epsilon);
        x.then(self.op_with("LayerNormalization", &[x.id, weight, bias], attributes), 1.0)
    }

    /// Layer normalisation over the last axis spelled out, as exporters did before it was an operator.
    pub(crate) fn layer_norm_primitives(&mut self, name: &str, x: Signal, epsilon: f32) -> Signal {
        let [weight, bias] = self.layer_norm_parameters(name, x);
        let last_axis = || Attributes::new().with("axes", vec![-1]).with("keepdims", 1i64);
        let mean = self.op_with("ReduceMean", &[x.id], last_axis());
        let centred = self.op("Sub", &[x.id, mean]);
        let two = self.scalar(2f32);
        let squared = self.op("Pow", &[centred, two]);
        let variance = self.op_with("ReduceMean", &[squared], last_axis());
        let epsilon = self.scalar(epsilon);
        let shifted = self.op("Add", &[variance, epsilon]);
        let deviation = self.op("Sqrt", &[shifted]);
        let normalised = self.op("Div", &[centred, deviation]);
        let scaled = self.op("Mul", &[normalised, weight]);
        x.then(self.op("Add", &[scaled, bias]), 1.0)
    }
}
