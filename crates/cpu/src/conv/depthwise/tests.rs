use proptest::prelude::*;

use super::*;
use crate::conv::testing::Case;
use crate::kernels::testing::{assert_close, run_on, supported_isas};

fn check(case: &Case) {
    let ConvProblem { channels_in, kernel, .. } = case.problem;
    let weights = DepthwiseWeights::pack(channels_in, kernel, &case.weights).unwrap();
    let (weights, parameters) = (Arc::new(weights), DepthwiseParameters::default());
    let bias = case.bias.as_deref();
    let conv =
        DepthwiseConv::new(&case.problem, weights, parameters, bias, case.activation).unwrap();
    let expected = case.expected();
    for isa in supported_isas() {
        let output = run_on(isa, expected.len(), |worker, output| {
            // SAFETY: every worker of the pool runs this.
            unsafe { conv.run(worker, &case.input, case.residual.as_deref(), output) };
        });
        assert_close(&output, &expected, 1e-5, &format!("{isa:?} {:?}", case.problem));
    }
}

fn depthwise(channels: usize, size: [usize; 2], kernel: usize, stride: usize) -> ConvProblem {
    ConvProblem {
        batch: 1,
        height: size[0],
        width: size[1],
        channels_in: channels,
        channels_out: channels,
        kernel: [kernel, kernel],
        strides: [stride, stride],
        dilations: [1, 1],
        pads_begin: [kernel / 2, kernel / 2],
        pads_end: [kernel / 2, kernel / 2],
        group: channels,
    }
}

#[test]
fn layers_of_mobile_networks() {
    let cases = [
        (depthwise(32, [16, 28], 3, 1), Activation::Clip { low: 0.0, high: 6.0 }),
        (depthwise(24, [15, 29], 3, 2), Activation::Relu),
        (depthwise(184, [14, 14], 3, 1), Activation::HardSwish),
        (depthwise(72, [28, 28], 5, 2), Activation::None),
        (depthwise(240, [7, 7], 5, 1), Activation::Silu),
    ];
    for (problem, activation) in cases {
        check(&Case::new(problem, true, activation));
        check(&Case::new(problem, false, activation));
    }
}

#[test]
fn padding_without_any_pixel_gives_the_bias() {
    let problem =
        ConvProblem { pads_begin: [5, 5], pads_end: [4, 4], ..depthwise(5, [2, 2], 3, 1) };
    check(&Case::new(problem, true, Activation::None));
}

#[test]
fn another_grouping_is_refused() {
    let problem = ConvProblem { group: 2, ..depthwise(4, [8, 8], 3, 1) };
    let weights = Arc::new(DepthwiseWeights::pack(4, [3, 3], &[0.0; 36]).unwrap());
    let error = DepthwiseConv::new(
        &problem,
        weights,
        DepthwiseParameters::default(),
        None,
        Activation::None,
    )
    .unwrap_err();
    assert_eq!(error, ConvError::Unsupported { algorithm: "depthwise convolution" });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn odd_sizes(
        batch in 1usize..3,
        size in [1usize..20, 1usize..20],
        channels in 1usize..70,
        kernel in [1usize..6, 1usize..8],
        strides in [1usize..4, 1usize..4],
        dilations in [1usize..3, 1usize..3],
        pads_begin in [0usize..5, 0usize..5],
        pads_end in [0usize..5, 0usize..5],
        is_fused: bool,
    ) {
        let problem = ConvProblem {
            batch, height: size[0], width: size[1], channels_in: channels, channels_out: channels,
            kernel, strides, dilations, pads_begin, pads_end, group: channels,
        };
        prop_assume!(problem.output_size().is_ok());
        check(&Case::new(problem, is_fused, Activation::Relu));
    }
}
