use proptest::prelude::*;

use super::*;
use crate::conv::testing::Case;
use crate::kernels::testing::{assert_close, run_on, supported_isas};

fn check(case: &Case) {
    let expected = case.expected();
    for isa in supported_isas() {
        let width = PanelWidth::Full;
        let weights = ImplicitGemmWeights::pack(isa, width, &case.problem, &case.weights).unwrap();
        let (bias, limits) = (case.bias.as_deref(), TileLimits::default());
        let weights = Arc::new(weights);
        let conv =
            ImplicitGemmConv::new(&case.problem, weights, limits, bias, case.activation).unwrap();
        let output = run_on(isa, expected.len(), |worker, output| {
            // SAFETY: every worker of the pool runs this.
            unsafe { conv.run(worker, &case.input, case.residual.as_deref(), output) };
        });
        assert_close(&output, &expected, 1e-5, &format!("{isa:?} {:?}", case.problem));
    }
}

fn square(
    channels: [usize; 2],
    size: usize,
    kernel: usize,
    stride: usize,
    pad: usize,
) -> ConvProblem {
    ConvProblem {
        batch: 1,
        height: size,
        width: size,
        channels_in: channels[0],
        channels_out: channels[1],
        kernel: [kernel, kernel],
        strides: [stride, stride],
        dilations: [1, 1],
        pads_begin: [pad, pad],
        pads_end: [pad, pad],
        group: 1,
    }
}

#[test]
fn first_layers_pointwise_layers_and_groups() {
    let shuffled = ConvProblem { group: 4, ..square([40, 24], 9, 1, 1, 0) };
    let next = ConvProblem { group: 4, ..square([16, 32], 9, 3, 2, 1) };
    let problems = [
        square([3, 64], 31, 7, 2, 3),
        square([3, 24], 17, 3, 2, 1),
        square([3, 33], 40, 11, 4, 2),
        square([24, 72], 11, 1, 1, 0),
        square([24, 72], 11, 1, 2, 0),
        square([130, 40], 9, 3, 2, 1),
        shuffled,
        next,
    ];
    for problem in problems {
        check(&Case::new(problem, true, Activation::Relu));
        check(&Case::new(problem, false, Activation::HardSwish));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn odd_sizes(
        batch in 1usize..3,
        size in [1usize..14, 1usize..14],
        channels in [1usize..9, 1usize..20],
        group in 1usize..4,
        kernel in [1usize..5, 1usize..6],
        strides in [1usize..4, 1usize..4],
        dilations in [1usize..3, 1usize..3],
        pads_begin in [0usize..5, 0usize..5],
        pads_end in [0usize..5, 0usize..5],
        is_fused: bool,
    ) {
        let problem = ConvProblem {
            batch, height: size[0], width: size[1],
            channels_in: group * channels[0], channels_out: group * channels[1],
            kernel, strides, dilations, pads_begin, pads_end, group,
        };
        prop_assume!(problem.output_size().is_ok());
        check(&Case::new(problem, is_fused, Activation::None));
    }
}
