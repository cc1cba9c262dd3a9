//! Products of two values that are both computed: attention, and stacks of matrices.

use weft_ir::broadcast::{broadcast_indices, broadcast_shapes};
use weft_ir::operators::fused::FusedAttention;
use weft_ir::operators::linear::MatMul;

use super::bound::bound;
use crate::gemm::{self, BatchItem, Epilogue, matmul};
use crate::kernels::{Attention, HeadStrides};
use crate::plan::site::{Selected, Site};

pub(super) fn select(site: &Site<'_>) -> Option<Selected> {
    attention(site).or_else(|| mat_mul(site))
}

fn attention(site: &Site<'_>) -> Option<Selected> {
    let operator = site.operator::<FusedAttention>()?;
    let (query, key, value) = (site.dense_input(0)?, site.dense_input(1)?, site.dense_input(2)?);
    site.dense_output()?;
    let sizes = operator.sizes(&query, &key, &value)?;
    let strides = |sequence, depth| {
        let [batch, head, sequence] = operator.strides(sizes.heads, sequence, depth);
        HeadStrides { batch, head, sequence }
    };
    let mask_strides = match site.has_input(3) {
        false => HeadStrides { batch: 0, head: 0, sequence: 0 },
        true => mask_strides(&site.dense_input(3)?, sizes.keys)?,
    };
    let kernel = Attention {
        batch: sizes.batch,
        heads: sizes.heads,
        queries: sizes.queries,
        keys: sizes.keys,
        depth: sizes.depth,
        value_depth: sizes.value_depth,
        scale: operator.scale,
        query_strides: strides(sizes.queries, sizes.depth),
        key_strides: strides(sizes.keys, sizes.depth),
        value_strides: strides(sizes.keys, sizes.value_depth),
        output_strides: strides(sizes.queries, sizes.value_depth),
        mask_strides,
    };
    let reads = if site.has_input(3) { vec![0, 1, 2, 3] } else { vec![0, 1, 2] };
    // SAFETY: as `bound` says.
    bound("attention", reads, move |worker, call| unsafe {
        kernel.run(
            worker,
            call.input(0),
            call.input(1),
            call.input(2),
            call.optional_input(3),
            call.output(),
        )
    })
}

/// The layout of a mask that broadcasts to `[batch, heads, queries, keys]` and has a value for every key.
fn mask_strides(shape: &[usize], keys: usize) -> Option<HeadStrides> {
    if shape.last() != Some(&keys) || shape.len() > 4 {
        return None;
    }
    let dense = weft_ir::strides(shape);
    let stride = |from_end: usize| {
        let axis = shape.len().checked_sub(from_end);
        axis.map_or(0, |axis| if shape[axis] == 1 { 0 } else { dense[axis] })
    };
    Some(HeadStrides { batch: stride(4), head: stride(3), sequence: stride(2) })
}

fn mat_mul(site: &Site<'_>) -> Option<Selected> {
    site.operator::<MatMul>()?;
    let (left, right) = (site.dense_input(0)?, site.dense_input(1)?);
    let output = site.dense_output()?;
    let ([left_stack @ .., rows, depth], [right_stack @ .., _, columns]) = (&left[..], &right[..])
    else {
        return None;
    };
    let (rows, depth, columns) = (*rows, *depth, *columns);
    let stack = broadcast_shapes(&[left_stack, right_stack]).ok()?;
    if output.len() != stack.len() + 2 || output.contains(&0) || depth == 0 {
        return None;
    }
    let (a, b) = (broadcast_indices(left_stack, &stack), broadcast_indices(right_stack, &stack));
    let items: Vec<BatchItem> = a
        .iter()
        .zip(&b)
        .enumerate()
        .map(|(index, (a, b))| BatchItem {
            a: a * rows * depth,
            b: b * depth * columns,
            output: index * rows * columns,
        })
        .collect();
    bound("matmul", vec![0, 1], move |worker, call| {
        let products = gemm::MatMul {
            items: &items,
            rows,
            depth,
            columns,
            a: call.input(0),
            a_stride: depth,
            b: call.input(1),
            b_stride: columns,
            b_transposed: false,
            scale: 1.0,
            output_stride: columns,
            epilogue: Epilogue::default(),
        };
        // SAFETY: as `bound` says.
        unsafe { matmul(worker, &products, call.output()) }
    })
}
