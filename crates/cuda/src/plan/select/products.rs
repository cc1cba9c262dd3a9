//! Products of two values that are both computed: attention, and stacks of matrices.

use weft_ir::broadcast::broadcast_shapes;
use weft_ir::operators::fused::FusedAttention;
use weft_ir::operators::linear::MatMul;

use super::libraries::Library;
use crate::kernels::attention::AttentionProblem;
use crate::kernels::gemm::{GemmProblem, Left, Operands, Right, candidates};
use crate::kernels::naive_product::naive_product;
use crate::kernels::pad_rows::{pad_rows_launch, padded_columns};
use crate::launch::{Argument, Launch};
use crate::plan::site::{Selected, Selection, Site};

pub(super) fn select(site: &Site<'_>) -> Selection {
    Ok(attention(site).or_else(|| mat_mul(site)))
}

fn attention(site: &Site<'_>) -> Option<Selected> {
    let operator = site.operator::<FusedAttention>()?;
    let (query, key, value) = (site.float_input(0)?, site.float_input(1)?, site.float_input(2)?);
    site.float_output()?;
    let sizes = operator.sizes(&query, &key, &value)?;
    let strides = |sequence, depth| operator.strides(sizes.heads, sequence, depth);
    let mask = match site.has_input(3) {
        true => Some(mask_strides(&site.float_input(3)?)?),
        false => None,
    };
    let problem = AttentionProblem {
        sizes,
        scale: operator.scale,
        query: strides(sizes.queries, sizes.depth),
        key: strides(sizes.keys, sizes.depth),
        value: strides(sizes.keys, sizes.value_depth),
        output: strides(sizes.queries, sizes.value_depth),
        mask,
        precision: site.precision,
    };
    let candidates = problem.candidates(site.chip);
    let reads = if mask.is_some() { vec![0, 1, 2, 3] } else { vec![0, 1, 2] };
    Selected::among(problem.to_string(), candidates, reads)
}

/// Distances along batch, head, query and key in a mask that broadcasts to them.
fn mask_strides(shape: &[usize]) -> Option<[usize; 4]> {
    let missing = 4usize.checked_sub(shape.len())?;
    let dense = weft_ir::strides(shape);
    Some(std::array::from_fn(|axis| match axis.checked_sub(missing) {
        Some(axis) if shape[axis] > 1 => dense[axis],
        _ => 0,
    }))
}

/// A [`MatMul`] of stacks of matrices, each of which is either one matrix or as many as the result.
fn mat_mul(site: &Site<'_>) -> Option<Selected> {
    site.operator::<MatMul>()?;
    let (left, right) = (site.float_input(0)?, site.float_input(1)?);
    let output = site.float_output()?;
    let ([left_stack @ .., m, k], [right_stack @ .., _, n]) = (&left[..], &right[..]) else {
        return None;
    };
    let stack_shape = broadcast_shapes(&[left_stack, right_stack]).ok()?;
    let stack: usize = stack_shape.iter().product();
    let count = |stack: &[usize]| stack.iter().product::<usize>();
    let is_plain = |part: &[usize]| count(part) == 1 || count(part) == stack;
    if output.len() != stack_shape.len() + 2 || !is_plain(left_stack) || !is_plain(right_stack) {
        return None;
    }
    let (m, k, n) = (*m, *k, *n);
    let storage = site.precision.storage();
    let mut pads: Vec<Launch> = Vec::new();
    let mut workspace_bytes = 0;
    let mut operand = |index: usize, rows: usize, columns: usize| {
        let padded = padded_columns(columns, storage);
        if padded == columns {
            return (Argument::Input(index), columns);
        }
        let to = Argument::Workspace { offset_bytes: workspace_bytes };
        pads.push(pad_rows_launch(storage, rows, columns, Argument::Input(index), to.clone()));
        workspace_bytes += (rows * padded * storage.size_bytes()).next_multiple_of(256);
        (to, padded)
    };
    let (left_argument, left_stride) = operand(0, count(left_stack) * m, k);
    let (right_argument, right_stride) = operand(1, count(right_stack) * k, n);
    let step = |part: &[usize], elements: usize| if count(part) == 1 { 0 } else { elements };
    let problem = GemmProblem {
        m,
        n,
        k,
        stack,
        stack_steps: [
            step(left_stack, m * left_stride),
            step(right_stack, k * right_stride),
            m * n,
        ],
        left: Left::Matrix { stride: left_stride },
        right: Right { by_rows: true, stride: right_stride, is_weights: false },
        bias: None,
        has_residual: false,
        activation: None,
        precision: site.precision,
    };
    let operands = Operands {
        left: left_argument,
        right: right_argument,
        bias: Argument::Null,
        residual: Argument::Null,
        output: Argument::Output(0),
    };
    let operator = match pads.len() {
        0 => problem.to_string(),
        _ => format!("{problem}, from {k} and {n} columns"),
    };
    let wanted = site.wanted(&operator);
    let library = Library { set: site.libraries.of(&wanted), wanted: &wanted };
    let mut reference =
        naive_product(&problem, std::slice::from_ref(&operands), workspace_bytes, &wanted);
    let by_library = library.products(site, &problem, &operands, workspace_bytes);
    let mut candidates = candidates(&problem, &[operands], site.chip, workspace_bytes, &wanted);
    candidates.extend(by_library);
    for candidate in candidates.iter_mut().chain(&mut reference) {
        candidate.launches.splice(0..0, pads.iter().cloned());
    }
    let selected = Selected::among(operator, candidates, vec![0, 1])?;
    Some(Selected { reference, ..selected })
}
