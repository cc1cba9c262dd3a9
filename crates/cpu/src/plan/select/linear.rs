//! Products with a constant matrix.

use weft_ir::operators::fused::FusedMatMul;

use crate::Worker;
use crate::gemm::{GemmParameters, Linear, PackedB, WeightMatrix, WeightOrder};
use crate::plan::kernel::{Call, Kernel};
use crate::plan::site::{Selected, Site};
use crate::tuning::{Candidate, FusedOperator, Product};

struct ConstantProduct {
    parameters: GemmParameters,
    linear: Linear,
}

/// A [`FusedMatMul`] whose matrix and bias are constants.
pub(super) fn fused_operator(site: &Site<'_>) -> Option<FusedOperator> {
    let operator = site.operator::<FusedMatMul>()?;
    let left = site.dense_input(0)?;
    let output = site.dense_output()?;
    let (depth, columns) = operator.matrix_size(site.constant(1)?.shape())?;
    site.constant_f32s(1)?;
    if site.has_input(2) {
        site.constant_f32s(2)?;
    }
    if operator.epilogue.has_residual {
        site.dense_input(3)?;
    }
    debug_assert_eq!(output.last(), Some(&columns));
    let rows = left[..left.len() - 1].iter().product();
    Some(FusedOperator {
        product: Product::Linear { rows, depth, columns },
        has_bias: site.has_input(2),
        has_residual: operator.epilogue.has_residual,
        activation: operator.epilogue.activation.into(),
    })
}

/// The kernel for it, with the chosen parameters or the usual ones.
pub(super) fn select(site: &Site<'_>) -> Option<Selected> {
    let operator = fused_operator(site)?;
    let Product::Linear { rows, depth, columns } = operator.product else { return None };
    let data = site.constant_f32s(1)?;
    let bias = site.constant_f32s(2).map(<[f32]>::to_vec);
    let transpose_right = site.operator::<FusedMatMul>()?.transpose_right;
    let order = if transpose_right { WeightOrder::NByK } else { WeightOrder::KByN };
    let chosen = site.chosen(&fused_operator(&site.as_decided())?);
    let parameters = chosen.and_then(|name| Candidate::linear_named(&name)).unwrap_or_default();
    let width = parameters.width;
    let packing = format!("matrix {depth}x{columns} {order:?} {width:?} {}", site.isa.name());
    let matrix = site.weights.get_or_pack(data, packing, || {
        PackedB::pack(site.isa, width, &WeightMatrix { data, depth, columns, order }).ok()
    })?;
    let reads = if operator.has_residual { vec![0, 3] } else { vec![0] };
    let (limits, activation) = (parameters.limits, operator.activation);
    let linear = Linear { matrix, limits, rows, bias, activation };
    Selected::new(ConstantProduct { parameters, linear }, reads)
}

impl Kernel for ConstantProduct {
    fn name(&self) -> String {
        match self.parameters == GemmParameters::default() {
            true => "gemm".into(),
            false => Candidate::Linear(self.parameters).to_string(),
        }
    }

    fn run(&self, worker: &Worker<'_>, call: &Call<'_>) {
        // SAFETY: every worker of the run makes this call, and the step is the only writer of its output.
        unsafe { self.linear.run(worker, call.input(0), call.optional_input(1), call.output()) }
    }

    fn weight_bytes(&self) -> usize {
        self.linear.matrix.bytes()
    }
}
