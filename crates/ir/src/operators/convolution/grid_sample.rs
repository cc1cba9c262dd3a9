//! GridSample: an image sampled at the points that a grid lists.

use std::sync::Arc;

use super::image::ImageShape;
use super::point::{AxisTap, combined};
use super::resize_axis::cubic;
use crate::error::OperatorError;
use crate::fact::Fact;
use crate::operator::{InputFacts, Inputs, NodeSource, Operator};
use crate::tensor::{Tensor, checked_count};
use crate::value::Value;

/// The coefficient of cubic interpolation, which the standard fixes.
const CUBIC: f64 = -0.75;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Mode {
    Nearest,
    Linear,
    Cubic,
}

/// What lies outside the image.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Outside {
    Zeros,
    Border,
    Reflection,
}

#[derive(Clone, Debug)]
struct GridSample {
    mode: Mode,
    outside: Outside,
    /// The grid's extremes are the centres of the corner elements instead of their outer corners.
    align_corners: bool,
}

pub(super) fn build(source: &NodeSource<'_>) -> Result<Arc<dyn Operator>, OperatorError> {
    let unknown = |name: &str, given: &str| OperatorError::Attribute {
        name: name.into(),
        problem: format!("'{given}' is unknown"),
    };
    let mode = match source.attributes.string_or("mode", "linear")? {
        "linear" | "bilinear" => Mode::Linear,
        "cubic" | "bicubic" => Mode::Cubic,
        "nearest" => Mode::Nearest,
        other => return Err(unknown("mode", other)),
    };
    let outside = match source.attributes.string_or("padding_mode", "zeros")? {
        "zeros" => Outside::Zeros,
        "border" => Outside::Border,
        "reflection" => Outside::Reflection,
        other => return Err(unknown("padding_mode", other)),
    };
    let align_corners = source.attributes.int_or("align_corners", 0)? != 0;
    Ok(Arc::new(GridSample { mode, outside, align_corners }))
}

/// The coordinate mirrored at both borders until it lies between them.
fn reflected(x: f64, low: f64, high: f64) -> f64 {
    let range = high - low;
    if range <= 0.0 || !x.is_finite() {
        return low;
    }
    let folded = (x - low).rem_euclid(2.0 * range);
    low + if folded > range { 2.0 * range - folded } else { folded }
}

impl GridSample {
    /// The elements along an axis that a grid's coordinate stands for.
    fn taps(&self, coordinate: f64, size: usize) -> Vec<AxisTap> {
        let length = size as f64;
        let (low, high) =
            if self.align_corners { (0.0, length - 1.0) } else { (-0.5, length - 0.5) };
        let mut x = low + (coordinate + 1.0) / 2.0 * (high - low);
        if self.mode == Mode::Nearest {
            x = x.round_ties_even();
        }
        if !(low..=high).contains(&x) {
            x = match self.outside {
                Outside::Zeros => x,
                Outside::Border => x.clamp(0.0, length - 1.0),
                Outside::Reflection => reflected(x, low, high),
            };
        }
        let base = x.floor();
        let first = if self.mode == Mode::Cubic { base - 1.0 } else { base };
        let count = match self.mode {
            Mode::Nearest => 1,
            Mode::Linear => 2,
            Mode::Cubic => 4,
        };
        (0..count)
            .filter_map(|tap| {
                let position = first + f64::from(tap);
                let weight = match self.mode {
                    Mode::Nearest => 1.0,
                    Mode::Linear => 1.0 - (position - x).abs(),
                    Mode::Cubic => cubic(position - x, CUBIC),
                };
                let inside = match self.outside {
                    Outside::Zeros => position,
                    Outside::Border => position.clamp(0.0, length - 1.0),
                    Outside::Reflection => {
                        reflected(position, low, high).trunc().clamp(0.0, length - 1.0)
                    }
                };
                (0.0..length).contains(&inside).then_some((inside as usize, weight))
            })
            .collect()
    }
}

impl Operator for GridSample {
    fn name(&self) -> &'static str {
        "GridSample"
    }

    fn evaluate(&self, inputs: &Inputs<'_>) -> Result<Vec<Value>, OperatorError> {
        let (x, grid) = (inputs.tensor(0)?, inputs.tensor(1)?);
        let input = ImageShape::split(x.shape(), false)?;
        let rank = input.spatial.len();
        let spatial = match grid.shape() {
            [batch, spatial @ .., axes]
                if *batch == input.batch && *axes == rank && spatial.len() == rank =>
            {
                spatial.to_vec()
            }
            other => {
                return Err(OperatorError::Shapes {
                    left: x.shape().to_vec(),
                    right: other.to_vec(),
                });
            }
        };
        if input.positions() == 0 {
            return Err(OperatorError::Invalid("an image without elements to sample".into()));
        }
        let output = ImageShape { spatial, ..input.clone() };
        let (elements, grid) = (x.to_f64s()?, grid.to_f64s()?);
        let mut y = vec![0.0; checked_count(&output.joined(), x.data_type())?];
        for (index, point) in grid.chunks_exact(rank).enumerate() {
            let (image, position) = (index / output.positions(), index % output.positions());
            // The grid lists the innermost axis first.
            let axes: Vec<Vec<AxisTap>> = point
                .iter()
                .rev()
                .zip(&input.spatial)
                .map(|(&coordinate, &size)| self.taps(coordinate, size))
                .collect();
            let taps = combined(&axes, &input.spatial);
            for channel in 0..input.channels {
                let plane = input.plane(image, channel);
                y[output.plane(image, channel).at(position)] =
                    taps.iter().map(|&(place, weight)| weight * elements[plane.at(place)]).sum();
            }
        }
        Ok(vec![Tensor::from_f64s(output.joined(), x.data_type(), y)?.into()])
    }

    fn infer(&self, inputs: &InputFacts<'_>) -> Result<Vec<Fact>, OperatorError> {
        let dimensions = match (inputs.dimensions(0), inputs.dimensions(1)) {
            (Some(x), Some(grid)) if x.len() == grid.len() => {
                let input = ImageShape::split(x, false)?;
                let spatial = grid[1..grid.len() - 1].to_vec();
                Some(ImageShape { spatial, ..input }.joined())
            }
            _ => None,
        };
        Ok(vec![Fact::partial(inputs.data_type(0), dimensions)])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn far_coordinates_reflect_into_range() {
        for (x, low, high, expected) in [
            (-3.5, -1.0, 1.0, 0.5),
            (-0.75, -0.5, 3.5, -0.25),
            (4.0, -0.5, 3.5, 3.0),
            (1.0, 0.0, 0.0, 0.0),
            (f64::INFINITY, 0.0, 3.0, 0.0),
        ] {
            assert_eq!(reflected(x, low, high), expected, "{x}");
        }
    }
}
