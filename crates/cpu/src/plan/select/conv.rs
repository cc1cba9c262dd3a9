//! Two-dimensional convolutions with constant weights.

use weft_ir::operators::convolution::Conv;
use weft_ir::operators::fused::{Epilogue, FusedConv};

use crate::Worker;
use crate::conv::{ConvCandidate, ConvProblem, ConvWeights, PackedConv};
use crate::plan::kernel::{Call, Kernel};
use crate::plan::site::{Selected, Site};
use crate::tuning::{FusedOperator, Product};

struct Convolution {
    candidate: ConvCandidate,
    is_usual: bool,
    conv: PackedConv,
}

/// A channels-last convolution, fused or plain, with constant weights.
pub(super) fn fused_operator(site: &Site<'_>) -> Option<FusedOperator> {
    let (conv, epilogue) = match (site.operator::<Conv>(), site.operator::<FusedConv>()) {
        (Some(conv), _) => (conv, Epilogue::default()),
        (_, Some(fused)) => (&fused.conv, fused.epilogue),
        _ => return None,
    };
    site.constant_f32s(1)?;
    let problem = problem(site, conv)?;
    if site.has_input(2) {
        site.constant_f32s(2)?;
    }
    if epilogue.has_residual {
        site.dense_input(3)?;
    }
    Some(FusedOperator {
        product: Product::Conv(problem),
        has_bias: site.has_input(2),
        has_residual: epilogue.has_residual,
        activation: epilogue.activation.into(),
    })
}

/// The kernel for it: the chosen one, or the one that should be fastest.
pub(super) fn select(site: &Site<'_>) -> Option<Selected> {
    let operator = fused_operator(site)?;
    let Product::Conv(problem) = operator.product else { return None };
    let weights = site.constant_f32s(1)?;
    let bias = site.constant_f32s(2);
    let decided = fused_operator(&site.as_decided())?;
    let Product::Conv(deciding) = decided.product else { return None };
    let usual = ConvCandidate::choose(&deciding, site.isa, site.workers).ok()?;
    let chosen = site.chosen(&decided);
    let candidate = chosen.and_then(|name| ConvCandidate::named(&name, &deciding)).unwrap_or(usual);
    let packing = candidate.packing(&problem, site.isa);
    let packed = site.weights.get_or_pack(weights, packing, || {
        ConvWeights::pack(&candidate, &problem, weights, site.isa).ok()
    })?;
    let conv = PackedConv::new(&candidate, &problem, &packed, bias, operator.activation).ok()?;
    let reads = if operator.has_residual { vec![0, 3] } else { vec![0] };
    Selected::new(Convolution { candidate, is_usual: candidate == usual, conv }, reads)
}

fn problem(site: &Site<'_>, conv: &Conv) -> Option<ConvProblem> {
    let input = site.dense_input(0)?;
    let output = site.dense_output()?;
    let weights = site.constant(1)?.shape();
    let axes = conv.axes(&input, weights).ok()?;
    let (&[batch, height, width, channels_in], &[channels_out, ..]) = (&input[..], weights) else {
        return None;
    };
    let [rows, columns] = &axes[..] else { return None };
    let pair = |read: fn(&weft_ir::operators::convolution::AxisWindow) -> usize| {
        [read(rows), read(columns)]
    };
    let problem = ConvProblem {
        batch,
        height,
        width,
        channels_in,
        channels_out,
        kernel: pair(|axis| axis.kernel),
        strides: pair(|axis| axis.stride),
        dilations: pair(|axis| axis.dilation),
        pads_begin: pair(|axis| axis.pad_begin),
        pads_end: pair(|axis| axis.pad_end),
        group: conv.group,
    };
    let agrees = problem
        .output_size()
        .is_ok_and(|[rows, columns]| output == [batch, rows, columns, channels_out]);
    (conv.channels_last && agrees).then_some(problem)
}

impl Kernel for Convolution {
    fn name(&self) -> String {
        match self.is_usual {
            true => self.candidate.algorithm().name().into(),
            false => self.candidate.to_string(),
        }
    }

    fn run(&self, worker: &Worker<'_>, call: &Call<'_>) {
        // SAFETY: every worker of the run makes this call, and the step is the only writer of its output.
        unsafe { self.conv.run(worker, call.input(0), call.optional_input(1), call.output()) }
    }

    fn weight_bytes(&self) -> usize {
        self.conv.weight_bytes()
    }
}
