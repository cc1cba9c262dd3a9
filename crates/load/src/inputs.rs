//! Inputs that a model takes, drawn from a seed.

use half::{bf16, f16};
use rand::Rng;
use rand::rngs::SmallRng;
use weft_ir::{DataType, Element, Tensor, checked_count};

/// Whole numbers are below this, as words of most vocabularies are.
const WHOLE_NUMBERS: u32 = 1000;

/// Elements for an input of this name, type and shape; a type that cannot be drawn, or a size past all limits, is told in
/// words. Real numbers are between 0 and 1; whole numbers are small, as they often stand for words, masks are all ones and
/// types of words all zero.
pub(crate) fn draw(
    name: &str,
    data_type: DataType,
    shape: Vec<usize>,
    random: &mut SmallRng,
) -> Result<Tensor, String> {
    let count = checked_count(&shape, data_type).map_err(|error| error.to_string())?;
    let name = name.to_ascii_lowercase();
    let whole_numbers = match name {
        _ if name.contains("mask") => 1..2,
        _ if name.contains("type") || name.contains("segment") => 0..1,
        _ => 0..WHOLE_NUMBERS,
    };
    let mut real = || random.random::<f32>();
    let tensor = match data_type {
        DataType::F32 => filled(shape, count, real),
        DataType::F64 => filled(shape, count, || f64::from(real())),
        DataType::F16 => filled(shape, count, || f16::from_f32(real())),
        DataType::BF16 => filled(shape, count, || bf16::from_f32(real())),
        _ => {
            let mut whole = || random.random_range(whole_numbers.clone());
            match data_type {
                DataType::I64 => filled(shape, count, || i64::from(whole())),
                DataType::I32 => filled(shape, count, || whole() as i32),
                DataType::I16 => filled(shape, count, || whole() as i16),
                DataType::I8 => filled(shape, count, || (whole() % 128) as i8),
                DataType::U64 => filled(shape, count, || u64::from(whole())),
                DataType::U32 => filled(shape, count, whole),
                DataType::U16 => filled(shape, count, || whole() as u16),
                DataType::U8 => filled(shape, count, || (whole() % 256) as u8),
                DataType::Bool => filled(shape, count, || whole() % 2 == 1),
                DataType::String => filled(shape, count, || whole().to_string()),
                other => return Err(format!("inputs of type {other} cannot be drawn")),
            }
        }
    };
    Ok(tensor)
}

fn filled<T: Element>(shape: Vec<usize>, count: usize, draw: impl FnMut() -> T) -> Tensor {
    let elements: Vec<T> = std::iter::repeat_with(draw).take(count).collect();
    Tensor::from_vec(shape, elements).expect("as many elements as the shape has room for")
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::*;

    fn drawn(name: &str, data_type: DataType, shape: Vec<usize>, seed: u64) -> Tensor {
        draw(name, data_type, shape, &mut SmallRng::seed_from_u64(seed)).unwrap()
    }

    #[test]
    fn every_type_that_the_protocol_has_is_drawn_from_the_seed() {
        use DataType::*;
        for data_type in [F32, F64, F16, BF16, I8, I16, I32, I64, U8, U16, U32, U64, Bool, String] {
            let of_seed = |seed| drawn("x", data_type, vec![2, 40], seed);
            assert_eq!(of_seed(1).data_type(), data_type);
            assert_eq!(of_seed(1).shape(), [2, 40]);
            assert_eq!(of_seed(1), of_seed(1));
            assert_ne!(of_seed(1), of_seed(2));
        }
    }

    #[test]
    fn whole_numbers_suit_what_inputs_are_named() {
        let numbers = |name| drawn(name, DataType::I64, vec![1, 500], 3).into_elements::<i64>();
        assert!(numbers("input_ids").unwrap().iter().all(|number| (0..1000).contains(number)));
        assert!(numbers("attention_mask").unwrap().iter().all(|&number| number == 1));
        assert!(numbers("token_type_ids").unwrap().iter().all(|&number| number == 0));
    }

    #[test]
    fn what_cannot_be_drawn_is_told() {
        let mut random = SmallRng::seed_from_u64(1);
        assert!(draw("x", DataType::Complex64, vec![1], &mut random).is_err());
        assert!(draw("x", DataType::F32, vec![usize::MAX, 2], &mut random).is_err());
    }
}
