//! Whether answers to equal inputs are alike.

/// How answers to equal inputs are compared with the first of them. Their size is always compared.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum AnswerCheck {
    /// Not at all.
    Size,
    /// Every bit.
    Bits,
    /// Numbers of `f32` may differ by this share of themselves, or of 1 where they are smaller; all else by nothing.
    Close(f32),
}

impl AnswerCheck {
    /// The check of a model: outputs of other types than `f32` have no numbers to compare, but bits.
    pub(crate) fn of(self, has_only_f32_outputs: bool) -> Self {
        match self {
            AnswerCheck::Close(_) if !has_only_f32_outputs => AnswerCheck::Bits,
            other => other,
        }
    }

    /// What is different between two outputs of one size, in words.
    pub(crate) fn difference(self, first: &[u8], other: &[u8]) -> Option<String> {
        match self {
            AnswerCheck::Size => None,
            _ if first == other => None,
            AnswerCheck::Bits => {
                let place = first.iter().zip(other).position(|(one, other)| one != other)?;
                Some(format!("byte {place} of {} differs", first.len()))
            }
            AnswerCheck::Close(tolerance) => {
                let pairs = numbers(first).zip(numbers(other)).enumerate();
                let mut different = pairs.filter(|&(_, (one, other))| {
                    let is_same = one.to_bits() == other.to_bits();
                    let allowed = tolerance * one.abs().max(1.0);
                    !(is_same || one.is_finite() && (one - other).abs() <= allowed)
                });
                different.next().map(|(place, (one, other))| {
                    format!("number {place} of {} is {other} and was {one}", first.len() / 4)
                })
            }
        }
    }
}

fn numbers(bytes: &[u8]) -> impl Iterator<Item = f32> {
    bytes.as_chunks().0.iter().map(|&bytes| f32::from_le_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(numbers: &[f32]) -> Vec<u8> {
        numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
    }

    #[test]
    fn differences_are_found_as_far_as_was_asked_for() {
        let first = bytes(&[100.0, 0.001, f32::NAN, f32::INFINITY]);
        let differs = |check: AnswerCheck, other: &[f32]| check.difference(&first, &bytes(other));
        let same = [100.0, 0.001, f32::NAN, f32::INFINITY];
        let near = [100.05, 0.0015, f32::NAN, f32::INFINITY];
        let far = [100.0, 0.003, f32::NAN, f32::INFINITY];
        let finite = [100.0, 0.001, f32::NAN, 1.0];
        let close = AnswerCheck::Close(1e-3);
        for other in [same, near, far, finite] {
            assert_eq!(differs(AnswerCheck::Size, &other), None);
        }
        for check in [AnswerCheck::Bits, close] {
            assert_eq!(differs(check, &same), None);
        }
        assert_eq!(differs(close, &near), None);
        assert_eq!(differs(AnswerCheck::Bits, &near).unwrap(), "byte 0 of 16 differs");
        assert_eq!(differs(close, &far).unwrap(), "number 1 of 4 is 0.003 and was 0.001");
        assert_eq!(differs(close, &finite).unwrap(), "number 3 of 4 is 1 and was inf");
    }

    #[test]
    fn what_is_not_of_numbers_is_compared_by_bits() {
        assert_eq!(AnswerCheck::Close(0.1).of(false), AnswerCheck::Bits);
        assert_eq!(AnswerCheck::Close(0.1).of(true), AnswerCheck::Close(0.1));
        assert_eq!(AnswerCheck::Size.of(false), AnswerCheck::Size);
    }
}
