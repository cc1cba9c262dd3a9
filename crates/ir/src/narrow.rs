//! Floats of 8 bits and fewer, which are stored as codes: what a code means, and the code nearest to a number.

use crate::data_type::DataType;

/// What becomes of a number that the type cannot hold exactly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rounding {
    /// Numbers out of range become the largest there is; otherwise infinity or not-a-number, as the type has them.
    pub saturate: bool,
    /// Which neighbour a number between two powers of two becomes; only `float8e8m0` heeds it.
    pub mode: RoundMode,
}

impl Default for Rounding {
    fn default() -> Self {
        Self { saturate: true, mode: RoundMode::Up }
    }
}

/// Rounding to a power of two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum RoundMode {
    Up,
    Down,
    /// Ties go up.
    Nearest,
}

impl RoundMode {
    /// The mode by its name in ONNX.
    pub fn from_onnx(name: &str) -> Option<Self> {
        match name {
            "up" => Some(RoundMode::Up),
            "down" => Some(RoundMode::Down),
            "nearest" => Some(RoundMode::Nearest),
            _ => None,
        }
    }
}

/// How a narrow float with sign, exponent and mantissa is laid out.
struct Layout {
    mantissa_bits: u32,
    bias: i32,
    /// The code of the largest finite number, sign left out.
    largest: u8,
    /// The code of infinity, sign left out.
    infinity: Option<u8>,
    /// The code of not-a-number; for types without one, what stands in.
    not_a_number: u8,
    sign: u8,
    /// The code of minus zero is free for zero, as it is where it means not-a-number.
    unsigned_zero: bool,
}

fn layout(data_type: DataType) -> Option<Layout> {
    let layout = |mantissa_bits, bias, largest, infinity, not_a_number, unsigned_zero| Layout {
        mantissa_bits,
        bias,
        largest,
        infinity,
        not_a_number,
        sign: 0x80,
        unsigned_zero,
    };
    Some(match data_type {
        DataType::F8E4M3FN => layout(3, 7, 0x7E, None, 0x7F, false),
        DataType::F8E4M3FNUZ => layout(3, 8, 0x7F, None, 0x80, true),
        DataType::F8E5M2 => layout(2, 15, 0x7B, Some(0x7C), 0x7E, false),
        DataType::F8E5M2FNUZ => layout(2, 16, 0x7F, None, 0x80, true),
        DataType::F4E2M1 => Layout { sign: 0x08, ..layout(1, 1, 0x07, None, 0x08, false) },
        _ => return None,
    })
}

/// The number that a code of the narrow float type means; integers of fewer than 8 bits are read as numbers too.
/// Not-a-number for any other type.
pub fn decode(data_type: DataType, code: u8) -> f32 {
    match data_type {
        DataType::F8E8M0 => match code {
            0xFF => f32::NAN,
            code => power_of_two(i32::from(code) - 127) as f32,
        },
        DataType::I4 | DataType::I2 => f32::from(code as i8),
        DataType::U4 | DataType::U2 => f32::from(code),
        _ => layout(data_type).map_or(f32::NAN, |layout| layout.decode(code)),
    }
}

/// The code of the number nearest to `value` that the narrow float type holds, ties to the even code.
/// Zero for types that are no narrow floats.
pub fn encode(data_type: DataType, value: f32, rounding: Rounding) -> u8 {
    match data_type {
        DataType::F8E8M0 => encode_power(value, rounding),
        _ => layout(data_type).map_or(0, |layout| layout.encode(value, rounding.saturate)),
    }
}

fn power_of_two(exponent: i32) -> f64 {
    2f64.powi(exponent)
}

impl Layout {
    fn decode(&self, code: u8) -> f32 {
        let magnitude = code & (self.sign - 1);
        let is_special = match self.infinity {
            Some(infinity) if magnitude == infinity => {
                return if code & self.sign == 0 { f32::INFINITY } else { f32::NEG_INFINITY };
            }
            _ if self.unsigned_zero => code == self.not_a_number,
            _ => magnitude > self.largest,
        };
        if is_special {
            return f32::NAN;
        }
        let number = self.magnitude(magnitude) as f32;
        if code & self.sign == 0 { number } else { -number }
    }

    /// The value of a code without sign.
    fn magnitude(&self, code: u8) -> f64 {
        let exponent = i32::from(code >> self.mantissa_bits);
        let mantissa = i32::from(code & ((1 << self.mantissa_bits) - 1));
        // Below the smallest exponent, numbers are subnormal: evenly spaced and without the leading one.
        let leading = if exponent == 0 { 0 } else { 1 << self.mantissa_bits };
        let scale = exponent.max(1) - self.bias - self.mantissa_bits as i32;
        f64::from(leading + mantissa) * power_of_two(scale)
    }

    fn encode(&self, value: f32, saturate: bool) -> u8 {
        let sign = if value.is_sign_negative() { self.sign } else { 0 };
        if value.is_nan() {
            return if self.unsigned_zero || self.sign != 0x80 {
                self.not_a_number
            } else {
                sign | self.not_a_number
            };
        }
        let code = self.nearest(f64::from(value.abs()));
        // A code past the largest stands for whatever is out of range after rounding.
        if code > u32::from(self.largest) {
            // Types of fewer than 8 bits have nothing but numbers.
            if saturate || self.sign != 0x80 {
                return sign | self.largest;
            }
            return match self.infinity {
                Some(infinity) => sign | infinity,
                None if self.unsigned_zero => self.not_a_number,
                None => sign | self.not_a_number,
            };
        }
        if code == 0 && self.unsigned_zero { 0 } else { sign | code as u8 }
    }

    /// The nearest code without sign, as if the exponent had no end.
    fn nearest(&self, value: f64) -> u32 {
        if value.is_infinite() {
            return u32::MAX;
        }
        let smallest = 1 - self.bias;
        let exponent = (((value.to_bits() >> 52) as i32) - 1023).max(smallest);
        let steps = (value / power_of_two(exponent - self.mantissa_bits as i32)).round_ties_even();
        // Codes count on through the powers of two, so a carry out of the mantissa lands right.
        (((exponent - smallest) as u32) << self.mantissa_bits) + steps as u32
    }
}

/// `float8e8m0` has neither sign nor mantissa: its codes are the powers of two from -127 to 127.
fn encode_power(value: f32, rounding: Rounding) -> u8 {
    const NOT_A_NUMBER: u8 = 0xFF;
    if value.is_nan() {
        return NOT_A_NUMBER;
    }
    let magnitude = f64::from(value.abs());
    let below =
        if magnitude == 0.0 { i32::MIN } else { ((magnitude.to_bits() >> 52) as i32) - 1023 };
    let ratio = if magnitude == 0.0 { 1.0 } else { magnitude / power_of_two(below) };
    let up = match rounding.mode {
        RoundMode::Up => ratio > 1.0,
        RoundMode::Down => false,
        RoundMode::Nearest => ratio >= 1.5,
    };
    let exponent = if magnitude.is_infinite() { i32::MAX } else { below + i32::from(up) };
    match exponent {
        -127..=127 => (exponent + 127) as u8,
        _ if !rounding.saturate => NOT_A_NUMBER,
        exponent if exponent < 0 => 0,
        _ => 0xFE,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FLOATS: [DataType; 6] = [
        DataType::F8E4M3FN,
        DataType::F8E4M3FNUZ,
        DataType::F8E5M2,
        DataType::F8E5M2FNUZ,
        DataType::F8E8M0,
        DataType::F4E2M1,
    ];

    #[test]
    fn every_code_round_trips() {
        for data_type in FLOATS {
            for code in 0..=if data_type == DataType::F4E2M1 { 15 } else { 255 } {
                let value = decode(data_type, code);
                let again =
                    encode(data_type, value, Rounding { saturate: false, ..Rounding::default() });
                assert!(
                    again == code || value.is_nan(),
                    "{data_type} {code:#x}: {value}, {again:#x}"
                );
            }
        }
    }

    #[test]
    fn a_number_goes_to_the_nearest_code() {
        for data_type in FLOATS.into_iter().filter(|&data_type| data_type != DataType::F8E8M0) {
            let largest = layout(data_type).unwrap().largest;
            for code in 0..largest {
                let (below, above) = (decode(data_type, code), decode(data_type, code + 1));
                let middle = (below + above) / 2.0;
                let even = if code % 2 == 0 { code } else { code + 1 };
                let encoded = |value| encode(data_type, value, Rounding::default());
                assert_eq!(encoded(middle), even, "{data_type} {code:#x}");
                assert_eq!(encoded(f32::from_bits(middle.to_bits() - 1)), code);
                assert_eq!(encoded(f32::from_bits(middle.to_bits() + 1)), code + 1);
            }
        }
    }

    #[test]
    fn what_is_out_of_range_saturates_or_not() {
        let cases = [
            (DataType::F8E4M3FN, 1e6, 0x7E, 0x7F),
            (DataType::F8E4M3FN, -1e6, 0xFE, 0xFF),
            (DataType::F8E4M3FNUZ, f32::NEG_INFINITY, 0xFF, 0x80),
            (DataType::F8E5M2, 1e6, 0x7B, 0x7C),
            (DataType::F8E5M2FNUZ, -0.0, 0x00, 0x00),
            (DataType::F4E2M1, -8.0, 0x0F, 0x0F),
            (DataType::F8E8M0, f32::INFINITY, 0xFE, 0xFF),
            (DataType::F8E8M0, 0.0, 0x00, 0xFF),
        ];
        for (data_type, value, saturated, not) in cases {
            let encoded =
                |saturate| encode(data_type, value, Rounding { saturate, ..Rounding::default() });
            assert_eq!((encoded(true), encoded(false)), (saturated, not), "{data_type} {value}");
        }
    }

    #[test]
    fn powers_of_two_round_by_mode() {
        for (mode, code) in
            [(RoundMode::Up, 129), (RoundMode::Down, 128), (RoundMode::Nearest, 129)]
        {
            assert_eq!(encode(DataType::F8E8M0, 3.0, Rounding { saturate: true, mode }), code);
        }
        let nearest = Rounding { saturate: true, mode: RoundMode::Nearest };
        assert_eq!(encode(DataType::F8E8M0, 2.9, nearest), 128);
    }
}
