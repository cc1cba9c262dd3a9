//! Products with a constant matrix.

use std::sync::Arc;

use weft_ir::operators::fused::FusedMatMul;

use crate::gemm::{Epilogue, PackedB, Residual, Rows, WeightMatrix, WeightOrder, gemm};
use crate::plan::kernel::{Call, Kernel};
use crate::plan::site::{Selected, Site};
use crate::{Activation, Worker};

struct Linear {
    matrix: Arc<PackedB>,
    rows: usize,
    bias: Option<Vec<f32>>,
    activation: Activation,
}

/// A [`FusedMatMul`] whose matrix and bias are constants.
pub(super) fn select(site: &Site<'_>) -> Option<Selected> {
    let operator = site.operator::<FusedMatMul>()?;
    let left = site.dense_input(0)?;
    let output = site.dense_output()?;
    let (depth, columns) = operator.matrix_size(site.constant(1)?.shape())?;
    let data = site.constant_f32s(1)?;
    let bias = match site.has_input(2) {
        true => Some(site.constant_f32s(2)?.to_vec()),
        false => None,
    };
    let order = if operator.transpose_right { WeightOrder::NByK } else { WeightOrder::KByN };
    let packing = format!("matrix {depth}x{columns} {order:?} {}", site.isa.name());
    let matrix = site.weights.get_or_pack(data, packing, || {
        PackedB::pack(site.isa, &WeightMatrix { data, depth, columns, order }).ok()
    });
    let matrix = matrix?;
    let rows = left[..left.len() - 1].iter().product();
    debug_assert_eq!(output.last(), Some(&columns));
    let mut reads = vec![0];
    if operator.epilogue.has_residual {
        site.dense_input(3)?;
        reads.push(3);
    }
    let activation = operator.epilogue.activation.into();
    Selected::new(Linear { matrix, rows, bias, activation }, reads)
}

impl Kernel for Linear {
    fn name(&self) -> String {
        "gemm".into()
    }

    fn run(&self, worker: &Worker<'_>, call: &Call<'_>) {
        let columns = self.matrix.columns();
        let depth = self.matrix.depth();
        let left = Rows::new(call.input(0), self.rows, depth, depth);
        let residual = call.optional_input(1).map(|data| Residual {
            data,
            row_stride: columns,
            after_activation: false,
        });
        let epilogue =
            Epilogue { bias: self.bias.as_deref(), residual, activation: self.activation };
        // SAFETY: every worker of the run makes this call, and the step is the only writer of its output.
        unsafe { gemm(worker, &left, &self.matrix, call.output(), columns, &epilogue) }
    }

    fn weight_bytes(&self) -> usize {
        self.matrix.bytes()
    }
}
