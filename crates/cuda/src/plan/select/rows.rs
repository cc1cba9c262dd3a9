//! Operators along lines: softmax, and where the extremes stand.

use weft_ir::axis::{around_axis, normalise_axis};
use weft_ir::operators::reduction::{ArgReduce, LogSoftmax, Softmax};

use super::super::site::{Selected, Selection, Site};
use crate::kernels::extreme::Extreme;
use crate::kernels::softmax;
use crate::launch::Argument;

pub(super) fn select(site: &Site<'_>) -> Selection {
    Ok(softmax(site).or_else(|| extreme(site)))
}

fn softmax(site: &Site<'_>) -> Option<Selected> {
    let (softmax, is_logarithm) = match (site.operator::<Softmax>(), site.operator::<LogSoftmax>())
    {
        (Some(softmax), _) => (*softmax, false),
        (_, Some(logarithm)) => (logarithm.softmax, true),
        _ => return None,
    };
    let shape = site.float_input(0)?;
    let axis = normalise_axis(softmax.axis, shape.len()).ok()?;
    if site.float_output()? != shape {
        return None;
    }
    if shape.contains(&0) {
        return Some(Selected::single("softmax", vec![], vec![0]));
    }
    let (outer, along, inner) = match (softmax.flattens, around_axis(&shape, axis)) {
        (true, (outer, along, inner)) => (outer, along * inner, 1),
        (false, sizes) => sizes,
    };
    let storage = site.precision.storage();
    let lines = softmax::Softmax { storage, is_logarithm, outer, along, inner };
    let candidates = lines.candidates(site.chip, Argument::Input(0), Argument::Output(0));
    Selected::among(lines.to_string(), candidates, vec![0])
}

fn extreme(site: &Site<'_>) -> Option<Selected> {
    let operator = site.operator::<ArgReduce>()?;
    let (shape, storage) = site.resident(site.input_fact(0)?)?;
    let axis = normalise_axis(operator.axis, shape.len()).ok()?;
    if shape[axis] == 0 {
        return None;
    }
    if shape.contains(&0) {
        return Some(Selected::single("extreme", vec![], vec![0]));
    }
    let (outer, along, inner) = around_axis(&shape, axis);
    let (is_largest, is_last) = (operator.largest, operator.select_last_index);
    let extreme = Extreme { storage, is_largest, is_last, outer, along, inner };
    extreme.supports().then(|| {
        let launch = extreme.launch(Argument::Input(0), Argument::Output(0));
        Selected::single("extreme", vec![launch], vec![0])
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Precision;
    use crate::plan::select::testing::{OneNode, given};
    use weft_ir::Attributes;

    #[test]
    fn short_rows_go_to_warps_and_long_ones_to_blocks() {
        let softmax = |shape: &[usize], axis: i64| -> Vec<String> {
            let attributes = Attributes::new().with("axis", axis);
            let node = OneNode::new("Softmax", vec![given(shape)], attributes);
            let selected = select(&node.site(Precision::F16)).unwrap().unwrap();
            selected.candidates.into_iter().map(|candidate| candidate.name).collect()
        };
        assert_eq!(softmax(&[12, 128], -1), ["softmax warp"]);
        assert_eq!(softmax(&[12, 1024], -1), ["softmax warp", "softmax block"]);
        assert_eq!(softmax(&[2, 50_257], -1), ["softmax block"]);
        assert_eq!(softmax(&[2, 5, 7], 1), ["softmax strided"]);
    }

    #[test]
    fn an_extreme_of_nothing_is_left_to_the_host() {
        let extreme = |shape: &[usize]| {
            let attributes = Attributes::new().with("axis", 1i64);
            let node = OneNode::new("ArgMax", vec![given(shape)], attributes);
            let selected = select(&node.site(Precision::F16)).unwrap();
            selected.map(|selected| selected.candidates[0].launches.len())
        };
        assert_eq!(extreme(&[2, 3]), Some(1));
        assert_eq!(extreme(&[0, 3]), Some(0));
        assert_eq!(extreme(&[2, 0]), None);
    }
}
