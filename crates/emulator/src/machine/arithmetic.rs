//! What instructions compute of numbers, lane by lane.

use std::cmp::Ordering;

use half::{bf16, f16};

use super::lanes::Lanes;
use super::ptx::instruction::{Binary, Comparison, Conversion, Kind, Rounding, Ternary, Unary};

/// Bits as a number, and back.
trait Number: Copy {
    fn of(bits: u64) -> Self;
    fn bits(self) -> u64;
}

macro_rules! numbers {
    ($($type:ty as $unsigned:ty),*) => {$(
        impl Number for $type {
            fn of(bits: u64) -> Self {
                bits as $unsigned as $type
            }
            fn bits(self) -> u64 {
                u64::from(self as $unsigned)
            }
        }
    )*};
}
numbers!(
    u8 as u8, i8 as u8, u16 as u16, i16 as u16, u32 as u32, i32 as u32, u64 as u64, i64 as u64
);

impl Number for f32 {
    fn of(bits: u64) -> Self {
        Self::from_bits(bits as u32)
    }
    fn bits(self) -> u64 {
        self.to_bits().into()
    }
}
impl Number for f64 {
    fn of(bits: u64) -> Self {
        Self::from_bits(bits)
    }
    fn bits(self) -> u64 {
        self.to_bits()
    }
}
impl Number for f16 {
    fn of(bits: u64) -> Self {
        Self::from_bits(bits as u16)
    }
    fn bits(self) -> u64 {
        self.to_bits().into()
    }
}
impl Number for bf16 {
    fn of(bits: u64) -> Self {
        Self::from_bits(bits as u16)
    }
    fn bits(self) -> u64 {
        self.to_bits().into()
    }
}

fn map<T: Number, R: Number>(a: &Lanes, f: impl Fn(T) -> R) -> Lanes {
    a.map(|a| f(T::of(a)).bits())
}

fn map_two<T: Number, R: Number>(a: &Lanes, b: &Lanes, f: impl Fn(T, T) -> R) -> Lanes {
    std::array::from_fn(|lane| f(T::of(a[lane]), T::of(b[lane])).bits())
}

fn map_three<T: Number, R: Number>([a, b, c]: [&Lanes; 3], f: impl Fn(T, T, T) -> R) -> Lanes {
    std::array::from_fn(|lane| f(T::of(a[lane]), T::of(b[lane]), T::of(c[lane])).bits())
}

/// The result in all lanes; `None` where there is no such instruction.
pub(super) fn unary(of: Unary, kind: Kind, a: &Lanes) -> Option<Lanes> {
    let float = |f: fn(f32) -> f32| map(a, f);
    Some(match (of, kind) {
        (Unary::Negate, Kind::S16) => map(a, i16::wrapping_neg),
        (Unary::Negate, Kind::S32) => map(a, i32::wrapping_neg),
        (Unary::Negate, Kind::S64) => map(a, i64::wrapping_neg),
        (Unary::Negate, Kind::F32) => float(|a| -a),
        (Unary::Negate, Kind::F64) => map(a, |a: f64| -a),
        (Unary::Negate, Kind::F16) => map(a, |a: f16| -a),
        (Unary::Negate, Kind::Bf16) => map(a, |a: bf16| -a),
        (Unary::Absolute, Kind::S32) => map(a, i32::wrapping_abs),
        (Unary::Absolute, Kind::S64) => map(a, i64::wrapping_abs),
        (Unary::Absolute, Kind::F32) => float(f32::abs),
        (Unary::Absolute, Kind::F64) => map(a, f64::abs),
        (Unary::Not, Kind::U16) => map(a, |a: u16| !a),
        (Unary::Not, Kind::U32) => map(a, |a: u32| !a),
        (Unary::Not, Kind::U64) => map(a, |a: u64| !a),
        (Unary::CountOnes, Kind::U32) => map(a, u32::count_ones),
        (Unary::CountOnes, Kind::U64) => map(a, u64::count_ones),
        (Unary::CountLeadingZeros, Kind::U32) => map(a, u32::leading_zeros),
        (Unary::CountLeadingZeros, Kind::U64) => map(a, u64::leading_zeros),
        (Unary::ReverseBits, Kind::U32) => map(a, u32::reverse_bits),
        (Unary::Reciprocal, Kind::F32) => float(f32::recip),
        (Unary::Reciprocal, Kind::F64) => map(a, f64::recip),
        (Unary::SquareRoot, Kind::F32) => float(f32::sqrt),
        (Unary::SquareRoot, Kind::F64) => map(a, f64::sqrt),
        (Unary::ReciprocalSquareRoot, Kind::F32) => float(|a| (1.0 / f64::from(a).sqrt()) as f32),
        (Unary::Exponential2, Kind::F32) => float(f32::exp2),
        (Unary::Logarithm2, Kind::F32) => float(f32::log2),
        (Unary::Sine, Kind::F32) => float(f32::sin),
        (Unary::Cosine, Kind::F32) => float(f32::cos),
        (Unary::Tanh, Kind::F32) => float(f32::tanh),
        _ => return None,
    })
}

/// Floats of 32 bits, of which those that are less than normal ones are zero.
pub(super) fn flushed(a: &Lanes) -> Lanes {
    map(a, |a: f32| if a.is_subnormal() { 0f32.copysign(a) } else { a })
}

/// The same of two.
pub(super) fn binary(of: Binary, kind: Kind, a: &Lanes, b: &Lanes) -> Option<Lanes> {
    match kind {
        Kind::U16 => integer_u16(of, a, b),
        Kind::S16 => integer_i16(of, a, b),
        Kind::U32 => integer_u32(of, a, b),
        Kind::S32 => integer_i32(of, a, b),
        Kind::U64 => integer_u64(of, a, b),
        Kind::S64 => integer_i64(of, a, b),
        Kind::F32 => float_f32(of, a, b),
        Kind::F64 => float_f64(of, a, b),
        Kind::F16 => float_f16(of, a, b),
        Kind::Bf16 => float_bf16(of, a, b),
        Kind::F16x2 => halves(a, b, |a, b| float_f16(of, a, b)),
        Kind::Bf16x2 => halves(a, b, |a, b| float_bf16(of, a, b)),
        Kind::U8 | Kind::S8 => None,
    }
}

/// Both halves of words.
fn halves(a: &Lanes, b: &Lanes, f: impl Fn(&Lanes, &Lanes) -> Option<Lanes>) -> Option<Lanes> {
    let low = f(a, b)?;
    let high = f(&a.map(|a| a >> 16), &b.map(|b| b >> 16))?;
    Some(std::array::from_fn(|lane| high[lane] << 16 | low[lane]))
}

macro_rules! integers {
    ($($name:ident of $type:ty, $half:ty, $double:ty);*) => {$(
        fn $name(of: Binary, a: &Lanes, b: &Lanes) -> Option<Lanes> {
            let shift = |f: fn($type, u32) -> $type, most: fn($type) -> $type| -> Lanes {
                std::array::from_fn(|lane| {
                    let value = <$type>::of(a[lane]);
                    let by = b[lane] as u32;
                    if by < <$type>::BITS { f(value, by) } else { most(value) }.bits()
                })
            };
            let of_two = |f: fn($type, $type) -> $type| map_two(a, b, f);
            Some(match of {
                Binary::Add => of_two(<$type>::wrapping_add),
                Binary::Subtract => of_two(<$type>::wrapping_sub),
                Binary::MultiplyLow => of_two(<$type>::wrapping_mul),
                Binary::MultiplyHigh => of_two(|a, b| {
                    ((a as $double).wrapping_mul(b as $double) >> <$type>::BITS) as $type
                }),
                Binary::MultiplyWide => of_two(|a, b| {
                    (a as $half as $type).wrapping_mul(b as $half as $type)
                }),
                // A GPU has some result where there is none.
                Binary::Divide => of_two(|a, b| if b == 0 { !0 } else { a.wrapping_div(b) }),
                Binary::Remainder => of_two(|a, b| if b == 0 { a } else { a.wrapping_rem(b) }),
                Binary::Minimum => of_two(Ord::min),
                Binary::Maximum => of_two(Ord::max),
                Binary::And => of_two(|a, b| a & b),
                Binary::Or => of_two(|a, b| a | b),
                Binary::Xor => of_two(|a, b| a ^ b),
                Binary::ShiftLeft => shift(|a, by| a << by, |_| 0),
                // What is shifted in is the sign, which unsigned numbers do not have.
                Binary::ShiftRight => shift(|a, by| a >> by, |a| (a >> (<$type>::BITS - 1)) >> 1),
                Binary::MinimumOrNan | Binary::MaximumOrNan | Binary::CopySign => return None,
            })
        }
    )*};
}
integers! {
    integer_u16 of u16, u8, u32;
    integer_i16 of i16, i8, i32;
    integer_u32 of u32, u16, u64;
    integer_i32 of i32, i16, i64;
    integer_u64 of u64, u32, u128;
    integer_i64 of i64, i32, i128
}

macro_rules! floats {
    ($($name:ident of $type:ty);*) => {$(
        fn $name(of: Binary, a: &Lanes, b: &Lanes) -> Option<Lanes> {
            let of_two = |f: fn($type, $type) -> $type| map_two(a, b, f);
            Some(match of {
                Binary::Add => of_two(|a, b| a + b),
                Binary::Subtract => of_two(|a, b| a - b),
                Binary::MultiplyLow => of_two(|a, b| a * b),
                Binary::Divide => of_two(|a, b| a / b),
                Binary::Minimum => of_two(<$type>::min),
                Binary::Maximum => of_two(<$type>::max),
                Binary::MinimumOrNan => {
                    of_two(|a, b| if a.is_nan() || b.is_nan() { <$type>::NAN } else { a.min(b) })
                }
                Binary::MaximumOrNan => {
                    of_two(|a, b| if a.is_nan() || b.is_nan() { <$type>::NAN } else { a.max(b) })
                }
                // The sign is the first one's.
                Binary::CopySign => of_two(|a, b| b.copysign(a)),
                _ => return None,
            })
        }
    )*};
}
floats! { float_f32 of f32; float_f64 of f64; float_f16 of f16; float_bf16 of bf16 }

/// The same of three.
pub(super) fn ternary(of: Ternary, kind: Kind, all: [&Lanes; 3]) -> Option<Lanes> {
    let [a, b, c] = all;
    let words = |f: fn(u32, u32, u32) -> u32| map_three(all, f);
    Some(match (of, kind) {
        (Ternary::MultiplyAddLow, _) => {
            binary(Binary::Add, kind, &binary(Binary::MultiplyLow, kind, a, b)?, c)?
        }
        (Ternary::MultiplyAddHigh, _) => {
            binary(Binary::Add, kind, &binary(Binary::MultiplyHigh, kind, a, b)?, c)?
        }
        (Ternary::MultiplyAddWide, _) => {
            binary(Binary::Add, kind, &binary(Binary::MultiplyWide, kind, a, b)?, c)?
        }
        (Ternary::FusedMultiplyAdd(Rounding::Nearest), Kind::F32) => map_three(all, f32::mul_add),
        // The product is exact in 64 bits; the sum is rounded twice, which changes it once in a billion.
        (Ternary::FusedMultiplyAdd(rounding), Kind::F32) => {
            map_three(all, |a: f32, b: f32, c: f32| {
                rounded(rounding, f64::from(a) * f64::from(b) + f64::from(c))
            })
        }
        (Ternary::FusedMultiplyAdd(Rounding::Nearest), Kind::F64) => map_three(all, f64::mul_add),
        (Ternary::Permute, _) => words(permute),
        (Ternary::ExtractBits, Kind::U32) => words(|a, start, count| {
            let moved = a.checked_shr(start & 255).unwrap_or(0);
            moved & low_bits(count & 255)
        }),
        (Ternary::ExtractBits, Kind::S32) => map_three(all, |a: i32, start: i32, count: i32| {
            let (start, count) = ((start & 255).min(31), (count & 255).min(32));
            if count == 0 {
                return 0;
            }
            let moved = i64::from(a) >> start;
            ((moved << (64 - count)) >> (64 - count)) as i32
        }),
        (Ternary::FunnelLeft, _) => words(|low, high, by| {
            ((u64::from(high) << 32 | u64::from(low)) << (by & 31) >> 32) as u32
        }),
        (Ternary::FunnelRight, _) => {
            words(|low, high, by| ((u64::from(high) << 32 | u64::from(low)) >> (by & 31)) as u32)
        }
        (Ternary::Logic(table), _) => map_three(all, |a: u32, b: u32, c: u32| {
            (0..8).filter(|row| table & (1 << row) != 0).fold(0, |bits, row| {
                let pick = |value: u32, bit: u32| if row & bit != 0 { value } else { !value };
                bits | pick(a, 4) & pick(b, 2) & pick(c, 1)
            })
        }),
        _ => return None,
    })
}

fn low_bits(count: u32) -> u32 {
    if count >= 32 { u32::MAX } else { (1 << count) - 1 }
}

/// Bytes of two words, picked by four digits; a digit's highest bit asks for the byte's sign alone.
fn permute(a: u32, b: u32, digits: u32) -> u32 {
    let bytes = (u64::from(b) << 32 | u64::from(a)).to_le_bytes();
    let picked: [u8; 4] = std::array::from_fn(|index| {
        let digit = digits >> (4 * index);
        let byte = bytes[(digit & 7) as usize];
        if digit & 8 != 0 { (byte as i8 >> 7) as u8 } else { byte }
    });
    u32::from_le_bytes(picked)
}

/// Bits of one value in place of those of another.
pub(super) fn insert_bits(kind: Kind, all: [&Lanes; 4]) -> Lanes {
    let [from, into, start, count] = all;
    let width = kind.bytes() as u32 * 8;
    std::array::from_fn(|lane| {
        let (start, count) = (start[lane] as u32 & 255, count[lane] as u32 & 255);
        if start >= width {
            return into[lane];
        }
        let ones = if count >= 64 { u64::MAX } else { (1 << count) - 1 };
        let mask = (ones << start) & if width == 64 { u64::MAX } else { (1 << width) - 1 };
        into[lane] & !mask | (from[lane] << start) & mask
    })
}

/// The lanes in which a comparison holds, as a mask.
pub(super) fn compare(of: Comparison, or_unordered: bool, kind: Kind, a: &Lanes, b: &Lanes) -> u32 {
    let holds = |ordering: Option<Ordering>| match (of, ordering) {
        (Comparison::Unordered, ordering) => ordering.is_none(),
        (Comparison::Ordered, ordering) => ordering.is_some(),
        (_, None) => or_unordered,
        (Comparison::Equal, Some(ordering)) => ordering.is_eq(),
        (Comparison::NotEqual, Some(ordering)) => ordering.is_ne(),
        (Comparison::Less, Some(ordering)) => ordering.is_lt(),
        (Comparison::LessOrEqual, Some(ordering)) => ordering.is_le(),
        (Comparison::Greater, Some(ordering)) => ordering.is_gt(),
        (Comparison::GreaterOrEqual, Some(ordering)) => ordering.is_ge(),
    };
    fn mask<T: Number + PartialOrd>(
        a: &Lanes,
        b: &Lanes,
        holds: impl Fn(Option<Ordering>) -> bool,
    ) -> u32 {
        super::lanes::mask_of(|lane| holds(T::of(a[lane]).partial_cmp(&T::of(b[lane]))))
    }
    match kind {
        Kind::U8 => mask::<u8>(a, b, holds),
        Kind::S8 => mask::<i8>(a, b, holds),
        Kind::U16 => mask::<u16>(a, b, holds),
        Kind::S16 => mask::<i16>(a, b, holds),
        Kind::U32 => mask::<u32>(a, b, holds),
        Kind::S32 => mask::<i32>(a, b, holds),
        Kind::U64 => mask::<u64>(a, b, holds),
        Kind::S64 => mask::<i64>(a, b, holds),
        Kind::F16 => mask::<f16>(a, b, holds),
        Kind::Bf16 => mask::<bf16>(a, b, holds),
        Kind::F32 => mask::<f32>(a, b, holds),
        Kind::F64 => mask::<f64>(a, b, holds),
        // Two are not compared at once here.
        Kind::F16x2 | Kind::Bf16x2 => 0,
    }
}

/// A number that becomes one of another kind: exact until it is rounded.
#[derive(Clone, Copy)]
enum Exact {
    Integer(i128),
    Float(f64),
}

/// Numbers as those of another kind.
pub(super) fn convert(conversion: Conversion, a: &Lanes) -> Lanes {
    a.map(|bits| convert_one(conversion, bits))
}

fn convert_one(conversion: Conversion, bits: u64) -> u64 {
    let Conversion { to, from, rounding, is_integral, is_saturating } = conversion;
    let exact = match from {
        Kind::U8 => Exact::Integer(u8::of(bits).into()),
        Kind::S8 => Exact::Integer(i8::of(bits).into()),
        Kind::U16 => Exact::Integer(u16::of(bits).into()),
        Kind::S16 => Exact::Integer(i16::of(bits).into()),
        Kind::U32 => Exact::Integer(u32::of(bits).into()),
        Kind::S32 => Exact::Integer(i32::of(bits).into()),
        Kind::U64 => Exact::Integer(bits.into()),
        Kind::S64 => Exact::Integer(i64::of(bits).into()),
        Kind::F16 => Exact::Float(f16::of(bits).to_f64()),
        Kind::Bf16 => Exact::Float(bf16::of(bits).to_f64()),
        Kind::F32 => Exact::Float(f32::of(bits).into()),
        Kind::F64 | Kind::F16x2 | Kind::Bf16x2 => Exact::Float(f64::of(bits)),
    };
    let whole = |value: f64| match rounding {
        Rounding::Nearest => value.round_ties_even(),
        Rounding::Zero => value.trunc(),
        Rounding::Down => value.floor(),
        Rounding::Up => value.ceil(),
    };
    let float = match exact {
        Exact::Integer(value) => odd_double(value),
        Exact::Float(value) if is_integral => whole(value),
        Exact::Float(value) => value,
    };
    let float = if is_saturating && !is_integral {
        if float.is_nan() { 0.0 } else { float.clamp(0.0, 1.0) }
    } else {
        float
    };
    // Floats that an integer cannot hold become the closest that it can, integers lose their upper bits. What is no number becomes
    // zero, or the highest bit alone where one of the two kinds is long.
    let is_long = [to, from].iter().any(|kind| matches!(kind, Kind::U64 | Kind::S64 | Kind::F64));
    macro_rules! integer {
        ($type:ty) => {
            match exact {
                Exact::Float(value) if value.is_nan() && is_long => 1 << (<$type>::BITS - 1),
                Exact::Integer(value) if is_saturating => {
                    value.clamp(<$type>::MIN.into(), <$type>::MAX.into()) as $type
                }
                Exact::Integer(value) => value as $type,
                Exact::Float(value) => whole(value) as $type,
            }
            .bits()
        };
    }
    let bits = match to {
        Kind::U8 => integer!(u8),
        Kind::S8 => integer!(i8),
        Kind::U16 => integer!(u16),
        Kind::S16 => integer!(i16),
        Kind::U32 => integer!(u32),
        Kind::S32 => integer!(i32),
        Kind::U64 => integer!(u64),
        Kind::S64 => integer!(i64),
        Kind::F16 => f16::from_f32(odd_float(float)).bits(),
        Kind::Bf16 => bf16::from_f32(odd_float(float)).bits(),
        Kind::F32 => rounded(rounding, float).bits(),
        Kind::F64 | Kind::F16x2 | Kind::Bf16x2 => match exact {
            Exact::Integer(value) => (value as f64).bits(),
            Exact::Float(_) => float.bits(),
        },
    };
    extended(to, bits)
}

/// Numbers with a sign are as long as a register.
pub(super) fn extended(kind: Kind, bits: u64) -> u64 {
    match kind {
        Kind::S8 => bits as i8 as u64,
        Kind::S16 => bits as i16 as u64,
        _ => bits,
    }
}

/// An integer as a double that is rounded to fewer bits as the integer itself would be: where it is not exact, it is cut off, and its
/// last bit says so.
fn odd_double(exact: i128) -> f64 {
    let nearest = exact as f64;
    let difference = nearest as i128 - exact;
    if difference == 0 {
        return nearest;
    }
    let is_longer = (difference > 0) == (exact > 0);
    f64::from_bits((nearest.to_bits() - u64::from(is_longer)) | 1)
}

/// The same of a double.
fn odd_float(exact: f64) -> f32 {
    let cut = rounded(Rounding::Zero, exact);
    if f64::from(cut) == exact { cut } else { f32::from_bits(cut.to_bits() | 1) }
}

/// A number as one that has fewer bits.
fn rounded(rounding: Rounding, exact: f64) -> f32 {
    let nearest = exact as f32;
    let is_above = f64::from(nearest) > exact;
    let is_below = f64::from(nearest) < exact;
    match rounding {
        Rounding::Down if is_above => nearest.next_down(),
        Rounding::Up if is_below => nearest.next_up(),
        Rounding::Zero if is_above && exact > 0.0 => nearest.next_down(),
        Rounding::Zero if is_below && exact < 0.0 => nearest.next_up(),
        _ => nearest,
    }
}

/// Two floats as one word of two numbers.
pub(super) fn convert_pair(kind: Kind, high: &Lanes, low: &Lanes) -> Lanes {
    let one = |bits: u64| {
        let value = f32::of(bits);
        match kind {
            Kind::F16 => f16::from_f32(value).bits(),
            _ => bf16::from_f32(value).bits(),
        }
    };
    std::array::from_fn(|lane| one(high[lane]) << 16 | one(low[lane]))
}

/// A float with the 10 bits of mantissa that tensor cores look at, rounded half away from zero.
pub(super) fn convert_tf32(a: &Lanes) -> Lanes {
    a.map(|bits| {
        let value = f32::of(bits);
        let rounded =
            if value.is_finite() { (bits as u32).wrapping_add(0x1000) } else { bits as u32 };
        u64::from(rounded & !0x1fff)
    })
}

/// What an atomic operation leaves of a number.
pub(super) fn combine(of: Binary, kind: Kind, before: u64, with: u64) -> Option<u64> {
    let (mut a, mut b) = ([0; 32], [0; 32]);
    (a[0], b[0]) = (before, with);
    binary(of, kind, &a, &b).map(|lanes| lanes[0])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(value: u64) -> Lanes {
        [value; 32]
    }

    #[test]
    fn integers_wrap_and_shift_as_on_a_gpu() {
        let cases = [
            (Binary::Add, Kind::U32, 0xffff_ffff, 2, 1),
            (Binary::Subtract, Kind::S64, 1, 2, u64::MAX),
            (Binary::MultiplyHigh, Kind::S32, 0xffff_ffff, 2, 0xffff_ffff),
            (Binary::MultiplyHigh, Kind::U32, 0xffff_ffff, 2, 1),
            (Binary::MultiplyWide, Kind::S64, 0xffff_fffe, 3, (-6i64) as u64),
            (Binary::MultiplyWide, Kind::U64, 0xffff_fffe, 3, 0x2_ffff_fffa),
            (Binary::ShiftLeft, Kind::U32, 1, 32, 0),
            (Binary::ShiftRight, Kind::S32, 0x8000_0000, 40, 0xffff_ffff),
            (Binary::ShiftRight, Kind::U32, 0x8000_0000, 40, 0),
            (Binary::ShiftRight, Kind::S32, 0x8000_0000, 4, 0xf800_0000),
            (Binary::Minimum, Kind::S32, 0xffff_ffff, 1, 0xffff_ffff),
            (Binary::Minimum, Kind::U32, 0xffff_ffff, 1, 1),
        ];
        for (of, kind, a, b, expected) in cases {
            assert_eq!(
                binary(of, kind, &all(a), &all(b)).unwrap()[31],
                expected,
                "{of:?} {kind:?}"
            );
        }
    }

    #[test]
    fn floats_that_are_no_numbers() {
        let (nan, one) = (all(f32::NAN.bits()), all(1f32.bits()));
        let of = |of| f32::of(binary(of, Kind::F32, &nan, &one).unwrap()[0]);
        assert_eq!(of(Binary::Maximum), 1.0);
        assert!(of(Binary::MaximumOrNan).is_nan());
        let compared =
            |of, or_unordered| compare(of, or_unordered, Kind::F32, &nan, &one) == u32::MAX;
        assert!(!compared(Comparison::NotEqual, false) && compared(Comparison::NotEqual, true));
        assert!(compared(Comparison::Unordered, true) && !compared(Comparison::Less, false));
    }

    #[test]
    fn conversions_round_and_saturate() {
        let plain = Conversion {
            to: Kind::S32,
            from: Kind::F32,
            rounding: Rounding::Zero,
            is_integral: true,
            is_saturating: false,
        };
        let cases = [
            (plain, (-2.7f32).bits(), (-2i32).bits()),
            (plain, 1e20f32.bits(), i32::MAX.bits()),
            (plain, f32::NAN.bits(), 0),
            (Conversion { to: Kind::S64, ..plain }, f32::NAN.bits(), 1 << 63),
            (Conversion { to: Kind::U64, ..plain }, f32::NAN.bits(), 1 << 63),
            (Conversion { from: Kind::F64, ..plain }, f64::NAN.bits(), 1 << 31),
            (Conversion { rounding: Rounding::Nearest, ..plain }, 2.5f32.bits(), 2),
            (Conversion { to: Kind::F32, ..plain }, 2.5f32.bits(), 2f32.bits()),
            (
                Conversion { to: Kind::F32, is_integral: false, is_saturating: true, ..plain },
                f32::NAN.bits(),
                0,
            ),
            (Conversion { from: Kind::S8, is_integral: false, ..plain }, 0xff, 0xffff_ffff),
            (Conversion { to: Kind::S64, from: Kind::S32, ..plain }, 0xffff_ffff, u64::MAX),
            (Conversion { to: Kind::U64, from: Kind::U32, ..plain }, 0xffff_ffff, 0xffff_ffff),
            (Conversion { to: Kind::S8, from: Kind::S32, ..plain }, 0x80, (-128i64) as u64),
            (Conversion { to: Kind::S16, from: Kind::U32, ..plain }, 0xffff, u64::MAX),
        ];
        let to_float = Conversion { is_integral: false, ..plain };
        for (conversion, from, expected) in cases {
            assert_eq!(convert(conversion, &all(from))[7], expected, "{conversion:?} {from:#x}");
        }
        // Just beyond the middle of two numbers, by so little that a number of more bits would not show it.
        let wide = (1u64 << 40) + (1 << 32) + 1;
        let odd = (1u64 << 60) + (1 << 52) + 1;
        let rounds = [
            (Kind::F16, Kind::F32, 1e6f32.bits(), f16::INFINITY.bits()),
            (Kind::Bf16, Kind::F32, 0x3f80_8001, 0x3f81),
            (Kind::Bf16, Kind::F32, 0x3f80_8000, 0x3f80),
            (Kind::Bf16, Kind::F32, 0x7f7f_ffff, 0x7f80),
            (Kind::Bf16, Kind::F64, (wide as f64).bits(), 0x5381),
            (Kind::Bf16, Kind::S64, odd, 0x5d81),
            (Kind::Bf16, Kind::S64, odd.wrapping_neg(), 0xdd81),
            (Kind::F16, Kind::F64, (2049.0 + 1e-9f64).bits(), 0x6801),
            (Kind::F16, Kind::F64, 2049f64.bits(), 0x6800),
            (Kind::F16, Kind::F64, 2f64.powi(-25).bits(), 0),
            (Kind::F16, Kind::F64, (-2f64.powi(-25)).next_down().bits(), 0x8001),
            (Kind::F32, Kind::S64, (1 << 60) + (1 << 36) + 1, 0x5d80_0001),
        ];
        for (to, from, bits, expected) in rounds {
            let nearest = Conversion { to, from, rounding: Rounding::Nearest, ..to_float };
            assert_eq!(convert(nearest, &all(bits))[7], expected, "{nearest:?} {bits:#x}");
        }
        assert_eq!(convert_tf32(&all(0x3f80_1000))[0], 0x3f80_2000);
        assert_eq!(convert_pair(Kind::F16, &all(1f32.bits()), &all(0))[0], 0x3c00_0000);
    }

    #[test]
    fn bits_are_picked_by_their_places() {
        let three = |of, a, b, c| ternary(of, Kind::U32, [&all(a), &all(b), &all(c)]).unwrap()[3];
        assert_eq!(three(Ternary::Permute, 0x3322_1180, 0x7766_5544, 0x8740), 0xff77_4480);
        assert_eq!(three(Ternary::ExtractBits, 0xabcd, 4, 8), 0xbc);
        assert_eq!(three(Ternary::FunnelLeft, 0x8000_0000, 1, 1), 3);
        assert_eq!(three(Ternary::Logic(0b1110_1000), 0b1100, 0b1010, 0b1001), 0b1000);
        let inserted = insert_bits(Kind::U32, [&all(0xff), &all(0), &all(4), &all(4)]);
        assert_eq!(inserted[0], 0xf0);
    }
}
