//! The highest values of an output, as texts `value:index`.

use weft_ir::{OperatorError, Tensor};

/// The highest `count` of each row, the highest first; the whole tensor is one row where it has no batch.
pub(crate) fn classified(
    tensor: &Tensor,
    count: usize,
    has_batch: bool,
) -> Result<Tensor, OperatorError> {
    let values = to_numbers(tensor)?;
    let rows = if has_batch { tensor.shape().first().copied().unwrap_or(1) } else { 1 };
    let width = values.len().checked_div(rows).unwrap_or(0);
    let kept = count.min(width);
    let mut texts = Vec::with_capacity(rows * kept);
    for row in values.chunks_exact(width.max(1)) {
        let mut order: Vec<usize> = (0..row.len()).collect();
        // Equal values keep their order, and what is no number comes last.
        let rank =
            |index: &usize| if row[*index].is_nan() { f64::NEG_INFINITY } else { row[*index] };
        order.sort_by(|a, b| rank(b).total_cmp(&rank(a)));
        let best = order.iter().take(kept);
        texts.extend(best.map(|&index| format!("{:.6}:{index}", row[index])));
    }
    let shape = if has_batch { vec![rows, kept] } else { vec![kept] };
    Tensor::from_vec(shape, texts)
}

fn to_numbers(tensor: &Tensor) -> Result<Vec<f64>, OperatorError> {
    if tensor.data_type().is_float() {
        tensor.to_f64s()
    } else {
        Ok(tensor.to_i64s()?.iter().map(|&number| number as f64).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_has_its_own_highest() {
        let scores = vec![0.1f32, 0.7, 0.2, 9.0, -1.0, f32::NAN];
        let tensor = Tensor::from_vec(vec![2, 3], scores).unwrap();
        let best = classified(&tensor, 2, true).unwrap();
        assert_eq!(best.shape(), [2, 2]);
        let texts = best.elements::<String>().unwrap();
        assert_eq!(texts, ["0.700000:1", "0.200000:2", "9.000000:0", "-1.000000:1"]);
    }

    #[test]
    fn more_than_there_are_is_all_there_are() {
        let tensor = Tensor::vector(vec![3i32, 5]);
        let best = classified(&tensor, 10, false).unwrap();
        assert_eq!(best.elements::<String>().unwrap(), ["5.000000:1", "3.000000:0"]);
        assert!(classified(&Tensor::vector(vec![String::new()]), 1, false).is_err());
    }
}
