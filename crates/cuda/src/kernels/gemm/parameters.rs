//! The kernel's parameters as it declares them.

use bytemuck::{Pod, Zeroable};

use super::epilogue::epilogue_activation;
use super::problem::{GemmProblem, Left};
use crate::kernels::activation::ActivationParameters;
use crate::kernels::divider::Divider;

/// The structure `Problem` of `gemm.cu`.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub(super) struct Parameters {
    sizes: [i32; 3],
    strides: [i32; 3],
    height: i32,
    width: i32,
    window_strides: [i32; 2],
    pads: [i32; 2],
    dilations: [i32; 2],
    by_output_width: Divider,
    by_output_area: Divider,
    by_channels: Divider,
    steps: i32,
    steps_per_split: i32,
    /// The kernel's numbers of 64 bits are aligned to their size.
    padding: i32,
    stack_steps: [i64; 3],
    activation: ActivationParameters,
}

impl Parameters {
    pub(super) fn new(problem: &GemmProblem, splits: usize) -> Self {
        let steps = problem.steps();
        let small = |value: usize| i32::try_from(value).expect("sizes were checked");
        let pair = |values: [usize; 2]| values.map(small);
        let (left_stride, image) = match problem.left {
            Left::Matrix { stride } => (stride, None),
            Left::Image(image) => (0, Some(image)),
        };
        let of = |read: fn(&super::Image) -> usize| image.as_ref().map_or(0, read);
        let pairs = |read: fn(&super::Image) -> [usize; 2]| image.as_ref().map_or([0; 2], read);
        let output = pairs(|image| image.output);
        Self {
            sizes: [problem.m, problem.n, problem.k].map(small),
            strides: [left_stride, problem.right.stride, problem.n].map(small),
            height: small(of(|image| image.size[0])),
            width: small(of(|image| image.size[1])),
            window_strides: pair(pairs(|image| image.strides)),
            pads: pair(pairs(|image| image.pads_begin)),
            dilations: pair(pairs(|image| image.dilations)),
            by_output_width: Divider::new(output[1].max(1)),
            by_output_area: Divider::new((output[0] * output[1]).max(1)),
            by_channels: Divider::new(of(|image| image.channels).max(1)),
            steps: small(steps),
            steps_per_split: small(steps.div_ceil(splits)),
            padding: 0,
            stack_steps: problem.stack_steps.map(|step| step as i64),
            activation: epilogue_activation(problem.activation).1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_layout_is_the_kernels() {
        // 14 integers, 3 dividers, 3 integers, then three 64-bit steps and two floats.
        assert_eq!(size_of::<Parameters>(), 4 * 14 + 12 * 3 + 4 * 3 + 8 * 3 + 8);
        assert_eq!(std::mem::offset_of!(Parameters, stack_steps), 104);
    }
}
