//! Axes grown or shrunk.

use weft_ir::Tensor;
use weft_ir::operators::convolution::{Coordinates, Interpolation, Resize};

use super::super::site::{Selected, Selection, Site};
use crate::kernels::convert::convert_launch;
use crate::kernels::resize::Resizing;
use crate::launch::Argument;

pub(super) fn select(site: &Site<'_>) -> Selection {
    let Some(operator) = site.operator::<Resize>() else { return Ok(None) };
    let Some(request) = request(site, operator) else { return Ok(None) };
    let (from, to) = (Argument::Input(0), Argument::Output(0));
    let launches = match request {
        Request::Nothing => vec![],
        Request::Copy { count } => {
            let Some((_, storage)) = site.input_fact(0).and_then(|fact| site.resident(fact)) else {
                return Ok(None);
            };
            vec![convert_launch(storage, storage, count, from, to)]
        }
        Request::Resize(resizing) => {
            // The store takes weights as floats; these stand for the tables' bits.
            let words: Vec<f32> = bytemuck::pod_collect_to_vec(&resizing.tables());
            let bits = |words: &[f32]| bytemuck::cast_slice(words).to_vec();
            let tables = site.weights.get_or_make(&Tensor::vector(words), "bits".into(), bits)?;
            vec![resizing.launch(Argument::Weights(tables), from, to)]
        }
    };
    Ok(Some(Selected::single("resize", launches, vec![0])))
}

/// What there is to do.
enum Request {
    Nothing,
    Copy { count: usize },
    Resize(Resizing),
}

fn request(site: &Site<'_>, operator: &Resize) -> Option<Request> {
    let (shape, storage) = site.resident(site.input_fact(0)?)?;
    let (output, _) = site.resident(site.output_fact(0)?)?;
    let all_known = (1..site.node.inputs.len())
        .all(|index| !site.has_input(index) || site.constant(index).is_some());
    if !all_known || operator.coordinates == Coordinates::CropAndResize {
        return None;
    }
    let resizes = operator.resolve(&shape, |index| site.constant(index)).ok()?;
    let mut expected = shape.clone();
    resizes.iter().for_each(|resize| expected[resize.axis] = resize.output);
    if expected != output {
        return None;
    }
    if output.contains(&0) {
        return Some(Request::Nothing);
    }
    let moving = resizes.iter().filter(|resize| !resize.is_identity());
    let with_samples = moving.map(|resize| Some((*resize, operator.samples(resize).ok()?)));
    let resizes = with_samples.collect::<Option<Vec<_>>>()?;
    if resizes.is_empty() {
        return Some(Request::Copy { count: output.iter().product() });
    }
    let is_nearest = matches!(operator.interpolation, Interpolation::Nearest(_));
    Resizing::new(storage, is_nearest, &shape, &resizes).map(Request::Resize)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Precision;
    use crate::plan::select::testing::{OneNode, Operand, given};
    use weft_ir::{Attributes, DataType};

    fn template(scales: Operand, attributes: Attributes) -> Option<&'static str> {
        let operands = vec![given(&[1, 8, 6, 6]), Operand::Absent, scales];
        let node = OneNode::new("Resize", operands, attributes);
        let selected = select(&node.site(Precision::F16)).unwrap()?;
        Some(selected.candidates[0].launches[0].source.template)
    }

    #[test]
    fn known_scales_have_a_kernel() {
        let scales = |scale: f32| Operand::Constant(Tensor::vector(vec![1.0, 1.0, scale, scale]));
        for mode in ["nearest", "linear", "cubic"] {
            let attributes = Attributes::new().with("mode", mode);
            assert_eq!(template(scales(2.0), attributes.clone()), Some("resize.cu"));
            assert_eq!(template(scales(1.0), attributes), Some("convert.cu"));
        }
    }

    #[test]
    fn computed_scales_and_regions_are_left_to_the_host() {
        let computed = Operand::Given(DataType::F32, vec![4]);
        assert_eq!(template(computed, Attributes::new()), None);
        let crop = Attributes::new().with("coordinate_transformation_mode", "tf_crop_and_resize");
        let scales = Operand::Constant(Tensor::vector(vec![1f32, 1.0, 2.0, 2.0]));
        assert_eq!(template(scales, crop), None);
    }
}
