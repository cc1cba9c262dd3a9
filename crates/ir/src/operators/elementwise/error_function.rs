//! The error function, which Rust's standard library lacks.

/// `2/sqrt(pi)` times the integral of `exp(-t^2)` from 0 to `x`, to within a few units in the last place.
///
/// Rational approximations on four ranges, with the coefficients that Sun published for its C library.
pub fn erf(x: f64) -> f64 {
    let magnitude = x.abs();
    if x.is_nan() {
        x
    } else if magnitude < 0.84375 {
        let square = x * x;
        x + x * polynomial(square, &SMALL_ABOVE) / polynomial(square, &SMALL_BELOW)
    } else if magnitude < 1.25 {
        let shifted = magnitude - 1.0;
        let rest = polynomial(shifted, &MIDDLE_ABOVE) / polynomial(shifted, &MIDDLE_BELOW);
        (NEAR_ONE + rest).copysign(x)
    } else if magnitude < 6.0 {
        let inverse = 1.0 / (x * x);
        let ratio = if magnitude < 1.0 / 0.35 {
            polynomial(inverse, &LARGE_ABOVE) / polynomial(inverse, &LARGE_BELOW)
        } else {
            polynomial(inverse, &HUGE_ABOVE) / polynomial(inverse, &HUGE_BELOW)
        };
        let tail = (-x * x - 0.5625 + ratio).exp() / magnitude;
        (1.0 - tail).copysign(x)
    } else {
        1f64.copysign(x)
    }
}

/// Coefficients stand lowest power first.
fn polynomial(x: f64, coefficients: &[f64]) -> f64 {
    coefficients.iter().rev().fold(0.0, |sum, coefficient| sum * x + coefficient)
}

const NEAR_ONE: f64 = 0.8450629115104675;

const SMALL_ABOVE: [f64; 5] = [
    0.12837916709551256,
    -0.3250421072470015,
    -0.02848174957559851,
    -0.005770270296489442,
    -2.3763016656650163e-05,
];
const SMALL_BELOW: [f64; 6] = [
    1.0,
    0.39791722395915535,
    0.0650222499887673,
    0.005081306281875766,
    0.00013249473800432164,
    -3.960228278775368e-06,
];
const MIDDLE_ABOVE: [f64; 7] = [
    -0.0023621185607526594,
    0.41485611868374833,
    -0.3722078760357013,
    0.31834661990116175,
    -0.11089469428239668,
    0.035478304325618236,
    -0.002166375594868791,
];
const MIDDLE_BELOW: [f64; 7] = [
    1.0,
    0.10642088040084423,
    0.540397917702171,
    0.07182865441419627,
    0.12617121980876164,
    0.01363708391202905,
    0.011984499846799107,
];
const LARGE_ABOVE: [f64; 8] = [
    -0.009864944034847148,
    -0.6938585727071818,
    -10.558626225323291,
    -62.375332450326006,
    -162.39666946257347,
    -184.60509290671104,
    -81.2874355063066,
    -9.814329344169145,
];
const LARGE_BELOW: [f64; 9] = [
    1.0,
    19.651271667439257,
    137.65775414351904,
    434.56587747522923,
    645.3872717332679,
    429.00814002756783,
    108.63500554177944,
    6.570249770319282,
    -0.0604244152148581,
];
const HUGE_ABOVE: [f64; 7] = [
    -0.0098649429247001,
    -0.799283237680523,
    -17.757954917754752,
    -160.63638485582192,
    -637.5664433683896,
    -1025.0951316110772,
    -483.5191916086514,
];
const HUGE_BELOW: [f64; 8] = [
    1.0,
    30.33806074348246,
    325.7925129965739,
    1536.729586084437,
    3199.8582195085955,
    2553.0504064331644,
    474.52854120695537,
    -22.44095244658582,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_values_in_every_range() {
        let cases = [
            (0.0, 0.0),
            (1e-09, 1.1283791670955127e-09),
            (0.3, 0.3286267594591274),
            (0.84, 0.7651427114549946),
            (0.85, 0.7706680576083526),
            (1.0, 0.8427007929497149),
            (1.24, 0.9205051842990297),
            (1.26, 0.9252359418101295),
            (2.0, 0.9953222650189527),
            (2.85, 0.9999443437200386),
            (2.86, 0.9999475988269556),
            (4.0, 0.9999999845827421),
            (5.9, 0.9999999999999999),
        ];
        for (x, expected) in cases {
            assert!((erf(x) - expected).abs() <= 1e-15, "erf({x}) = {}", erf(x));
            assert_eq!(erf(-x), -erf(x));
        }
        assert!(erf(f64::NAN).is_nan());
        assert_eq!(erf(f64::NEG_INFINITY), -1.0);
    }
}
