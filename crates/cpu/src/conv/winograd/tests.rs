use proptest::prelude::*;

use super::*;
use crate::conv::testing::Case;
use crate::kernels::testing::{assert_close, run_on, supported_isas};

const TILES: [WinogradTile; 2] = [WinogradTile::Two, WinogradTile::Four];

fn check(case: &Case, tile: WinogradTile, tolerance: f64) {
    let channels = [case.problem.channels_in, case.problem.channels_out];
    let parameters = WinogradParameters::default();
    let expected = case.expected();
    for isa in supported_isas() {
        let weights =
            WinogradWeights::pack(isa, tile, parameters, channels, &case.weights).unwrap();
        let (weights, bias) = (Arc::new(weights), case.bias.as_deref());
        let conv =
            WinogradConv::new(&case.problem, weights, parameters, bias, case.activation).unwrap();
        let output = run_on(isa, expected.len(), |worker, output| {
            // SAFETY: every worker of the pool runs this.
            unsafe { conv.run(worker, &case.input, case.residual.as_deref(), output) };
        });
        let context = format!("{isa:?} {tile:?} {:?}", case.problem);
        assert_close(&output, &expected, tolerance, &context);
    }
}

fn square(channels_in: usize, channels_out: usize, size: usize) -> ConvProblem {
    ConvProblem {
        batch: 1,
        height: size,
        width: size,
        channels_in,
        channels_out,
        kernel: [3, 3],
        strides: [1, 1],
        dilations: [1, 1],
        pads_begin: [1, 1],
        pads_end: [1, 1],
        group: 1,
    }
}

#[test]
fn deep_sums_stay_accurate() {
    check(&Case::new(square(512, 48, 8), false, Activation::None), WinogradTile::Two, 2e-6);
    check(&Case::new(square(512, 48, 8), false, Activation::None), WinogradTile::Four, 1e-5);
}

#[test]
fn many_tiles_and_channel_blocks() {
    for tile in TILES {
        check(&Case::new(square(40, 136, 13), true, Activation::Relu), tile, 1e-5);
        check(&Case::new(square(16, 72, 30), true, Activation::Silu), tile, 1e-5);
    }
}

#[test]
fn other_kernels_are_refused() {
    let problem = ConvProblem { strides: [2, 1], ..square(2, 3, 8) };
    for tile in TILES {
        let (isa, parameters) = (crate::Isa::Portable, WinogradParameters::default());
        let weights = WinogradWeights::pack(isa, tile, parameters, [2, 3], &[0.0; 54]).unwrap();
        let weights = Arc::new(weights);
        let error =
            WinogradConv::new(&problem, weights, parameters, None, Activation::None).unwrap_err();
        assert_eq!(error, ConvError::Unsupported { algorithm: "Winograd convolution" });
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn odd_sizes(
        batch in 1usize..3,
        size in [1usize..20, 1usize..20],
        channels in [1usize..40, 1usize..70],
        pads_begin in [0usize..4, 0usize..4],
        pads_end in [0usize..4, 0usize..4],
        is_fused: bool,
        is_large: bool,
    ) {
        let problem = ConvProblem {
            batch, height: size[0], width: size[1], pads_begin, pads_end,
            ..square(channels[0], channels[1], 1)
        };
        prop_assume!(problem.output_size().is_ok());
        let activation = if is_fused { Activation::HardSwish } else { Activation::None };
        check(&Case::new(problem, is_fused, activation), TILES[usize::from(is_large)], 1e-5);
    }
}
