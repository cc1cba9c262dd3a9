//! Pools with windows.

use weft_ir::operators::convolution::{AveragePool, AxisWindow, MaxPool};
use weft_ir::operators::reduction::ReduceFunction;

use super::super::site::{Selected, Selection, Site};
use super::reductions::reduction;
use crate::kernels::pooling::{Pooling, PoolingMode};
use crate::launch::Argument;

pub(super) fn select(site: &Site<'_>) -> Selection {
    Ok(pooling(site))
}

fn pooling(site: &Site<'_>) -> Option<Selected> {
    let (pooling, mode) = match (site.operator::<MaxPool>(), site.operator::<AveragePool>()) {
        (Some(pool), _) if !pool.with_indices => (&pool.pooling, PoolingMode::Max),
        (_, Some(pool)) if pool.count_include_pad => {
            (&pool.pooling, PoolingMode::AverageWithPadding)
        }
        (_, Some(pool)) => (&pool.pooling, PoolingMode::Average),
        _ => return None,
    };
    let (shape, output) = (site.float_input(0)?, site.float_output()?);
    let windows = pooling.axes(&shape).ok()?;
    let rank = shape.len();
    let (images, channels, first) = match pooling.channels_last {
        true => (shape[0], shape[rank - 1], 1),
        false => (shape[0] * shape[1], 1, 2),
    };
    let sizes: Vec<usize> = windows.iter().map(|window| window.output).collect();
    if output.get(first..first + sizes.len()) != Some(&sizes[..]) {
        return None;
    }
    if windows.iter().all(covers_all) && !output.contains(&0) {
        let function = match mode {
            PoolingMode::Max => ReduceFunction::Max,
            _ => ReduceFunction::Mean,
        };
        let axes: Vec<usize> = (first..first + windows.len()).collect();
        return reduction(site, "pooling", function, &axes);
    }
    let storage = site.precision.storage();
    let pooling = Pooling { mode, storage, images, channels, windows };
    pooling.supports().then(|| {
        let launch = pooling.launch(Argument::Input(0), Argument::Output(0));
        Selected::single("pooling", launch.into_iter().collect(), vec![0])
    })
}

/// True where the only window is the whole axis.
fn covers_all(window: &AxisWindow) -> bool {
    let AxisWindow { input, kernel, dilation, pad_begin, pad_end, output, .. } = *window;
    output == 1 && kernel == input && (dilation == 1 || kernel == 1) && pad_begin + pad_end == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Precision;
    use crate::plan::select::testing::{OneNode, given};
    use weft_ir::Attributes;

    fn template(operator: &str, kernel: Vec<i64>) -> Option<&'static str> {
        let attributes = Attributes::new().with("kernel_shape", kernel);
        let node = OneNode::new(operator, vec![given(&[2, 8, 7, 7])], attributes);
        let selected = select(&node.site(Precision::F16)).unwrap()?;
        Some(selected.candidates[0].launches[0].source.template)
    }

    #[test]
    fn a_window_over_everything_is_a_reduction() {
        assert_eq!(template("AveragePool", vec![7, 7]), Some("reduce.cu"));
        assert_eq!(template("AveragePool", vec![7, 6]), Some("pooling.cu"));
        assert_eq!(template("MaxPool", vec![3, 3]), Some("pooling.cu"));
    }

    #[test]
    fn indices_are_left_to_the_host() {
        let attributes = Attributes::new().with("kernel_shape", vec![2i64, 2]);
        let node = OneNode::with_outputs("MaxPool", vec![given(&[1, 2, 4, 4])], 2, attributes);
        assert!(select(&node.site(Precision::F16)).unwrap().is_none());
    }
}
