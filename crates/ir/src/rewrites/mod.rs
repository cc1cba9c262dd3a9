//! Graph rewrites: each its own file, each a pattern and the patch that replaces it, run to a fixed point.

use crate::error::GraphError;
use crate::fact::Fact;
use crate::facts::{Facts, infer_and_fold};
use crate::graph::Graph;

mod batch_norm_as_scale_shift;
mod channels_last;
mod dead_code;
mod drop_identity;
mod factors;
mod fold_channel_arithmetic;
mod fuse_activation;
mod fuse_residual;
mod linear;
mod normalise_reduce;
mod patch;
mod producers;
mod recognise_attention;
mod recognise_gelu;
mod recognise_hard_swish;
mod recognise_layer_norm;
mod recognise_silu;
#[cfg(test)]
pub(crate) mod testing;
mod transposes;
mod view;

pub(crate) use patch::Patch;
pub(crate) use view::View;

/// One rewrite: looks at a node as the root of a pattern and says what should stand in its place.
pub(crate) struct Rewrite {
    /// The name under which applications are reported.
    pub(crate) name: &'static str,
    /// The patch for the pattern rooted at this node, if it matches.
    pub(crate) rule: fn(&View<'_>, usize) -> Option<Patch>,
}

/// Rewrites that run together until none applies any more.
pub(crate) type Stage = &'static [Rewrite];

/// What is done once shapes are fixed.
pub(crate) const SPECIALISED: &[Stage] = &[
    &[
        drop_identity::DROP_IDENTITY,
        normalise_reduce::NORMALISE_REDUCE,
        fold_channel_arithmetic::FOLD_BATCH_NORM,
        fold_channel_arithmetic::FOLD_CHANNEL_ARITHMETIC,
        recognise_hard_swish::RECOGNISE_HARD_SWISH,
        recognise_hard_swish::RECOGNISE_HARD_SIGMOID,
        recognise_silu::RECOGNISE_SILU,
        recognise_gelu::RECOGNISE_GELU,
        recognise_layer_norm::RECOGNISE_LAYER_NORM,
        transposes::MERGE_TRANSPOSES,
        recognise_attention::RECOGNISE_ATTENTION,
    ],
    &[
        batch_norm_as_scale_shift::BATCH_NORM_AS_SCALE_SHIFT,
        linear::LINEAR,
        linear::LINEAR_BIAS,
        fuse_activation::FUSE_ACTIVATION,
        fuse_residual::FUSE_RESIDUAL,
    ],
    &[
        channels_last::CHANNELS_LAST,
        channels_last::SINK_TRANSPOSE,
        transposes::MERGE_TRANSPOSES,
        transposes::SHARE_TRANSPOSES,
        transposes::TRANSPOSE_AS_RESHAPE,
        drop_identity::DROP_IDENTITY,
    ],
];

/// How often a rewrite was applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Applied {
    /// The rewrite's name.
    pub rewrite: &'static str,
    /// The number of times it was applied.
    pub times: usize,
}

/// More sweeps than any chain of rewrites on a real model needs; a guard against rules that undo each other.
const MAX_SWEEPS: usize = 64;

/// Runs the stages in order, each to its fixed point, folding constants and removing dead code between sweeps.
pub(crate) fn run(
    graph: &mut Graph,
    inputs: &[Fact],
    stages: &[Stage],
) -> Result<(Facts, Vec<Applied>), GraphError> {
    let mut applied: Vec<Applied> = Vec::new();
    let mut facts = infer_and_fold(graph, inputs)?;
    dead_code::remove(graph);
    for stage in stages {
        for _ in 0..MAX_SWEEPS {
            let times_before: usize = applied.iter().map(|entry| entry.times).sum();
            for rewrite in *stage {
                let times = sweep(graph, &mut facts, rewrite)?;
                match applied.iter_mut().find(|entry| entry.rewrite == rewrite.name) {
                    Some(entry) => entry.times += times,
                    None => applied.push(Applied { rewrite: rewrite.name, times }),
                }
            }
            if applied.iter().map(|entry| entry.times).sum::<usize>() == times_before {
                break;
            }
            graph.sort()?;
            facts = infer_and_fold(graph, inputs)?;
            dead_code::remove(graph);
        }
    }
    applied.retain(|entry| entry.times > 0);
    Ok((facts, applied))
}

fn sweep(graph: &mut Graph, facts: &mut Facts, rewrite: &Rewrite) -> Result<usize, GraphError> {
    let mut times = 0;
    let mut index = 0;
    let mut uses = view::Uses::new(graph);
    while index < graph.nodes().len() {
        match (rewrite.rule)(&View::new(graph, facts, &uses), index) {
            Some(patch) => {
                patch.apply(graph, facts, index)?;
                uses = view::Uses::new(graph);
                times += 1;
            }
            None => index += 1,
        }
    }
    Ok(times)
}
