//! Instants and lengths of time, in whole nanoseconds: exact, ordered and cheap, real or virtual.

use std::fmt;
use std::ops::{Add, AddAssign, Mul, Sub};

/// An instant: nanoseconds since whatever the driver counts from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Time(u64);

/// A length of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Span(u64);

impl Time {
    /// Where counting begins.
    pub const START: Time = Time(0);
    /// After every other instant.
    pub const NEVER: Time = Time(u64::MAX);

    /// An instant by its distance from the start.
    pub fn after_start(span: Span) -> Self {
        Self(span.0)
    }

    /// The distance from an earlier instant; zero where it is later.
    pub fn since(self, earlier: Time) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }
}

impl Span {
    /// No time at all.
    pub const ZERO: Span = Span(0);
    /// Longer than anything that is waited for.
    pub const MAX: Span = Span(u64::MAX);

    /// A number of nanoseconds.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// A number of microseconds, rounded; negative numbers and what is not a number are zero.
    pub fn from_us(us: f64) -> Self {
        Self(rounded(us * 1e3))
    }

    /// A number of seconds, likewise.
    pub fn from_s(seconds: f64) -> Self {
        Self(rounded(seconds * 1e9))
    }

    /// In nanoseconds.
    pub fn nanos(self) -> u64 {
        self.0
    }

    /// In microseconds.
    pub fn us(self) -> f64 {
        self.0 as f64 * 1e-3
    }

    /// In seconds.
    pub fn seconds(self) -> f64 {
        self.0 as f64 * 1e-9
    }

    /// What is left when another span is taken off; zero where that is longer.
    pub fn saturating_sub(self, other: Span) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

/// The nearest whole number; zero below zero and where it is not a number. Spans are made several times for each request,
/// and the standard rounding is a call to a library on processors that a build for all of them must assume.
fn rounded(number: f64) -> u64 {
    (number + 0.5) as u64
}

impl Add<Span> for Time {
    type Output = Time;
    fn add(self, span: Span) -> Time {
        Time(self.0.saturating_add(span.0))
    }
}

impl Add for Span {
    type Output = Span;
    fn add(self, other: Span) -> Span {
        Span(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Span {
    fn add_assign(&mut self, other: Span) {
        *self = *self + other;
    }
}

impl Sub for Span {
    type Output = Span;
    /// Both must be known to be in order; see [`Span::saturating_sub`] for when they are not.
    fn sub(self, other: Span) -> Span {
        Span(self.0.checked_sub(other.0).expect("a span is not negative"))
    }
}

impl Mul<f64> for Span {
    type Output = Span;
    fn mul(self, factor: f64) -> Span {
        Span(rounded(self.0 as f64 * factor))
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanos = self.0 as f64;
        match self.0 {
            0..1_000 => write!(f, "{nanos} ns"),
            1_000..1_000_000 => write!(f, "{:.1} us", nanos * 1e-3),
            1_000_000..1_000_000_000 => write!(f, "{:.2} ms", nanos * 1e-6),
            _ => write!(f, "{:.2} s", nanos * 1e-9),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_runs_on_and_never_below_zero() {
        let noon = Time::START + Span::from_us(1.5);
        assert_eq!(noon.since(Time::START), Span::from_nanos(1500));
        assert_eq!(Time::START.since(noon), Span::ZERO);
        assert_eq!(Span::from_us(-3.0), Span::ZERO);
        assert_eq!(Span::from_us(f64::NAN), Span::ZERO);
        assert_eq!(noon + Span::MAX, Time::START + Span::MAX);
        assert_eq!(Span::from_us(2.0) * 1.5, Span::from_us(3.0));
    }

    #[test]
    fn spans_are_written_in_the_unit_that_fits() {
        for (span, text) in [
            (Span::from_nanos(7), "7 ns"),
            (Span::from_us(12.34), "12.3 us"),
            (Span::from_us(1500.0), "1.50 ms"),
            (Span::from_s(2.0), "2.00 s"),
        ] {
            assert_eq!(span.to_string(), text);
        }
    }
}
