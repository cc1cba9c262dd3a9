//! HannWindow, HammingWindow and BlackmanWindow: sums of cosines that fade a frame out at its ends.

use std::f64::consts::PI;
use std::sync::Arc;

use crate::data_type::DataType;
use crate::error::OperatorError;
use crate::fact::Fact;
use crate::operator::{InputFacts, Inputs, NodeSource, Operator};
use crate::tensor::checked_count;
use crate::value::Value;

use super::scalar::{numeric_tensor, output_type, positive, scalar_integer};

/// `a + b cos(t) + c cos(2 t)`, `t` running from 0 to 2 pi.
#[derive(Debug)]
struct Window {
    name: &'static str,
    coefficients: [f64; 3],
    periodic: bool,
    data_type: DataType,
}

fn build(
    source: &NodeSource<'_>,
    name: &'static str,
    coefficients: [f64; 3],
) -> Result<Arc<dyn Operator>, OperatorError> {
    Ok(Arc::new(Window {
        name,
        coefficients,
        periodic: source.attributes.flag_or("periodic", true)?,
        data_type: output_type(source.attributes)?,
    }))
}

pub(super) fn build_hann(source: &NodeSource<'_>) -> Result<Arc<dyn Operator>, OperatorError> {
    build(source, "HannWindow", [0.5, -0.5, 0.0])
}

pub(super) fn build_hamming(source: &NodeSource<'_>) -> Result<Arc<dyn Operator>, OperatorError> {
    build(source, "HammingWindow", [25.0 / 46.0, -21.0 / 46.0, 0.0])
}

pub(super) fn build_blackman(source: &NodeSource<'_>) -> Result<Arc<dyn Operator>, OperatorError> {
    build(source, "BlackmanWindow", [0.42, -0.5, 0.08])
}

impl Operator for Window {
    fn name(&self) -> &'static str {
        self.name
    }

    fn evaluate(&self, inputs: &Inputs<'_>) -> Result<Vec<Value>, OperatorError> {
        let size = positive("size", scalar_integer(inputs.tensor(0)?)?)?;
        checked_count(&[size], DataType::F64)?;
        // A symmetric window ends where a periodic one would begin again; one of a single sample has no end.
        let period = if self.periodic { size } else { (size - 1).max(1) };
        let [constant, first, second] = self.coefficients;
        let elements = (0..size)
            .map(|index| {
                let angle = 2.0 * PI * index as f64 / period as f64;
                constant + first * angle.cos() + second * (2.0 * angle).cos()
            })
            .collect();
        Ok(vec![numeric_tensor(vec![size], self.data_type, elements)?.into()])
    }

    fn infer(&self, inputs: &InputFacts<'_>) -> Result<Vec<Fact>, OperatorError> {
        let size = match inputs.constant(0) {
            Some(given) => Some(positive("size", scalar_integer(given)?)?),
            None => None,
        };
        Ok(vec![Fact::partial(Some(self.data_type), Some(vec![size]))])
    }
}
