//! MelWeightMatrix: the triangular filters that turn a spectrum into bands of the mel scale.

use std::sync::Arc;

use crate::data_type::DataType;
use crate::error::OperatorError;
use crate::fact::Fact;
use crate::operator::{InputFacts, Inputs, NodeSource, Operator};
use crate::tensor::{Tensor, checked_count};
use crate::value::Value;

use super::scalar::{numeric_tensor, output_type, positive, scalar_integer};

#[derive(Debug)]
struct MelWeightMatrix {
    data_type: DataType,
}

pub(super) fn build(source: &NodeSource<'_>) -> Result<Arc<dyn Operator>, OperatorError> {
    Ok(Arc::new(MelWeightMatrix { data_type: output_type(source.attributes)? }))
}

fn hertz_to_mel(hertz: f64) -> f64 {
    2595.0 * (1.0 + hertz / 700.0).log10()
}

fn mel_to_hertz(mel: f64) -> f64 {
    700.0 * (10f64.powf(mel / 2595.0) - 1.0)
}

fn scalar_float(tensor: &Tensor) -> Result<f64, OperatorError> {
    match tensor.to_f64s()?[..] {
        [float] if float.is_finite() => Ok(float),
        ref other => Err(OperatorError::Invalid(format!("{other:?} is not one finite number"))),
    }
}

impl Operator for MelWeightMatrix {
    fn name(&self) -> &'static str {
        "MelWeightMatrix"
    }

    fn evaluate(&self, inputs: &Inputs<'_>) -> Result<Vec<Value>, OperatorError> {
        let integer = |index, name| positive(name, scalar_integer(inputs.tensor(index)?)?);
        let bands = integer(0, "num_mel_bins")?;
        let dft_length = integer(1, "dft_length")?;
        let sample_rate = integer(2, "sample_rate")?;
        let low = hertz_to_mel(scalar_float(inputs.tensor(3)?)?);
        let high = hertz_to_mel(scalar_float(inputs.tensor(4)?)?);

        let bins = dft_length / 2 + 1;
        let shape = vec![bins, bands];
        let mut weights = vec![0.0; checked_count(&shape, DataType::F64)?];
        let step = (high - low) / (bands + 2) as f64;
        let edge = |index: usize| {
            let hertz = mel_to_hertz(low + index as f64 * step);
            let bin = ((dft_length + 1) as f64 * hertz / sample_rate as f64).floor();
            // The cast saturates, also from NaN and below zero.
            bin as usize
        };
        for band in 0..bands {
            let (left, centre, right) = (edge(band), edge(band + 1), edge(band + 2));
            if centre >= bins {
                return Err(OperatorError::Invalid(format!("band {band} lies past the spectrum")));
            }
            let mut set = |bin: usize, weight: f64| weights[bin * bands + band] = weight;
            for bin in left..centre {
                set(bin, (bin - left) as f64 / (centre - left) as f64);
            }
            set(centre, 1.0);
            for bin in centre + 1..right.min(bins) {
                set(bin, (right - bin) as f64 / (right - centre) as f64);
            }
        }
        Ok(vec![numeric_tensor(shape, self.data_type, weights)?.into()])
    }

    fn infer(&self, inputs: &InputFacts<'_>) -> Result<Vec<Fact>, OperatorError> {
        let integer = |index, name| match inputs.constant(index) {
            Some(given) => positive(name, scalar_integer(given)?).map(Some),
            None => Ok(None),
        };
        let bands = integer(0, "num_mel_bins")?;
        let bins = integer(1, "dft_length")?.map(|length| length / 2 + 1);
        Ok(vec![Fact::partial(Some(self.data_type), Some(vec![bins, bands]))])
    }
}
