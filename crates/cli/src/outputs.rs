//! How far outputs of one model lie apart that were computed in two ways.

use anyhow::{Context, Result, ensure};
use weft_ir::Value;

/// The norm of the difference of two outputs, relative to that of the first.
pub(crate) fn difference(expected: &Value, actual: &Value) -> Result<f64> {
    let numbers = |value: &Value| -> Result<Vec<f64>> {
        Ok(value.tensor().context("an output that is no tensor")?.to_f64s()?)
    };
    let (expected, actual) = (numbers(expected)?, numbers(actual)?);
    ensure!(expected.len() == actual.len(), "outputs of different sizes");
    let norm = |values: &mut dyn Iterator<Item = f64>| values.map(|x| x * x).sum::<f64>().sqrt();
    let off = norm(&mut expected.iter().zip(&actual).map(|(a, b)| a - b));
    // Written so that it is no number where one of them is none.
    Ok(off / norm(&mut expected.iter().copied()))
}
