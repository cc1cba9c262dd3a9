//! How much outputs take that are not in the answer.

use weft_ir::{DataType, checked_count};
use weft_protocol::data_types;

/// The bytes of an output of a type and a shape, as a server states them.
pub(crate) fn output_size(data_type: &str, shape: &[i64]) -> Result<usize, String> {
    let known = data_types::from_wire_name(data_type);
    let known = known.filter(|&known| known != DataType::String);
    let known = known.ok_or_else(|| format!("an output of type '{data_type}'"))?;
    let shape = shape.iter().map(|&size| usize::try_from(size)).collect::<Result<Vec<_>, _>>();
    let shape = shape.map_err(|_| "an output of an open shape".to_string())?;
    let count = checked_count(&shape, known).map_err(|error| error.to_string())?;
    Ok(count * known.size_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_follow_from_types_and_shapes() {
        assert_eq!(output_size("FP32", &[1, 128, 384]), Ok(196_608));
        assert_eq!(output_size("BOOL", &[]), Ok(1));
        for (data_type, shape) in
            [("BYTES", &[1i64][..]), ("FP33", &[1]), ("FP32", &[-1]), ("FP32", &[i64::MAX, 4])]
        {
            assert!(output_size(data_type, shape).is_err(), "{data_type} {shape:?}");
        }
    }
}
