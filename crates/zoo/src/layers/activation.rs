//! Activations, as one node or spelled out, with what each does to a signal's energy.

use weft_ir::{Attributes, ValueId};

use crate::network::{Network, Signal};

/// Mean squares of what these give on a normal distribution of mean square 1.
const RECTIFIED: f32 = 0.5;
const SILU: f32 = 0.36;
const HARD_SWISH: f32 = 0.33;
const GELU: f32 = 0.43;

impl Network {
    pub(crate) fn relu(&mut self, x: Signal) -> Signal {
        x.then(self.op("Relu", &[x.id]), x.energy * RECTIFIED)
    }

    /// ReLU cut off at 6, as exporters write it.
    pub(crate) fn relu6(&mut self, x: Signal) -> Signal {
        x.then(self.clip_to_six(x.id), x.energy * RECTIFIED)
    }

    fn clip_to_six(&mut self, x: ValueId) -> ValueId {
        let (low, high) = (self.scalar(0f32), self.scalar(6f32));
        self.op("Clip", &[x, low, high])
    }

    pub(crate) fn sigmoid(&mut self, x: ValueId) -> ValueId {
        self.op("Sigmoid", &[x])
    }

    /// x * sigmoid(x).
    pub(crate) fn silu(&mut self, x: Signal) -> Signal {
        let gate = self.sigmoid(x.id);
        x.then(self.op("Mul", &[x.id, gate]), x.energy * SILU)
    }

    pub(crate) fn hard_swish(&mut self, x: Signal) -> Signal {
        x.then(self.op("HardSwish", &[x.id]), x.energy * HARD_SWISH)
    }

    /// x * clip(x + 3, 0, 6) / 6.
    pub(crate) fn hard_swish_primitives(&mut self, x: Signal) -> Signal {
        let clipped = self.clip_shifted(x.id);
        let product = self.op("Mul", &[x.id, clipped]);
        let six = self.scalar(6f32);
        x.then(self.op("Div", &[product, six]), x.energy * HARD_SWISH)
    }

    pub(crate) fn hard_sigmoid(&mut self, x: ValueId) -> ValueId {
        let attributes = Attributes::new().with("alpha", 1f32 / 6.0).with("beta", 0.5f32);
        self.op_with("HardSigmoid", &[x], attributes)
    }

    /// clip(x + 3, 0, 6) / 6.
    pub(crate) fn hard_sigmoid_primitives(&mut self, x: ValueId) -> ValueId {
        let clipped = self.clip_shifted(x);
        let six = self.scalar(6f32);
        self.op("Div", &[clipped, six])
    }

    fn clip_shifted(&mut self, x: ValueId) -> ValueId {
        let three = self.scalar(3f32);
        let shifted = self.op("Add", &[x, three]);
        self.clip_to_six(shifted)
    }

    /// x * (1 + erf(x / sqrt 2)) * 0.5.
    pub(crate) fn gelu(&mut self, x: Signal) -> Signal {
        let root = self.scalar(std::f32::consts::SQRT_2);
        let scaled = self.op("Div", &[x.id, root]);
        let erf = self.op("Erf", &[scaled]);
        let one = self.scalar(1f32);
        let shifted = self.op("Add", &[erf, one]);
        let product = self.op("Mul", &[x.id, shifted]);
        let half = self.scalar(0.5f32);
        x.then(self.op("Mul", &[product, half]), x.energy * GELU)
    }

    /// 0.5 * x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3))).
    pub(crate) fn gelu_tanh(&mut self, x: Signal) -> Signal {
        let half = self.scalar(0.5f32);
        let halved = self.op("Mul", &[x.id, half]);
        let three = self.scalar(3f32);
        let cubed = self.op("Pow", &[x.id, three]);
        let small = self.scalar(0.044_715f32);
        let correction = self.op("Mul", &[cubed, small]);
        let corrected = self.op("Add", &[x.id, correction]);
        let root = self.scalar((2.0 / std::f32::consts::PI).sqrt());
        let scaled = self.op("Mul", &[corrected, root]);
        let tanh = self.op("Tanh", &[scaled]);
        let one = self.scalar(1f32);
        let shifted = self.op("Add", &[tanh, one]);
        x.then(self.op("Mul", &[halved, shifted]), x.energy * GELU)
    }
}
