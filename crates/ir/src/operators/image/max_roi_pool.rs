//! MaxRoiPool: regions of feature maps pooled to one size by the maximum of each bin.

use std::sync::Arc;

use super::regions::{batch_index, feature_maps, output_size};
use crate::error::OperatorError;
use crate::fact::Fact;
use crate::operator::{InputFacts, Inputs, NodeSource, Operator};
use crate::tensor::{Tensor, checked_count};
use crate::value::Value;

#[derive(Clone, Debug)]
struct MaxRoiPool {
    /// Height and width of the output.
    output: [usize; 2],
    spatial_scale: f32,
}

pub(super) fn build(source: &NodeSource<'_>) -> Result<Arc<dyn Operator>, OperatorError> {
    let shape = source.attributes.ints("pooled_shape")?.unwrap_or_default();
    Ok(Arc::new(MaxRoiPool {
        output: output_size("pooled_shape", shape)?,
        spatial_scale: source.attributes.float_or("spatial_scale", 1.0)?,
    }))
}

impl MaxRoiPool {
    /// First and one past the last element of each bin along one axis.
    fn bins(&self, start: f32, end: f32, bins: usize, size: usize) -> Vec<(usize, usize)> {
        let [start, end] = [start, end].map(|edge| (edge * self.spatial_scale).round());
        let bin = (end - start + 1.0).max(1.0) / bins as f32;
        let within = |edge: f32| (edge + start).clamp(0.0, size as f32) as usize;
        (0..bins)
            .map(|index| {
                let index = index as f32;
                (within((index * bin).floor()), within(((index + 1.0) * bin).ceil()))
            })
            .collect()
    }
}

impl Operator for MaxRoiPool {
    fn name(&self) -> &'static str {
        "MaxRoiPool"
    }

    fn evaluate(&self, inputs: &Inputs<'_>) -> Result<Vec<Value>, OperatorError> {
        let (x, regions) = (inputs.tensor(0)?, inputs.tensor(1)?);
        let [batch, channels, height, width] = feature_maps(x)?;
        let &[count, 5] = regions.shape() else {
            return Err(OperatorError::Invalid(format!("regions of shape {:?}", regions.shape())));
        };
        let shape = vec![count, channels, self.output[0], self.output[1]];
        let mut y = Vec::with_capacity(checked_count(&shape, x.data_type())?);
        let (elements, regions) = (x.to_f64s()?, regions.to_f32s()?);
        let area = height * width;
        for region in regions.chunks_exact(5) {
            let image = batch_index(region[0] as i64, batch)?;
            let columns = self.bins(region[1], region[3], self.output[1], width);
            let rows = self.bins(region[2], region[4], self.output[0], height);
            for channel in 0..channels {
                let plane = &elements[(image * channels + channel) * area..][..area];
                for &(top, bottom) in &rows {
                    for &(left, right) in &columns {
                        let bin = (top..bottom)
                            .flat_map(|row| (left..right).map(move |c| plane[row * width + c]));
                        y.push(bin.reduce(f64::max).unwrap_or(0.0));
                    }
                }
            }
        }
        Ok(vec![Tensor::from_f64s(shape, x.data_type(), y)?.into()])
    }

    fn infer(&self, inputs: &InputFacts<'_>) -> Result<Vec<Fact>, OperatorError> {
        let first = |index: usize, axis: usize| {
            inputs.dimensions(index).and_then(|dimensions| dimensions.get(axis).copied().flatten())
        };
        let [height, width] = self.output.map(Some);
        let dimensions = Some(vec![first(1, 0), first(0, 1), height, width]);
        Ok(vec![Fact::partial(inputs.data_type(0), dimensions)])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attribute::Attributes;
    use crate::builder::standard_operator;

    #[test]
    fn bins_are_pooled_and_hostile_regions_do_no_harm() {
        let attributes = Attributes::new().with("pooled_shape", vec![2, 2]);
        let pool = standard_operator("MaxRoiPool", 7, &attributes).unwrap();
        let x = Tensor::from_vec(vec![1, 1, 4, 4], (0..16).map(|i| i as f32).collect()).unwrap();
        let run = |region: [f32; 5]| {
            let regions = Tensor::from_vec(vec![1, 5], region.to_vec()).unwrap();
            let values = [Some(x.clone().into()), Some(regions.into())];
            pool.evaluate(&Inputs::new(&values, 1))?.remove(0).into_tensor()?.into_elements::<f32>()
        };
        assert_eq!(run([0.0, 0.0, 0.0, 3.0, 3.0]), Ok(vec![5.0, 7.0, 13.0, 15.0]));
        assert_eq!(run([0.0, 2.0, 2.0, 9.0, 9.0]), Ok(vec![15.0, 0.0, 0.0, 0.0]));
        assert!(run([0.0, f32::NAN, f32::NEG_INFINITY, f32::INFINITY, 3.0]).is_ok());
        assert!(run([1.0, 0.0, 0.0, 3.0, 3.0]).is_err());
    }
}
