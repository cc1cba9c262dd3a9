//! Slices and elements picked by indices.

use weft_ir::axis::normalise_axis;
use weft_ir::operators::indexing::Gather;

use super::super::site::{Selected, Selection, Site};
use crate::kernels::gather::Gathering;
use crate::launch::Argument;

pub(super) fn select(site: &Site<'_>) -> Selection {
    Ok(gather(site).or_else(|| gather_elements(site)))
}

fn gathering(site: &Site<'_>, axis: i64) -> Option<Gathering> {
    let (shape, storage) = site.resident(site.input_fact(0)?)?;
    let (indices, index_storage) = site.resident(site.input_fact(1)?)?;
    let axis = normalise_axis(axis, shape.len()).ok()?;
    let gathering = Gathering { storage, shape, axis, index_storage, indices };
    gathering.supports().then_some(gathering)
}

fn arguments() -> (Argument, Argument, Argument) {
    (Argument::Input(0), Argument::Input(1), Argument::Output(0))
}

fn gather(site: &Site<'_>) -> Option<Selected> {
    let operator = site.operator::<Gather>()?;
    let gathering = gathering(site, operator.axis)?;
    let (output, _) = site.resident(site.output_fact(0)?)?;
    let mut expected = gathering.shape.clone();
    expected.splice(gathering.axis..=gathering.axis, gathering.indices.iter().copied());
    // Indices into nothing are out of range, which the host reports.
    if output != expected || (gathering.shape.contains(&0) && !gathering.indices.contains(&0)) {
        return None;
    }
    let launches = match output.contains(&0) {
        true => vec![],
        false => {
            let (from, indices, to) = arguments();
            vec![gathering.slices(from, indices, to)]
        }
    };
    Some(Selected::single("gather", launches, vec![0, 1]))
}

fn gather_elements(site: &Site<'_>) -> Option<Selected> {
    if site.node.operator.name() != "GatherElements" {
        return None;
    }
    let axis = site.node.origin.as_ref()?.attributes.int_or("axis", 0).ok()?;
    let gathering = gathering(site, axis)?;
    let sizes = gathering.indices.iter().zip(&gathering.shape).enumerate();
    let fits = gathering.indices.len() == gathering.shape.len()
        && !gathering.shape.contains(&0)
        && !gathering.indices.contains(&0)
        && sizes.into_iter().all(|(at, (picked, size))| at == gathering.axis || picked <= size);
    fits.then(|| {
        let (from, indices, to) = arguments();
        let launch = gathering.elements(from, indices, to);
        Selected::single("gather_elements", vec![launch], vec![0, 1])
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Precision;
    use crate::plan::select::testing::{OneNode, Operand, given};
    use weft_ir::{Attributes, DataType};

    fn indices(shape: &[usize]) -> Operand {
        Operand::Given(DataType::I64, shape.to_vec())
    }

    fn launches(operator: &str, operands: Vec<Operand>) -> Option<usize> {
        let node = OneNode::new(operator, operands, Attributes::new());
        let selected = select(&node.site(Precision::F16)).unwrap()?;
        assert_eq!(selected.reads, [0, 1]);
        Some(selected.candidates[0].launches.len())
    }

    #[test]
    fn indices_may_be_of_any_shape() {
        assert_eq!(launches("Gather", vec![given(&[9, 8]), indices(&[2, 3])]), Some(1));
        assert_eq!(launches("Gather", vec![given(&[9, 8]), indices(&[])]), Some(1));
        assert_eq!(launches("Gather", vec![given(&[9, 8]), indices(&[0])]), Some(0));
        assert_eq!(launches("GatherElements", vec![given(&[9, 8]), indices(&[2, 8])]), Some(1));
    }

    #[test]
    fn what_cannot_be_picked_from_is_left_to_the_host() {
        assert_eq!(launches("Gather", vec![given(&[0, 8]), indices(&[2])]), None);
        assert_eq!(launches("GatherElements", vec![given(&[9, 4]), indices(&[2, 8])]), None);
        let truths = Operand::Given(DataType::U8, vec![2]);
        assert_eq!(launches("Gather", vec![given(&[9, 8]), truths]), None);
    }
}
