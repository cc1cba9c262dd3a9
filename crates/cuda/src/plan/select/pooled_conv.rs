//! Convolutions of which only the greatest of every two by two pixels is needed: one kernel computes both, so that what is
//! pooled is never in memory.

use weft_ir::operators::convolution::{AxisWindow, MaxPool};

use super::conv::{self, Dense};
use super::pooling;
use crate::Chip;
use crate::choosing::Wanted;
use crate::kernels::gemm::MEMORY_BYTES_PER_CYCLE;
use crate::launch::{Argument, Candidate, Launch, TensorMap};
use crate::plan::site::{Selected, Selection, Site};

/// Where what is pooled begins in a workspace.
const ALIGNMENT_BYTES: usize = 256;

/// The candidates for a convolution and the pool that alone reads it, with the inputs of the one and the output of the other;
/// `None` where no kernel computes both.
pub(crate) fn select_pooled(sites: &[Site<'_>]) -> Selection {
    let [conv, pool] = sites else { return Ok(None) };
    if !takes_greatest_of_four(pool) || conv.node.output() != pool.node.input(0) {
        return Ok(None);
    }
    let Some(dense) = Dense::of(conv)? else { return Ok(None) };
    let operator = format!("{}, pooled", dense.operator());
    let wanted = conv.wanted(&operator);
    let (entries, chip) = wanted.entries_on(conv.chip);
    let (windows, operands) = dense.of_windows(true);
    let all = matches!(wanted, Wanted::All | Wanted::Named(_));
    let mut expected = windows.candidates(&operands, chip, entries, all);
    let Some(best) = expected.first() else { return Ok(None) };
    let (best_cycles, best_name) = (best.cycles, best.candidate.name.clone());
    let (Some(apart), Some(pooling)) = (conv::select(conv)?, pooling::select(pool)?) else {
        return Ok(None);
    };
    let pooled_bytes = dense.problem.m * dense.problem.n * dense.problem.element_bytes();
    let cycles_apart =
        dense.least_estimate(conv, &wanted) + pooling_cycles(entries * pooled_bytes, chip);
    let pooling = &pooling.candidates[0].launches;
    let one_after_another = |candidate| one_after_another(candidate, pooling, pooled_bytes);
    let reference = apart.reference.map(one_after_another);
    // What a library computes ends a step.
    let own = apart.candidates.into_iter().filter(|candidate| candidate.library_call.is_none());
    let mut candidates: Vec<Candidate> = own.map(one_after_another).collect();
    expected.retain(|of| wanted.includes(&of.candidate.name) || of.candidate.name == best_name);
    let place = if best_cycles < cycles_apart { 0 } else { candidates.len().min(1) };
    candidates.splice(place..place, expected.into_iter().map(|of| of.candidate));
    let selected = Selected::among(operator, candidates, apart.reads);
    Ok(selected.map(|selected| Selected { reference, ..selected }))
}

/// A pool whose windows of two by two pixels cover each pixel once, but for a last odd one.
fn takes_greatest_of_four(site: &Site<'_>) -> bool {
    let is_half = |window: &AxisWindow| {
        let AxisWindow { input, kernel, stride, dilation, pad_begin, pad_end, output } = *window;
        [kernel, stride, dilation, pad_begin, pad_end] == [2, 2, 1, 0, 0] && output == input / 2
    };
    let (Some(pool), Some(shape)) = (site.operator::<MaxPool>(), site.float_input(0)) else {
        return false;
    };
    let axes = pool.pooling.axes(&shape);
    !pool.with_indices
        && pool.pooling.channels_last
        && site.float_output().is_some()
        && axes.is_ok_and(|axes| axes.len() == 2 && axes.iter().all(is_half))
}

/// What a pool of its own is expected to take, in cycles: a launch, and what it reads and writes.
fn pooling_cycles(pooled_bytes: usize, chip: Chip) -> f64 {
    const LAUNCH: f64 = 3000.0;
    const BYTES_PER_CYCLE_OF_SM: f64 = 45.0;
    let of_sms = f64::from(chip.sm_count) * BYTES_PER_CYCLE_OF_SM;
    let bytes_per_cycle = of_sms.min(MEMORY_BYTES_PER_CYCLE);
    LAUNCH + 1.25 * pooled_bytes as f64 / bytes_per_cycle
}

/// A candidate for the convolution, whose output goes to the workspace, and then the pool.
fn one_after_another(conv: Candidate, pooling: &[Launch], pooled_bytes: usize) -> Candidate {
    let offset_bytes = conv.workspace_bytes.next_multiple_of(ALIGNMENT_BYTES);
    let between = Argument::Workspace { offset_bytes };
    let is_output = |argument: &Argument| matches!(argument, Argument::Output(0));
    let is_input = |argument: &Argument| matches!(argument, Argument::Input(0));
    let first = conv.launches.iter().map(|launch| with(launch, &is_output, &between));
    let second = pooling.iter().map(|launch| with(launch, &is_input, &between));
    let launches = first.chain(second).collect();
    Candidate::new(format!("pooling after {}", conv.name), launches, offset_bytes + pooled_bytes)
}

/// A launch with another argument in place of some.
fn with(launch: &Launch, replaces: &dyn Fn(&Argument) -> bool, other: &Argument) -> Launch {
    fn replaced(
        argument: &Argument,
        replaces: &dyn Fn(&Argument) -> bool,
        other: &Argument,
    ) -> Argument {
        match argument {
            Argument::Addresses(all) => {
                Argument::Addresses(all.iter().map(|of| replaced(of, replaces, other)).collect())
            }
            Argument::TensorMap(map) => {
                let base = Box::new(replaced(&map.base, replaces, other));
                Argument::TensorMap(TensorMap { base, ..map.clone() })
            }
            argument if replaces(argument) => other.clone(),
            argument => argument.clone(),
        }
    }
    let arguments = launch.arguments.iter().map(|of| replaced(of, replaces, other)).collect();
    Launch { arguments, ..launch.clone() }
}
