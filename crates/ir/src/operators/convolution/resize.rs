//! Resize and Upsample: axes grown or shrunk by interpolation.

use std::sync::Arc;

use super::resize_axis::{AxisResize, AxisSamples, Coordinates, Interpolation, Rounding, Sampling};
use crate::axis::{around_axis, normalise_axis};
use crate::broadcast::strided_indices;
use crate::data_type::DataType;
use crate::error::OperatorError;
use crate::fact::Fact;
use crate::operator::{InputFacts, Inputs, NodeSource, Operator};
use crate::tensor::{Tensor, checked_count, strides};
use crate::value::Value;

/// What stated sizes mean for the ratio of the axes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AspectRatio {
    /// It may change.
    Stretch,
    /// It is kept, and no axis gets larger than stated.
    NotLarger,
    /// It is kept, and no axis gets smaller than stated.
    NotSmaller,
}

/// Axes resized to stated sizes, or by stated scales, one axis after another.
#[derive(Clone, Debug)]
pub struct Resize {
    /// How input elements make an output element.
    pub interpolation: Interpolation,
    /// How coordinates correspond.
    pub coordinates: Coordinates,
    /// The axes that scales, sizes and regions are for; all of them in order where absent.
    pub axes: Option<Vec<i64>>,
    /// The filter widens where an axis shrinks.
    pub antialias: bool,
    /// Elements outside the input weigh nothing, instead of repeating the edge.
    pub exclude_outside: bool,
    /// What lies outside the input, where the coordinates can.
    pub extrapolation_value: f32,
    /// What stated sizes mean for the ratio of the axes.
    pub aspect_ratio: AspectRatio,
    /// Which input holds the scales; later ones hold sizes.
    scales_input: usize,
    /// Scales from an attribute, as old models have them.
    fixed_scales: Option<Vec<f32>>,
}

fn choice<T: Copy>(
    source: &NodeSource<'_>,
    name: &str,
    default: &str,
    choices: &[(&str, T)],
) -> Result<T, OperatorError> {
    let given = source.attributes.string_or(name, default)?;
    choices.iter().find(|choice| choice.0 == given).map(|choice| choice.1).ok_or_else(|| {
        OperatorError::Attribute { name: name.into(), problem: format!("'{given}' is unknown") }
    })
}

pub(super) fn build(source: &NodeSource<'_>) -> Result<Arc<dyn Operator>, OperatorError> {
    let attributes = source.attributes;
    let simple = source.operator == "Upsample" || source.opset < 11;
    let nearest = match simple {
        true => Rounding::Floor,
        false => choice(
            source,
            "nearest_mode",
            "round_prefer_floor",
            &[
                ("round_prefer_floor", Rounding::PreferFloor),
                ("round_prefer_ceil", Rounding::PreferCeil),
                ("floor", Rounding::Floor),
                ("ceil", Rounding::Ceil),
            ],
        )?,
    };
    let cubic = attributes.float_or("cubic_coeff_a", -0.75)?;
    let interpolation = choice(
        source,
        "mode",
        "nearest",
        &[
            ("nearest", Interpolation::Nearest(nearest)),
            ("linear", Interpolation::Linear),
            ("bilinear", Interpolation::Linear),
            ("cubic", Interpolation::Cubic(cubic)),
        ],
    )?;
    let coordinates = choice(
        source,
        "coordinate_transformation_mode",
        if simple { "asymmetric" } else { "half_pixel" },
        &[
            ("half_pixel", Coordinates::HalfPixel),
            ("half_pixel_symmetric", Coordinates::HalfPixelSymmetric),
            ("pytorch_half_pixel", Coordinates::TorchHalfPixel),
            ("align_corners", Coordinates::AlignCorners),
            ("asymmetric", Coordinates::Asymmetric),
            ("tf_crop_and_resize", Coordinates::CropAndResize),
        ],
    )?;
    let aspect_ratio = choice(
        source,
        "keep_aspect_ratio_policy",
        "stretch",
        &[
            ("stretch", AspectRatio::Stretch),
            ("not_larger", AspectRatio::NotLarger),
            ("not_smaller", AspectRatio::NotSmaller),
        ],
    )?;
    Ok(Arc::new(Resize {
        interpolation,
        coordinates,
        axes: attributes.ints("axes")?.map(<[i64]>::to_vec),
        antialias: attributes.int_or("antialias", 0)? != 0
            && !matches!(interpolation, Interpolation::Nearest(_)),
        exclude_outside: attributes.int_or("exclude_outside", 0)? != 0,
        extrapolation_value: attributes.float_or("extrapolation_value", 0.0)?,
        aspect_ratio,
        scales_input: if simple { 1 } else { 2 },
        fixed_scales: attributes.floats("scales")?.map(<[f32]>::to_vec),
    }))
}

/// What a node's inputs ask for, as far as known.
struct Request<'a> {
    region: Option<&'a Tensor>,
    scales: Option<&'a Tensor>,
    sizes: Option<&'a Tensor>,
}

impl Resize {
    fn request<'a>(&self, tensor: impl Fn(usize) -> Option<&'a Tensor>) -> Request<'a> {
        // An empty tensor is how models say that they state the other one.
        let stated = |index| tensor(index).filter(|tensor| !tensor.is_empty());
        Request {
            region: stated(1).filter(|_| self.scales_input > 1),
            scales: stated(self.scales_input),
            sizes: stated(self.scales_input + 1),
        }
    }

    /// The axes to resize and to what, for an input of the given shape and the node's other inputs,
    /// of which those that are not constants in a graph may be looked up by index.
    pub fn resolve<'a>(
        &self,
        shape: &[usize],
        tensor: impl Fn(usize) -> Option<&'a Tensor>,
    ) -> Result<Vec<AxisResize>, OperatorError> {
        let Request { region, scales, sizes } = self.request(tensor);
        let axes = self.axes_for(shape.len())?;
        let fits = |list: &[f64], per_axis: usize| {
            if list.len() == axes.len() * per_axis {
                Ok(())
            } else {
                Err(OperatorError::Shapes { left: vec![list.len()], right: vec![axes.len()] })
            }
        };
        let mut resizes: Vec<AxisResize> = axes
            .iter()
            .map(|&axis| {
                let size = shape[axis];
                AxisResize { axis, input: size, output: size, scale: 1.0, region: (0.0, 1.0) }
            })
            .collect();
        if let (Some(region), Coordinates::CropAndResize) = (region, self.coordinates) {
            let region = region.to_f64s()?;
            fits(&region, 2)?;
            for (index, resize) in resizes.iter_mut().enumerate() {
                resize.region = (region[index], region[index + axes.len()]);
            }
        }
        if let Some(sizes) = sizes {
            let sizes: Vec<f64> = sizes.to_i64s()?.iter().map(|&size| size as f64).collect();
            fits(&sizes, 1)?;
            self.apply_sizes(&mut resizes, &sizes)?;
        } else {
            let scales = match (scales, &self.fixed_scales) {
                (Some(scales), _) => scales.to_f64s()?,
                (None, Some(fixed)) => fixed.iter().map(|&scale| scale.into()).collect(),
                (None, None) => return Err(OperatorError::MissingInput(self.scales_input)),
            };
            fits(&scales, 1)?;
            for (resize, scale) in resizes.iter_mut().zip(scales) {
                resize.scale = scale;
                // In f32, so that a scale such as 0.7 gives 7 of 10 elements.
                resize.output = size((resize.input as f32 * scale as f32).floor().into())?;
            }
        }
        if resizes.iter().any(|resize| !(resize.scale > 0.0 && resize.scale.is_finite())) {
            return Err(OperatorError::Invalid(format!("cannot resize {shape:?} by {resizes:?}")));
        }
        Ok(resizes)
    }

    fn apply_sizes(&self, resizes: &mut [AxisResize], sizes: &[f64]) -> Result<(), OperatorError> {
        for (resize, &target) in resizes.iter_mut().zip(sizes) {
            resize.output = size(target)?;
            // An empty axis stays empty whatever its scale.
            resize.scale = if resize.input == 0 { 1.0 } else { target / resize.input as f64 };
        }
        let scales = resizes.iter().map(|resize| resize.scale);
        let kept = match self.aspect_ratio {
            AspectRatio::Stretch => return Ok(()),
            AspectRatio::NotLarger => scales.fold(f64::INFINITY, f64::min),
            AspectRatio::NotSmaller => scales.fold(0.0, f64::max),
        };
        for resize in resizes {
            resize.scale = kept;
            resize.output = size((kept * resize.input as f64 + 0.5).floor())?;
        }
        Ok(())
    }

    fn axes_for(&self, rank: usize) -> Result<Vec<usize>, OperatorError> {
        match &self.axes {
            None => Ok((0..rank).collect()),
            Some(axes) => {
                // In their own order, which scales and sizes follow; repeats are refused.
                crate::axis::normalise_axes(axes, rank)?;
                axes.iter().map(|&axis| normalise_axis(axis, rank)).collect()
            }
        }
    }

    /// Where each output element along an axis samples the input.
    pub fn samples(&self, axis: &AxisResize) -> Result<AxisSamples, OperatorError> {
        axis.samples(Sampling {
            interpolation: self.interpolation,
            coordinates: self.coordinates,
            antialias: self.antialias,
            exclude_outside: self.exclude_outside,
        })
    }

    fn nearest(&self, x: &Tensor, resizes: &[AxisResize]) -> Result<Tensor, OperatorError> {
        let mut y = x.clone();
        for resize in resizes.iter().filter(|resize| !resize.is_identity()) {
            let samples = self.samples(resize)?;
            let mut shape = y.shape().to_vec();
            let step = strides(&shape);
            shape[resize.axis] = resize.output;
            checked_count(&shape, DataType::I64)?;
            let mut around = shape.clone();
            around[resize.axis] = 1;
            let (_, _, after) = around_axis(&shape, resize.axis);
            let starts = strided_indices(&around, &step, 0);
            let indices: Vec<usize> = starts
                .chunks(after.max(1))
                .flat_map(|starts| {
                    samples.sources.iter().flat_map(move |source| {
                        starts.iter().map(move |start| start + source * after)
                    })
                })
                .collect();
            y = y.gathered(shape, &indices)?;
        }
        Ok(y)
    }

    fn weighted(&self, x: &Tensor, resizes: &[AxisResize]) -> Result<Tensor, OperatorError> {
        let integers = x.to_i64s().ok();
        let mut y = match &integers {
            Some(integers) => integers.iter().map(|&element| element as f64).collect(),
            None => x.to_f64s()?,
        };
        let mut shape = x.shape().to_vec();
        for resize in resizes.iter().filter(|resize| !resize.is_identity()) {
            let samples = self.samples(resize)?;
            shape[resize.axis] = resize.output;
            let count = checked_count(&shape, DataType::F64)?;
            let (_, _, after) = around_axis(&shape, resize.axis);
            let mut next = Vec::with_capacity(count);
            for slab in y.chunks((resize.input * after).max(1)) {
                for position in 0..resize.output {
                    let start = next.len();
                    next.resize(start + after, 0.0);
                    let row = &mut next[start..];
                    if samples.outside.get(position) == Some(&true) {
                        row.fill(f64::from(self.extrapolation_value));
                        continue;
                    }
                    for tap in position * samples.taps..(position + 1) * samples.taps {
                        let (source, weight) = (samples.sources[tap], samples.weights[tap]);
                        for (sum, &element) in row.iter_mut().zip(&slab[source * after..]) {
                            *sum += weight * element;
                        }
                    }
                }
            }
            y = next;
        }
        if integers.is_some() {
            rounded(shape, x.data_type(), &y)
        } else {
            Tensor::from_f64s(shape, x.data_type(), y)
        }
    }
}

/// A dimension from a computed number.
fn size(size: f64) -> Result<usize, OperatorError> {
    if (0.0..=u32::MAX.into()).contains(&size) {
        Ok(size as usize)
    } else {
        Err(OperatorError::Invalid(format!("cannot resize to {size} elements")))
    }
}

/// Integers of the given type, rounded to even and saturated.
fn rounded(shape: Vec<usize>, data_type: DataType, y: &[f64]) -> Result<Tensor, OperatorError> {
    macro_rules! saturate {
        ($rust:ty) => {
            Tensor::from_vec(shape, y.iter().map(|y| y.round_ties_even() as $rust).collect())
        };
    }
    match data_type {
        DataType::I8 => saturate!(i8),
        DataType::I16 => saturate!(i16),
        DataType::I32 => saturate!(i32),
        DataType::I64 => saturate!(i64),
        DataType::U8 => saturate!(u8),
        DataType::U16 => saturate!(u16),
        DataType::U32 => saturate!(u32),
        DataType::U64 => saturate!(u64),
        given => Err(OperatorError::WrongType { expected: "an integer".into(), given }),
    }
}

impl Operator for Resize {
    fn name(&self) -> &'static str {
        "Resize"
    }

    fn evaluate(&self, inputs: &Inputs<'_>) -> Result<Vec<Value>, OperatorError> {
        let x = inputs.tensor(0)?;
        let resizes =
            self.resolve(x.shape(), |index| inputs.optional_tensor(index).ok().flatten())?;
        let crops = self.coordinates == Coordinates::CropAndResize;
        let y = match self.interpolation {
            Interpolation::Nearest(_) if !crops => self.nearest(x, &resizes)?,
            _ => self.weighted(x, &resizes)?,
        };
        Ok(vec![y.into()])
    }

    fn infer(&self, inputs: &InputFacts<'_>) -> Result<Vec<Fact>, OperatorError> {
        let data_type = inputs.data_type(0);
        let Some(dimensions) = inputs.dimensions(0) else {
            return Ok(vec![Fact::partial(data_type, None)]);
        };
        let mut inferred = dimensions.to_vec();
        // Stand-in sizes for unknown axes, whose results are dropped again.
        let shape: Vec<usize> = dimensions.iter().map(|size| size.unwrap_or(1)).collect();
        let axes = self.axes_for(shape.len())?;
        let given =
            |input| inputs.constant(input).is_some_and(|constant: &Tensor| !constant.is_empty());
        let sizes = self.scales_input + 1;
        let by_size = given(sizes);
        // Sizes that are not known yet may turn out to be stated, and then go before scales.
        let is_late = inputs.fact(sizes).is_some() && inputs.constant(sizes).is_none();
        let is_stated = by_size || given(self.scales_input) || self.fixed_scales.is_some();
        let resizes = match is_stated && !is_late {
            true => self.resolve(&shape, |i| inputs.constant(i))?,
            false => vec![],
        };
        let ratio_known = self.aspect_ratio == AspectRatio::Stretch
            || axes.iter().all(|&axis| dimensions[axis].is_some());
        for (index, axis) in axes.into_iter().enumerate() {
            inferred[axis] = resizes
                .get(index)
                .filter(|_| ratio_known && (dimensions[axis].is_some() || by_size))
                .map(|resize| resize.output);
        }
        Ok(vec![Fact::partial(data_type, Some(inferred))])
    }

    fn permuted(&self, permutation: &[usize]) -> Option<Arc<dyn Operator>> {
        let axes = self.axes_for(permutation.len()).ok()?;
        let moved = axes.iter().map(|&axis| {
            permutation.iter().position(|&old| old == axis).map(|position| position as i64)
        });
        Some(Arc::new(Resize { axes: Some(moved.collect::<Option<_>>()?), ..self.clone() }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attribute::Attributes;
    use crate::builder::standard_operator;
    use crate::operators::layout::transpose;

    #[test]
    fn permuted_axes_resize_the_same() {
        let elements = (0..24).map(|i| (i * 7 % 13) as f32).collect();
        let x = Tensor::from_vec(vec![1, 2, 3, 4], elements).unwrap();
        let scales = Tensor::vector(vec![1f32, 1.0, 2.0, 0.5]);
        for mode in ["nearest", "linear", "cubic"] {
            let attributes = Attributes::new().with("mode", mode);
            let first = standard_operator("Resize", 13, &attributes).unwrap();
            let run = |operator: &dyn Operator, x: &Tensor| {
                let values = [Some(x.clone().into()), None, Some(scales.clone().into())];
                let made = operator.evaluate(&Inputs::new(&values, 1)).unwrap().remove(0);
                made.into_tensor().unwrap()
            };
            let expected = run(&*first, &x);
            assert_eq!(expected.shape(), &[1, 2, 6, 2]);
            let last = first.permuted(&[0, 2, 3, 1]).unwrap();
            let given = run(&*last, &transpose(&x, &[0, 2, 3, 1]).unwrap());
            assert_eq!(given, transpose(&expected, &[0, 2, 3, 1]).unwrap(), "{mode}");
        }
    }

    #[test]
    fn unknown_dimensions_stay_unknown_unless_stated() {
        let resize = standard_operator("Resize", 13, &Attributes::new()).unwrap();
        let x = Fact::partial(Some(DataType::F32), Some(vec![None, Some(3)]));
        let scales = Fact::constant(Tensor::vector(vec![1f32, 2.0]));
        let sizes = Fact::constant(Tensor::vector(vec![5i64, 7]));
        let infer = |facts: &[Option<&Fact>]| {
            resize.infer(&InputFacts::new(facts, 1)).unwrap().remove(0).dimensions.unwrap()
        };
        assert_eq!(infer(&[Some(&x), None, Some(&scales)]), [None, Some(6)]);
        assert_eq!(infer(&[Some(&x), None, None, Some(&sizes)]), [Some(5), Some(7)]);
        let empty = Fact::constant(Tensor::vector(Vec::<i64>::new()));
        assert_eq!(infer(&[Some(&x), None, Some(&scales), Some(&empty)]), [None, Some(6)]);
        assert_eq!(infer(&[Some(&x), None, None, Some(&Fact::unknown())]), [None, None]);
    }

    #[test]
    fn hostile_scales_and_sizes_are_refused() {
        let resize = standard_operator("Resize", 13, &Attributes::new()).unwrap();
        let x = Tensor::filled(vec![2, 2], 1f32).unwrap();
        for scales in
            [vec![1f32], vec![1.0, -1.0], vec![1.0, f32::NAN], vec![1.0, 1e30], vec![1e6, 1e6]]
        {
            let values =
                [Some(x.clone().into()), None, Some(Tensor::vector(scales.clone()).into())];
            assert!(resize.evaluate(&Inputs::new(&values, 1)).is_err(), "{scales:?}");
        }
    }
}
