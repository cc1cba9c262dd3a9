//! RoiAlign: regions of feature maps pooled to one size through points between the elements.

use std::sync::Arc;

use super::regions::{batch_index, feature_maps, output_size};
use crate::error::OperatorError;
use crate::fact::Fact;
use crate::operator::{InputFacts, Inputs, NodeSource, Operator};
use crate::tensor::{Tensor, checked_count};
use crate::value::Value;

/// The most points of one bin; a region that asks for more is refused.
const MAX_POINTS: f64 = (1 << 20) as f64;

#[derive(Clone, Debug)]
struct RoiAlign {
    /// Height and width of the output.
    output: [usize; 2],
    /// Points per bin along each axis; 0 for one per element that the bin spans.
    sampling_ratio: usize,
    spatial_scale: f32,
    /// Regions are moved by half an element, so that coordinates are those of element centres.
    half_pixel: bool,
    /// The maximum of the points' weighted corners, instead of the mean of the points.
    maximum: bool,
}

pub(super) fn build(source: &NodeSource<'_>) -> Result<Arc<dyn Operator>, OperatorError> {
    let attributes = source.attributes;
    let unknown = |name: &str, given: &str| OperatorError::Attribute {
        name: name.into(),
        problem: format!("'{given}' is unknown"),
    };
    let maximum = match attributes.string_or("mode", "avg")? {
        "avg" => false,
        "max" => true,
        other => return Err(unknown("mode", other)),
    };
    let default = if source.opset < 16 { "output_half_pixel" } else { "half_pixel" };
    let half_pixel = match attributes.string_or("coordinate_transformation_mode", default)? {
        "half_pixel" => true,
        "output_half_pixel" => false,
        other => return Err(unknown("coordinate_transformation_mode", other)),
    };
    let output = [attributes.int_or("output_height", 1)?, attributes.int_or("output_width", 1)?];
    Ok(Arc::new(RoiAlign {
        output: output_size("output_height", &output)?,
        sampling_ratio: usize::try_from(attributes.int_or("sampling_ratio", 0)?).unwrap_or(0),
        spatial_scale: attributes.float_or("spatial_scale", 1.0)?,
        half_pixel,
        maximum,
    }))
}

/// The two elements around a coordinate with their weights; none where it lies too far outside.
fn around(coordinate: f64, size: usize) -> Option<[(usize, f64); 2]> {
    if !(-1.0..=size as f64).contains(&coordinate) || size == 0 {
        return None;
    }
    let coordinate = coordinate.clamp(0.0, (size - 1) as f64);
    let low = coordinate.floor();
    let high = (low as usize + 1).min(size - 1);
    Some([(low as usize, 1.0 - (coordinate - low)), (high, coordinate - low)])
}

impl RoiAlign {
    /// The coordinates of the points of each bin along one axis.
    fn points(&self, start: f32, end: f32, bins: usize) -> Result<Vec<Vec<f64>>, OperatorError> {
        let shift = if self.half_pixel { 0.5 } else { 0.0 };
        let [start, end] =
            [start, end].map(|edge| f64::from(edge) * f64::from(self.spatial_scale) - shift);
        // Without the shift, degenerate regions count as one element large.
        let length = if self.half_pixel { end - start } else { (end - start).max(1.0) };
        let bin = length / bins as f64;
        let count = match self.sampling_ratio {
            0 => bin.ceil().max(0.0),
            ratio => ratio as f64,
        };
        if !(count * bins as f64 <= MAX_POINTS && start.is_finite()) {
            return Err(OperatorError::Invalid(format!("a region from {start} to {end}")));
        }
        let point = |index: usize, within: usize| {
            start + index as f64 * bin + (within as f64 + 0.5) * bin / count
        };
        let points = |index| (0..count as usize).map(|within| point(index, within)).collect();
        Ok((0..bins).map(points).collect())
    }

    fn pooled(&self, plane: &[f64], width: usize, ys: &[f64], xs: &[f64]) -> f64 {
        let height = plane.len().checked_div(width).unwrap_or(0);
        let corners = |y: f64, x: f64| match (around(y, height), around(x, width)) {
            (Some(rows), Some(columns)) => rows.map(|(row, down)| {
                columns.map(|(column, across)| plane[row * width + column] * down * across)
            }),
            _ => [[0.0; 2]; 2],
        };
        let points = ys.iter().flat_map(|&y| xs.iter().map(move |&x| corners(y, x)));
        if self.maximum {
            points.flatten().flatten().reduce(f64::max).unwrap_or(0.0)
        } else {
            let count = (ys.len() * xs.len()).max(1);
            points.flatten().flatten().sum::<f64>() / count as f64
        }
    }
}

impl Operator for RoiAlign {
    fn name(&self) -> &'static str {
        "RoiAlign"
    }

    fn evaluate(&self, inputs: &Inputs<'_>) -> Result<Vec<Value>, OperatorError> {
        let (x, regions, images) = (inputs.tensor(0)?, inputs.tensor(1)?, inputs.tensor(2)?);
        let [batch, channels, height, width] = feature_maps(x)?;
        let images = images.to_i64s()?;
        if regions.shape() != [images.len(), 4] {
            return Err(OperatorError::Shapes {
                left: regions.shape().to_vec(),
                right: vec![images.len(), 4],
            });
        }
        let shape = vec![images.len(), channels, self.output[0], self.output[1]];
        let mut y = Vec::with_capacity(checked_count(&shape, x.data_type())?);
        let (elements, regions) = (x.to_f64s()?, regions.to_f32s()?);
        let area = height * width;
        for (region, &image) in regions.chunks_exact(4).zip(images.iter()) {
            let image = batch_index(image, batch)?;
            let columns = self.points(region[0], region[2], self.output[1])?;
            let rows = self.points(region[1], region[3], self.output[0])?;
            for channel in 0..channels {
                let plane = &elements[(image * channels + channel) * area..][..area];
                for row in &rows {
                    y.extend(columns.iter().map(|column| self.pooled(plane, width, row, column)));
                }
            }
        }
        Ok(vec![Tensor::from_f64s(shape, x.data_type(), y)?.into()])
    }

    fn infer(&self, inputs: &InputFacts<'_>) -> Result<Vec<Fact>, OperatorError> {
        let regions = inputs
            .dimensions(1)
            .and_then(|regions| regions.first().copied().flatten())
            .or_else(|| inputs.dimensions(2).and_then(|images| images.first().copied().flatten()));
        let channels = inputs.dimensions(0).and_then(|x| x.get(1).copied().flatten());
        let [height, width] = self.output.map(Some);
        let dimensions = Some(vec![regions, channels, height, width]);
        Ok(vec![Fact::partial(inputs.data_type(0), dimensions)])
    }
}
