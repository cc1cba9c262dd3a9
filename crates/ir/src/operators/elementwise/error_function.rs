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

const NEAR_ONE: f64 = 8.45062911510467529297e-01;

const SMALL_ABOVE: [f64; 5] = [
    1.28379167095512558561e-01,
    -3.25042107247001499370e-01,
    -2.84817495755985104766e-02,
    -5.77027029648944159157e-03,
    -2.37630166566501626084e-05,
];
const SMALL_BELOW: [f64; 6] = [
    1.0,
    3.97917223959155352819e-01,
    6.50222499887672944485e-02,
    5.08130628187576562776e-03,
    1.32494738004321644526e-04,
    -3.96022827877536812320e-06,
];
const MIDDLE_ABOVE: [f64; 7] = [
    -2.36211856075265944077e-03,
    4.14856118683748331666e-01,
    -3.72207876035701323847e-01,
    3.18346619901161753674e-01,
    -1.10894694282396677476e-01,
    3.54783043256182359371e-02,
    -2.16637559486879084300e-03,
];
const MIDDLE_BELOW: [f64; 7] = [
    1.0,
    1.06420880400844228286e-01,
    5.40397917702171048937e-01,
    7.18286544141962662868e-02,
    1.26171219808761642112e-01,
    1.36370839120290507362e-02,
    1.19844998467991074170e-02,
];
const LARGE_ABOVE: [f64; 8] = [
    -9.86494403484714822705e-03,
    -6.93858572707181764372e-01,
    -1.05586262253232909814e+01,
    -6.23753324503260060396e+01,
    -1.62396669462573470355e+02,
    -1.84605092906711035994e+02,
    -8.12874355063065934246e+01,
    -9.81432934416914548592e+00,
];
const LARGE_BELOW: [f64; 9] = [
    1.0,
    1.96512716674392571292e+01,
    1.37657754143519042600e+02,
    4.34565877475229228821e+02,
    6.45387271733267880336e+02,
    4.29008140027567833386e+02,
    1.08635005541779435134e+02,
    6.57024977031928170135e+00,
    -6.04244152148580987438e-02,
];
const HUGE_ABOVE: [f64; 7] = [
    -9.86494292470009928597e-03,
    -7.99283237680523006574e-01,
    -1.77579549177547519889e+01,
    -1.60636384855821916062e+02,
    -6.37566443368389627722e+02,
    -1.02509513161107724954e+03,
    -4.83519191608651397019e+02,
];
const HUGE_BELOW: [f64; 8] = [
    1.0,
    3.03380607434824582924e+01,
    3.25792512996573918826e+02,
    1.53672958608443695994e+03,
    3.19985821950859553908e+03,
    2.55305040643316442583e+03,
    4.74528541206955367215e+02,
    -2.24409524465858183362e+01,
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
