//! Two-dimensional convolutions with constant weights.

use weft_ir::operators::convolution::Conv;
use weft_ir::operators::fused::{Epilogue, FusedConv};

use crate::Worker;
use crate::conv::{ConvAlgorithm, ConvProblem, ConvWeights, PackedConv};
use crate::plan::kernel::{Call, Kernel};
use crate::plan::site::{Selected, Site};

struct Convolution {
    algorithm: ConvAlgorithm,
    conv: PackedConv,
}

/// A channels-last convolution, fused or plain.
pub(super) fn select(site: &Site<'_>) -> Option<Selected> {
    let (conv, epilogue) = match (site.operator::<Conv>(), site.operator::<FusedConv>()) {
        (Some(conv), _) => (conv, Epilogue::default()),
        (_, Some(fused)) => (&fused.conv, fused.epilogue),
        _ => return None,
    };
    let weights = site.constant_f32s(1)?;
    let problem = problem(site, conv)?;
    let bias = match site.has_input(2) {
        true => Some(site.constant_f32s(2)?),
        false => None,
    };
    let algorithm = ConvAlgorithm::choose(&problem, site.isa, site.workers).ok()?;
    let packed =
        site.weights.get_or_pack(weights, algorithm.packing(&problem, site.isa), || {
            ConvWeights::pack(algorithm, &problem, weights, site.isa).ok()
        })?;
    let conv = PackedConv::new(&problem, &packed, bias, epilogue.activation.into()).ok()?;
    let mut reads = vec![0];
    if epilogue.has_residual {
        site.dense_input(3)?;
        reads.push(3);
    }
    Selected::new(Convolution { algorithm, conv }, reads)
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
        self.algorithm.name().into()
    }

    fn run(&self, worker: &Worker<'_>, call: &Call<'_>) {
        // SAFETY: every worker of the run makes this call, and the step is the only writer of its output.
        unsafe { self.conv.run(worker, call.input(0), call.optional_input(1), call.output()) }
    }

    fn weight_bytes(&self) -> usize {
        self.conv.weight_bytes()
    }
}
