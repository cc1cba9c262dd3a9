use proptest::prelude::*;

use super::*;
use crate::Activation;
use crate::conv::testing::Case;
use crate::conv::{ConvWeights, PackedConv};
use crate::kernels::testing::{assert_close, run_on, supported_isas};

const LAYER: ConvProblem = ConvProblem {
    batch: 1,
    height: 28,
    width: 28,
    channels_in: 128,
    channels_out: 128,
    kernel: [3, 3],
    strides: [1, 1],
    dilations: [1, 1],
    pads_begin: [1, 1],
    pads_end: [1, 1],
    group: 1,
};

#[test]
fn the_first_candidate_is_the_one_taken_unasked() {
    for (problem, isa) in [LAYER, ConvProblem { group: 128, ..LAYER }]
        .into_iter()
        .flat_map(|problem| Isa::ALL.map(|isa| (problem, isa)))
    {
        for workers in 1..=3 {
            let candidates = ConvCandidate::candidates(&problem, isa, workers).unwrap();
            let first = ConvCandidate::choose(&problem, isa, workers).unwrap();
            assert_eq!(candidates[0], first);
            assert!((10..=200).contains(&candidates.len()), "{}", candidates.len());
            for (index, candidate) in candidates.iter().enumerate() {
                let name = candidate.to_string();
                assert_eq!(ConvCandidate::named(&name, &problem), Some(*candidate));
                assert!(!candidates[..index].contains(candidate));
            }
        }
    }
}

#[test]
fn names_of_other_problems_and_of_nothing_are_not_found() {
    let strided = ConvProblem { strides: [2, 2], ..LAYER };
    let name = "winograd_4x4 tiles 48 channels 64";
    assert!(ConvCandidate::named(name, &LAYER).is_some());
    assert_eq!(ConvCandidate::named(name, &strided), None);
    let large = ConvProblem { channels_in: 512, channels_out: 512, ..LAYER };
    assert_eq!(ConvCandidate::named(name, &large), None, "its weights take too much memory");
    for name in ["", "winograd_4x4", "winograd_4x4 tiles 49 channels 64", "gemm", "depthwise "] {
        assert_eq!(ConvCandidate::named(name, &LAYER), None, "{name}");
    }
}

#[test]
fn forms_of_weights_that_differ_have_names_that_differ() {
    let candidates = ConvCandidate::candidates(&LAYER, Isa::Portable, 1).unwrap();
    let weights = Case::new(LAYER, false, Activation::None).weights;
    let mut forms: Vec<(String, usize)> = Vec::new();
    for candidate in candidates {
        let packed = ConvWeights::pack(&candidate, &LAYER, &weights, Isa::Portable).unwrap();
        // A convolution takes weights that were packed for it, under whatever candidate of the same name.
        let packing = candidate.packing(&LAYER, Isa::Portable);
        PackedConv::new(&candidate, &LAYER, &packed, None, Activation::None).unwrap();
        match forms.iter().find(|(known, _)| *known == packing) {
            Some((_, bytes)) => assert_eq!(*bytes, packed.bytes()),
            None => forms.push((packing, packed.bytes())),
        }
    }
    assert!(forms.len() >= 5, "{forms:?}");
}

fn check(case: &Case, pick: usize) {
    let expected = case.expected();
    for isa in supported_isas() {
        let candidates = ConvCandidate::candidates(&case.problem, isa, 1 + pick % 3).unwrap();
        let candidate = candidates[pick % candidates.len()];
        let weights = ConvWeights::pack(&candidate, &case.problem, &case.weights, isa).unwrap();
        let bias = case.bias.as_deref();
        let conv =
            PackedConv::new(&candidate, &case.problem, &weights, bias, case.activation).unwrap();
        let output = run_on(isa, expected.len(), |worker, output| {
            // SAFETY: every worker of the pool runs this.
            unsafe { conv.run(worker, &case.input, case.residual.as_deref(), output) };
        });
        let context = format!("{candidate} {isa:?} {:?}", case.problem);
        assert_close(&output, &expected, 1e-5, &context);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]
    #[test]
    fn every_candidate_computes_the_same_on_any_number_of_workers(
        batch in 1usize..3,
        size in [1usize..24, 1usize..24],
        channels in [1usize..90, 1usize..140],
        is_grouped: bool,
        is_depthwise: bool,
        kernel in prop::sample::select(vec![[1, 1], [3, 3], [3, 3], [5, 3]]),
        stride in 1usize..3,
        pad in 0usize..3,
        is_fused: bool,
        pick: usize,
    ) {
        let [channels_in, channels_out] = channels;
        let (channels_in, channels_out, group) = match (is_depthwise, is_grouped) {
            (true, _) => (channels_in, channels_in, channels_in),
            (false, true) => (2 * channels_in, 2 * channels_out, 2),
            (false, false) => (channels_in, channels_out, 1),
        };
        let problem = ConvProblem {
            batch, height: size[0], width: size[1], channels_in, channels_out, kernel,
            strides: [stride, stride], dilations: [1, 1],
            pads_begin: [pad, pad], pads_end: [pad, pad], group,
        };
        prop_assume!(problem.output_size().is_ok());
        let activation = if is_fused { Activation::Relu } else { Activation::None };
        check(&Case::new(problem, is_fused, activation), pick);
    }
}
