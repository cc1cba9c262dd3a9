//! Pooling of channels-last images.

use weft_ir::operators::convolution::{
    AveragePool, AxisWindow, GlobalPool, GlobalPoolKind, MaxPool, Pooling,
};

use super::bound::bound;
use crate::kernels::{self, PoolingKind, PoolingProblem, Reduce, Reduction};
use crate::plan::site::{Selected, Site};

pub(super) fn select(site: &Site<'_>) -> Option<Selected> {
    global(site).or_else(|| windowed(site))
}

fn global(site: &Site<'_>) -> Option<Selected> {
    let pool = site.operator::<GlobalPool>()?;
    let reduction = match pool.kind {
        GlobalPoolKind::Average => Reduction::Mean,
        GlobalPoolKind::Max => Reduction::Max,
        GlobalPoolKind::Norm(_) => return None,
    };
    let shape = site.dense_input(0)?;
    site.dense_output()?;
    let spatial: Vec<usize> = match pool.channels_last {
        true => (1..shape.len().checked_sub(1)?).collect(),
        false => (2..shape.len()).collect(),
    };
    let kernel = Reduce::new(reduction, &shape, &spatial).ok()?;
    // SAFETY: as `bound` says.
    bound("global_pool", vec![0], move |worker, call| unsafe {
        kernel.run(worker, call.input(0), call.output())
    })
}

fn windowed(site: &Site<'_>) -> Option<Selected> {
    let (pooling, kind): (&Pooling, _) =
        match (site.operator::<MaxPool>(), site.operator::<AveragePool>()) {
            (Some(pool), _) => (&pool.pooling, PoolingKind::Max),
            (_, Some(pool)) if pool.count_include_pad => {
                (&pool.pooling, PoolingKind::AverageWithPadding)
            }
            (_, Some(pool)) => (&pool.pooling, PoolingKind::Average),
            _ => return None,
        };
    let shape = site.dense_input(0)?;
    let output = site.dense_output()?;
    let &[batch, height, width, channels] = &shape[..] else { return None };
    let axes = pooling.axes(&shape).ok()?;
    let [rows, columns] = &axes[..] else { return None };
    if !pooling.channels_last || output != [batch, rows.output, columns.output, channels] {
        return None;
    }
    let pair = |read: fn(&AxisWindow) -> usize| [read(rows), read(columns)];
    let problem = PoolingProblem {
        batch,
        input: [height, width],
        output: pair(|axis| axis.output),
        channels,
        kernel: pair(|axis| axis.kernel),
        strides: pair(|axis| axis.stride),
        dilations: pair(|axis| axis.dilation),
        pads_begin: pair(|axis| axis.pad_begin),
        pads_end: pair(|axis| axis.pad_end),
    };
    let kernel = kernels::Pooling::new(kind, &problem).ok()?;
    // SAFETY: as `bound` says.
    bound("pool", vec![0], move |worker, call| unsafe {
        kernel.run(worker, call.input(0), call.output())
    })
}
