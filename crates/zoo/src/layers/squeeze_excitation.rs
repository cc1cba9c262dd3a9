//! Squeeze and excitation: channels weighed by what the whole image holds.

use crate::layers::Convolution;
use crate::network::{Network, Signal};

/// How the channels' means are written.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Mean {
    Pool,
    Reduce,
}

/// What squashes the channels' weights into 0 to 1, and what precedes it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Gate {
    /// SiLU, then a sigmoid.
    Sigmoid,
    /// ReLU, then a hard sigmoid.
    HardSigmoid,
    /// ReLU, then a hard sigmoid spelled out.
    HardSigmoidPrimitives,
}

/// The mean square of gates, which lie around one half.
const GATED: f32 = 0.28;

impl Network {
    pub(crate) fn squeeze_excitation(
        &mut self,
        name: &str,
        x: Signal,
        squeezed: usize,
        mean: Mean,
        gate: Gate,
    ) -> Signal {
        let pooled = match mean {
            Mean::Pool => self.global_average_pool(x),
            Mean::Reduce => self.mean_over_pixels(x, true),
        };
        let first = Convolution::new(squeezed, 1).bias();
        let reduced = self.convolve(&format!("{name}.fc1"), pooled, first);
        let active = match gate {
            Gate::Sigmoid => self.silu(reduced),
            Gate::HardSigmoid | Gate::HardSigmoidPrimitives => self.relu(reduced),
        };
        let second = Convolution::new(x.channels, 1).bias();
        let expanded = self.convolve(&format!("{name}.fc2"), active, second);
        let weights = match gate {
            Gate::Sigmoid => self.sigmoid(expanded.id),
            Gate::HardSigmoid => self.hard_sigmoid(expanded.id),
            Gate::HardSigmoidPrimitives => self.hard_sigmoid_primitives(expanded.id),
        };
        x.then(self.op("Mul", &[weights, x.id]), x.energy * GATED)
    }
}
