//! Products with a constant matrix.

use weft_ir::operators::fused::FusedMatMul;

use super::epilogue::{bias_weights, right_stride};
use crate::Storage;
use crate::kernels::gemm::{GemmProblem, Left, Operands, Right, candidates};
use crate::kernels::pad_rows::{pad_rows_launch, padded_columns};
use crate::kernels::stored::stored_rows;
use crate::launch::Argument;
use crate::plan::site::{Selected, Selection, Site};

/// A [`FusedMatMul`] whose matrix and bias are constants.
pub(super) fn select(site: &Site<'_>) -> Selection {
    let Some(operator) = site.operator::<FusedMatMul>() else { return Ok(None) };
    let (Some(left), Some(output), Some(matrix)) =
        (site.float_input(0), site.float_output(), site.f32_constant(1))
    else {
        return Ok(None);
    };
    let has_residual = operator.epilogue.has_residual;
    let residual_fits = !has_residual || site.float_input(3).as_ref() == Some(&output);
    let Some((k, n)) = operator.matrix_size(matrix.shape()) else { return Ok(None) };
    let bias_fits = !site.has_input(2) || site.f32_constant(2).is_some_and(|bias| bias.len() == n);
    if !residual_fits || !bias_fits || output.last() != Some(&n) || left.last() != Some(&k) {
        return Ok(None);
    }
    let storage = site.precision.storage();
    let bias = bias_weights(site)?;
    let m = left[..left.len() - 1].iter().product();
    let padded = padded_columns(k, storage);
    let problem = GemmProblem {
        m,
        n,
        k,
        stack: 1,
        stack_steps: [0; 3],
        left: Left::Matrix { stride: padded },
        right: Right { by_rows: false, stride: right_stride(k, storage), is_weights: true },
        bias: bias.as_ref().map(|_| Storage::F32),
        has_residual,
        activation: operator.epilogue.activation,
        precision: site.precision,
    };
    if !problem.is_supported() {
        return Ok(None);
    }
    let transpose_right = operator.transpose_right;
    let right = site.weights.get_or_make(
        matrix,
        format!("matrix {k}x{n} transposed {transpose_right} {storage:?}"),
        |weights| {
            stored_rows(n, k, problem.right.stride, storage, |row, column| match transpose_right {
                true => weights[row * k + column],
                false => weights[column * n + row],
            })
        },
    )?;
    let is_padded = padded != k;
    let workspace_from =
        if is_padded { (m * padded * storage.size_bytes()).next_multiple_of(256) } else { 0 };
    let padded_left = Argument::Workspace { offset_bytes: 0 };
    let operands = Operands {
        left: if is_padded { padded_left.clone() } else { Argument::Input(0) },
        right: Argument::Weights(right),
        bias: bias.map_or(Argument::Null, Argument::Weights),
        residual: if has_residual { Argument::Input(3) } else { Argument::Null },
        output: Argument::Output(0),
    };
    let mut candidates = candidates(&problem, &[operands], site.chip, workspace_from);
    if is_padded {
        let pad = pad_rows_launch(storage, m, k, Argument::Input(0), padded_left);
        candidates.iter_mut().for_each(|candidate| candidate.launches.insert(0, pad.clone()));
    }
    let reads = if has_residual { vec![0, 3] } else { vec![0] };
    Ok((!candidates.is_empty()).then_some(Selected { candidates, reads }))
}
