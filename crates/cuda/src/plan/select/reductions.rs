//! Reductions over axes, and pools whose window is the whole image.

use weft_ir::operators::convolution::{GlobalPool, GlobalPoolKind};
use weft_ir::operators::reduction::{Reduce, ReduceAxes, ReduceFunction};

use super::super::site::{Selected, Selection, Site};
use crate::kernels::reduce::Reduction;
use crate::launch::Argument;

pub(super) fn select(site: &Site<'_>) -> Selection {
    Ok(reduce(site).or_else(|| global_pool(site)))
}

fn reduce(site: &Site<'_>) -> Option<Selected> {
    let operator = site.operator::<Reduce>()?;
    let (shape, _) = site.resident(site.input_fact(0)?)?;
    let given = match (&operator.axes, site.has_input(1)) {
        (ReduceAxes::Input, true) => Some(site.constant(1)?.to_i64s().ok()?),
        _ => None,
    };
    let axes = operator.axes_for(shape.len(), given.as_deref()).ok()?;
    reduction(site, "reduce", operator.function, &axes)
}

fn global_pool(site: &Site<'_>) -> Option<Selected> {
    let pool = site.operator::<GlobalPool>()?;
    let shape = site.float_input(0)?;
    let function = match pool.kind {
        GlobalPoolKind::Average => ReduceFunction::Mean,
        GlobalPoolKind::Max => ReduceFunction::Max,
        GlobalPoolKind::Norm(1) => ReduceFunction::L1,
        GlobalPoolKind::Norm(2) => ReduceFunction::L2,
        GlobalPoolKind::Norm(_) => return None,
    };
    let axes: Vec<usize> = match pool.channels_last {
        true => (1..shape.len().checked_sub(1)?).collect(),
        false => (2..shape.len()).collect(),
    };
    reduction(site, "global_pool", function, &axes)
}

/// The reduction of the first input over `axes`.
pub(super) fn reduction(
    site: &Site<'_>,
    name: &str,
    function: ReduceFunction,
    axes: &[usize],
) -> Option<Selected> {
    let (shape, storage) = site.resident(site.input_fact(0)?)?;
    let (output, _) = site.resident(site.output_fact(0)?)?;
    let kept = (0..shape.len()).filter(|axis| !axes.contains(axis)).map(|axis| shape[axis]);
    if kept.product::<usize>() != output.iter().product() {
        return None;
    }
    if output.contains(&0) {
        return Some(Selected::single(name, vec![], vec![0]));
    }
    let reduction = Reduction::new(function, storage, &shape, axes)?;
    let (from, to) = (Argument::Input(0), Argument::Output(0));
    Some(Selected::only(reduction.candidate(name, site.chip, from, to), vec![0]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Precision;
    use crate::plan::select::testing::{OneNode, Operand, given, integers};
    use weft_ir::{Attributes, DataType};

    fn launches(operator: &str, operands: Vec<Operand>) -> Option<usize> {
        let node = OneNode::new(operator, operands, Attributes::new());
        let selected = select(&node.site(Precision::F16)).unwrap()?;
        Some(selected.candidates[0].launches.len())
    }

    #[test]
    fn neighbouring_axes_take_one_launch_and_others_two() {
        assert_eq!(launches("ReduceMean", vec![given(&[2, 3, 4]), integers(&[1, 2])]), Some(1));
        assert_eq!(launches("ReduceMean", vec![given(&[2, 3, 4]), integers(&[0, 2])]), Some(2));
        assert_eq!(launches("GlobalAveragePool", vec![given(&[2, 3, 4, 5])]), Some(1));
        assert_eq!(launches("ReduceSum", vec![given(&[0, 3]), integers(&[1])]), Some(0));
    }

    #[test]
    fn axes_that_are_computed_are_left_to_the_host() {
        let axes = Operand::Given(DataType::I64, vec![1]);
        assert_eq!(launches("ReduceSum", vec![given(&[2, 3]), axes]), None);
        // A maximum over nothing has a value, but no elements to read.
        assert_eq!(launches("ReduceMax", vec![given(&[2, 0]), integers(&[1])]), None);
    }
}
