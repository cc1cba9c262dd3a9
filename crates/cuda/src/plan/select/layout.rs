//! Operators that only move elements.

use weft_ir::axis::{around_axis, normalise_axis};
use weft_ir::operators::layout::{
    AxisRange, Concat, Expand, Pad, PadMode, Slice, Split, Tile, Transpose,
};
use weft_ir::{Fact, InputFacts, Tensor};

use super::super::site::{Selected, Selection, Site};
use super::super::transfer::encode;
use crate::Storage;
use crate::kernels::joined::{Direction, Joined};
use crate::kernels::pad::Padding;
use crate::kernels::strided_copy::strided_copy_launch;
use crate::kernels::transpose::Transposition;
use crate::kernels::view::View;
use crate::launch::{Argument, Launch};

pub(super) fn select(site: &Site<'_>) -> Selection {
    Ok(view(site).or_else(|| concat(site)).or_else(|| split(site)).or_else(|| pad(site)))
}

/// Operators whose output is a view of the first input.
fn view(site: &Site<'_>) -> Option<Selected> {
    let (shape, storage) = site.resident(site.input_fact(0)?)?;
    let (output, _) = site.resident(site.output_fact(0)?)?;
    if output.contains(&0) {
        return movement(site).map(|name| Selected::single(name, vec![], vec![0]));
    }
    let (name, view) = viewed(site, &shape, &output)?;
    (view.len() == output.iter().product()).then(|| {
        given_transposition(site, &view, storage).unwrap_or_else(|| {
            let launch = copy(&view, storage);
            Selected::single(name, vec![launch], vec![0])
        })
    })
}

/// The kernel's name for operators that are views.
fn movement(site: &Site<'_>) -> Option<&'static str> {
    match site.node.operator.name() {
        "Transpose" => Some("transpose"),
        "Slice" => Some("slice"),
        "Expand" => Some("expand"),
        "Tile" => Some("tile"),
        "DepthToSpace" => Some("depth_to_space"),
        "SpaceToDepth" => Some("space_to_depth"),
        _ => None,
    }
}

fn viewed(site: &Site<'_>, shape: &[usize], output: &[usize]) -> Option<(&'static str, View)> {
    let name = movement(site)?;
    let view = if let Some(operator) = site.operator::<Transpose>() {
        View::whole(shape).permuted(&operator.permutation_for(shape.len()).ok()?)
    } else if let Some(operator) = site.operator::<Slice>() {
        sliced(site, operator, shape)?
    } else if site.operator::<Expand>().is_some() {
        View::broadcast(shape, output)
    } else if site.operator::<Tile>().is_some() {
        let repeats = output.iter().zip(shape).map(|(to, from)| to / from);
        View::tiled(shape, &repeats.collect::<Vec<_>>())
    } else {
        blocks(site, shape, output)?
    };
    Some((name, view))
}

/// A transposition of an input of the graph, which converts it on the way.
fn given_transposition(site: &Site<'_>, view: &View, storage: Storage) -> Option<Selected> {
    let given = site.given_storage(0).filter(|&given| given != storage)?;
    let launch =
        Transposition::of(view)?.launch(given, storage, Argument::Given(0), Argument::Output(0));
    Some(Selected::single("transpose and convert", vec![launch], vec![]))
}

fn copy(view: &View, storage: Storage) -> Launch {
    let (from, to) = (Argument::Input(0), Argument::Output(0));
    match Transposition::of(view) {
        Some(transposition) => transposition.launch(storage, storage, from, to),
        None => strided_copy_launch(view, storage, from, to),
    }
}

fn facts<'a>(site: &Site<'a>) -> Vec<Option<&'a Fact>> {
    (0..site.node.inputs.len()).map(|index| site.input_fact(index)).collect()
}

fn sliced(site: &Site<'_>, operator: &Slice, shape: &[usize]) -> Option<View> {
    let facts = facts(site);
    let bounds = operator.constant_bounds(&InputFacts::new(&facts, 1))?;
    let dimensions: Vec<Option<usize>> = shape.iter().map(|&size| Some(size)).collect();
    let ranges: Vec<AxisRange> =
        operator.ranges(&dimensions, &bounds).ok()?.into_iter().collect::<Option<_>>()?;
    let slice = |view: View, (axis, range): (usize, &AxisRange)| {
        view.sliced(axis, range.start, range.step, range.count)
    };
    Some(ranges.iter().enumerate().fold(View::whole(shape), slice))
}

/// DepthToSpace and SpaceToDepth: blocks of pixels stand beside the other axes, which are then permuted.
fn blocks(site: &Site<'_>, shape: &[usize], output: &[usize]) -> Option<View> {
    let attributes = &site.node.origin.as_ref()?.attributes;
    let block = usize::try_from(attributes.int_or("blocksize", 0).ok()?).ok()?;
    let (&[batch, channels, height, width], &[_, moved, rows, columns]) = (shape, output) else {
        return None;
    };
    let is_outer = attributes.string_or("mode", "DCR").ok()? == "DCR";
    let (split, permutation) = match (site.node.operator.name(), is_outer) {
        ("SpaceToDepth", _) => ([batch, channels, rows, block, columns, block], [0, 3, 5, 1, 2, 4]),
        (_, true) => ([batch, block, block, moved, height, width], [0, 3, 4, 1, 5, 2]),
        (_, false) => ([batch, moved, block, block, height, width], [0, 1, 4, 2, 5, 3]),
    };
    let fits = split.iter().product::<usize>() == shape.iter().product::<usize>();
    fits.then(|| View::whole(&split).permuted(&permutation))
}

fn concat(site: &Site<'_>) -> Option<Selected> {
    let operator = site.operator::<Concat>()?;
    let (output, storage) = site.resident(site.output_fact(0)?)?;
    let axis = normalise_axis(operator.axis, output.len()).ok()?;
    let (rows, _, inner) = around_axis(&output, axis);
    let mut parts = Vec::new();
    for index in 0..site.node.inputs.len() {
        let (shape, _) = site.resident(site.input_fact(index)?)?;
        parts.push((shape.get(axis)? * inner, Argument::Input(index)));
    }
    let reads = (0..parts.len()).collect();
    let direction = Direction::Concatenating;
    let joined = Joined { direction, storage, rows, parts, whole: Argument::Output(0) };
    Some(Selected::single("concat", joined.launches(), reads))
}

fn split(site: &Site<'_>) -> Option<Selected> {
    let operator = site.operator::<Split>()?;
    let (input, storage) = site.resident(site.input_fact(0)?)?;
    let axis = normalise_axis(operator.axis, input.len()).ok()?;
    let (rows, whole, inner) = around_axis(&input, axis);
    let given = match site.has_input(1) {
        true => Some(site.constant(1)?.to_i64s().ok()?),
        false => None,
    };
    let sizes =
        operator.part_sizes(whole, site.node.outputs.len(), given.as_deref()).ok()?.into_iter();
    let part = |(index, size): (usize, usize)| match site.node.outputs[index] {
        Some(_) => (size * inner, Argument::Output(index)),
        None => (size * inner, Argument::Null),
    };
    let parts = sizes.enumerate().map(part).collect();
    let direction = Direction::Splitting;
    let joined = Joined { direction, storage, rows, parts, whole: Argument::Input(0) };
    Some(Selected::single("split", joined.launches(), vec![0]))
}

fn pad(site: &Site<'_>) -> Option<Selected> {
    let operator = site.operator::<Pad>()?;
    let (shape, storage) = site.resident(site.input_fact(0)?)?;
    let (output, _) = site.resident(site.output_fact(0)?)?;
    let facts = facts(site);
    let amounts = operator.constant_amounts(shape.len(), &InputFacts::new(&facts, 1)).ok()??;
    if output.contains(&0) {
        return Some(Selected::single("pad", vec![], vec![0]));
    }
    let fill = match (operator.mode, site.has_input(2), &operator.attributes) {
        (PadMode::Constant, true, _) => Some(site.constant(2)?.clone()),
        (_, false, Some((_, value))) => Some(Tensor::scalar(*value)),
        _ => None,
    };
    let fill = match fill.filter(|fill| !fill.is_empty()) {
        Some(fill) => encode(&fill, storage).ok()?.into_owned(),
        None => vec![0; storage.size_bytes()],
    };
    let padding = Padding::new(operator.mode, storage, &shape, &amounts)?;
    let launch = padding.launch(&fill, Argument::Input(0), Argument::Output(0));
    Some(Selected::single("pad", vec![launch], vec![0]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Precision;
    use crate::kernels::view::tests::places;
    use crate::plan::select::testing::{OneNode, Operand, given, integers};
    use half::f16;
    use weft_ir::Attributes;

    #[test]
    fn views_are_what_the_operators_evaluate_to() {
        let none = Attributes::new;
        let block = |mode: &str| none().with("blocksize", 2i64).with("mode", mode);
        let cases: Vec<(&str, Vec<Operand>, Attributes)> = vec![
            ("Transpose", vec![given(&[2, 3, 4])], none()),
            ("Transpose", vec![given(&[2, 3, 4, 5])], none().with("perm", vec![0i64, 2, 3, 1])),
            ("Expand", vec![given(&[3, 1]), integers(&[2, 1, 4])], none()),
            ("Expand", vec![given(&[3, 4]), integers(&[1, 1])], none()),
            ("Tile", vec![given(&[2, 3]), integers(&[2, 2])], none()),
            ("DepthToSpace", vec![given(&[1, 8, 2, 3])], block("DCR")),
            ("DepthToSpace", vec![given(&[1, 8, 2, 3])], block("CRD")),
            ("SpaceToDepth", vec![given(&[1, 3, 4, 6])], none().with("blocksize", 2i64)),
            (
                "Slice",
                vec![
                    given(&[5, 6]),
                    integers(&[4, 1]),
                    integers(&[i64::MIN, 5]),
                    integers(&[0, 1]),
                    integers(&[-2, 3]),
                ],
                none(),
            ),
        ];
        for (operator, operands, attributes) in cases {
            let node = OneNode::new(operator, operands, attributes);
            let site = node.site(Precision::F16);
            let shape = site.input_fact(0).unwrap().shape().unwrap();
            let output = site.output_fact(0).unwrap().shape().unwrap();
            let (_, view) = viewed(&site, &shape, &output).unwrap();
            let numbers = (0..shape.iter().product::<usize>()).map(|i| i as f32).collect();
            let expected = node.evaluate(&[Tensor::from_vec(shape, numbers).unwrap()]).remove(0);
            let taken: Vec<f32> = places(&view).into_iter().map(|place| place as f32).collect();
            assert_eq!(taken, expected.elements::<f32>().unwrap(), "{operator}");
            assert_eq!(select(&site).unwrap().unwrap().candidates[0].launches.len(), 1);
        }
    }

    #[test]
    fn nothing_is_launched_for_an_empty_output() {
        let operands = vec![given(&[5, 6]), integers(&[3]), integers(&[3])];
        let node = OneNode::new("Slice", operands, Attributes::new());
        let selected = select(&node.site(Precision::F16)).unwrap().unwrap();
        assert!(selected.candidates[0].launches.is_empty());
    }

    #[test]
    fn parts_join_along_any_axis() {
        let attributes = Attributes::new().with("axis", -1i64);
        let node = OneNode::new("Concat", vec![given(&[2, 8]), given(&[2, 16])], attributes);
        let selected = select(&node.site(Precision::F16)).unwrap().unwrap();
        assert_eq!(selected.reads, [0, 1]);
        assert_eq!(selected.candidates[0].launches.len(), 1);
        let operands = vec![given(&[6, 4]), integers(&[1, 3, 2])];
        let node = OneNode::with_outputs("Split", operands, 3, Attributes::new());
        let selected = select(&node.site(Precision::F32)).unwrap().unwrap();
        assert_eq!(selected.reads, [0]);
    }

    #[test]
    fn what_is_not_known_before_the_run_is_left_to_the_host() {
        let pads = || Operand::Given(weft_ir::DataType::I64, vec![4]);
        let node = OneNode::new("Pad", vec![given(&[2, 3]), pads()], Attributes::new());
        assert!(select(&node.site(Precision::F16)).unwrap().is_none());
        let node = OneNode::new("Expand", vec![given(&[2, 3]), pads()], Attributes::new());
        assert!(select(&node.site(Precision::F16)).unwrap().is_none());
    }

    #[test]
    fn the_fill_is_stored_as_the_tensor_is() {
        let operands = vec![
            given(&[2, 3]),
            integers(&[1, 0, 0, 2]),
            Operand::Constant(Tensor::scalar(1.5f32)),
        ];
        let node = OneNode::new("Pad", operands, Attributes::new());
        let selected = select(&node.site(Precision::F16)).unwrap().unwrap();
        let Argument::Bytes(fill) = &selected.candidates[0].launches[0].arguments[3] else {
            panic!("{:?}", selected.candidates);
        };
        assert_eq!(fill[..], f16::from_f32(1.5).to_ne_bytes());
    }
}
