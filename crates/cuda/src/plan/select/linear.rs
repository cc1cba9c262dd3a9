//! Products with a constant matrix.

use std::borrow::Cow;
use std::sync::Arc;

use weft_device::DeviceError;
use weft_ir::operators::fused::FusedMatMul;

use super::epilogue::{bias_weights, right_stride};
use super::libraries::{self, Library};
use crate::Storage;
use crate::kernels::gemm::{GemmProblem, Left, Operands, Right, candidates};
use crate::kernels::naive_product::naive_product;
use crate::kernels::pad_rows::{pad_rows_launch, padded_columns};
use crate::kernels::stored::{stored_rows, transposed};
use crate::launch::{Argument, DeviceWeights};
use crate::plan::site::{Selected, Selection, Site};

/// A product with its weights on the device.
struct Linear {
    problem: GemmProblem,
    right: Arc<DeviceWeights>,
    bias: Option<Arc<DeviceWeights>>,
    /// Columns of the rows as they are given, where they have to be padded.
    unpadded: Option<usize>,
}

/// A [`FusedMatMul`] whose matrix and bias are constants.
pub(super) fn select(site: &Site<'_>) -> Selection {
    let Some(linear) = Linear::of(site)? else { return Ok(None) };
    let problem = &linear.problem;
    let storage = site.precision.storage();
    let Left::Matrix { stride } = problem.left else { unreachable!("rows are a matrix") };
    let workspace_from = match linear.unpadded {
        Some(_) => (problem.m * stride * storage.size_bytes()).next_multiple_of(256),
        None => 0,
    };
    let padded_left = Argument::Workspace { offset_bytes: 0 };
    let left = if linear.unpadded.is_some() { padded_left.clone() } else { Argument::Input(0) };
    let operands = linear.operands(left, 0);
    let operator = match linear.unpadded {
        Some(columns) => format!("{problem}, from {columns} columns"),
        None => problem.to_string(),
    };
    let wanted = site.wanted(&operator);
    let libraries = site.libraries.of(&wanted);
    let of_library = Operands { bias: libraries::bias(site, libraries)?, ..operands.clone() };
    let mut reference =
        naive_product(problem, std::slice::from_ref(&operands), workspace_from, &wanted);
    let mut candidates = candidates(problem, &[operands], site.chip, workspace_from, &wanted);
    let library = Library { set: libraries, wanted: &wanted };
    candidates.extend(library.products(site, problem, &of_library, workspace_from));
    if let Some(columns) = linear.unpadded {
        let pad = pad_rows_launch(storage, problem.m, columns, Argument::Input(0), padded_left);
        let all = candidates.iter_mut().chain(&mut reference);
        all.for_each(|candidate| candidate.launches.insert(0, pad.clone()));
    }
    let reads = if problem.has_residual { vec![0, 3] } else { vec![0] };
    let selected = Selected::among(operator, candidates, reads);
    Ok(selected.map(|selected| Selected { reference, ..selected }))
}

/// The candidates for several products of the same rows in one launch, whose only input those rows are and whose outputs
/// stand in the order of the sites; `None` where that cannot be.
pub(crate) fn select_siblings(sites: &[Site<'_>]) -> Selection {
    let mut all = Vec::with_capacity(sites.len());
    for site in sites {
        let Some(linear) = Linear::of(site)? else { return Ok(None) };
        all.push(linear);
    }
    let Some(first) = all.first() else { return Ok(None) };
    let is_alike = |linear: &Linear| {
        linear.problem == first.problem && linear.unpadded.is_none() && !linear.problem.has_residual
    };
    if !all.iter().all(is_alike)
        || sites.iter().any(|site| site.node.input(0) != sites[0].node.input(0))
    {
        return Ok(None);
    }
    let operands: Vec<Operands> = all
        .iter()
        .enumerate()
        .map(|(output, linear)| linear.operands(Argument::Input(0), output))
        .collect();
    let operator = format!("{} of the same rows: {}", operands.len(), first.problem);
    let wanted = sites[0].wanted(&operator);
    let candidates = candidates(&first.problem, &operands, sites[0].chip, 0, &wanted);
    let reference = naive_product(&first.problem, &operands, 0, &wanted);
    let selected = Selected::among(operator, candidates, vec![0]);
    Ok(selected.map(|selected| Selected { reference, ..selected }))
}

impl Linear {
    fn operands(&self, left: Argument, output: usize) -> Operands {
        Operands {
            left,
            right: Argument::Weights(self.right.clone()),
            bias: self.bias.clone().map_or(Argument::Null, Argument::Weights),
            residual: if self.problem.has_residual { Argument::Input(3) } else { Argument::Null },
            output: Argument::Output(output),
        }
    }

    fn of(site: &Site<'_>) -> Result<Option<Self>, DeviceError> {
        let Some(operator) = site.operator::<FusedMatMul>() else { return Ok(None) };
        let (Some(left), Some(output), Some(matrix)) =
            (site.float_input(0), site.float_output(), site.f32_constant(1))
        else {
            return Ok(None);
        };
        let has_residual = operator.epilogue.has_residual;
        let residual_fits = !has_residual || site.float_input(3).as_ref() == Some(&output);
        let Some((k, n)) = operator.matrix_size(matrix.shape()) else { return Ok(None) };
        let bias_fits =
            !site.has_input(2) || site.f32_constant(2).is_some_and(|bias| bias.len() == n);
        if !residual_fits || !bias_fits || output.last() != Some(&n) || left.last() != Some(&k) {
            return Ok(None);
        }
        let storage = site.precision.storage();
        let bias = bias_weights(site)?;
        let padded = padded_columns(k, storage);
        let problem = GemmProblem {
            m: left[..left.len() - 1].iter().product(),
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
                let by_rows = match transpose_right {
                    true => Cow::Borrowed(weights),
                    false => Cow::Owned(transposed(weights, k, n)),
                };
                stored_rows(n, problem.right.stride, storage, |row, to| {
                    to[..k].copy_from_slice(&by_rows[row * k..][..k]);
                })
            },
        )?;
        Ok(Some(Self { problem, right, bias, unpadded: (padded != k).then_some(k) }))
    }
}
