//! Division by a number known on the host, as kernels do it without dividing.

use bytemuck::{Pod, Zeroable};

/// What kernels divide numerators below 2^31 by, as `divider.cuh` declares it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Divider {
    divisor: u32,
    multiplier: u32,
    shift: u32,
}

impl Divider {
    /// Divides by `divisor`, which is from 1 to 2^31.
    pub(crate) fn new(divisor: usize) -> Self {
        assert!((1..=1 << 31).contains(&divisor), "a tensor's sizes are from 1 to 2^31");
        let shift = divisor.next_power_of_two().trailing_zeros();
        let rest = (1u64 << shift) - divisor as u64;
        let multiplier = (rest << 32) / divisor as u64 + 1;
        Self { divisor: divisor as u32, multiplier: multiplier as u32, shift }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// What the kernels compute.
    fn divided(numerator: u32, by: Divider) -> u32 {
        let high = ((u64::from(numerator) * u64::from(by.multiplier)) >> 32) as u32;
        (high + numerator) >> by.shift
    }

    proptest! {
        #[test]
        fn division_is_exact(numerator in 0u32..1 << 31, divisor in 1u32..=1 << 31) {
            let by = Divider::new(divisor as usize);
            prop_assert_eq!(divided(numerator, by), numerator / divisor);
        }

        #[test]
        fn division_is_exact_beside_multiples(quotient in 0u32..1 << 16, divisor in 1u32..1 << 15) {
            let by = Divider::new(divisor as usize);
            for numerator in (quotient * divisor).saturating_sub(1)..=quotient * divisor + 1 {
                prop_assert_eq!(divided(numerator, by), numerator / divisor);
            }
        }
    }

    #[test]
    fn the_extremes_divide() {
        for divisor in [1, 2, 3, 1 << 30, (1 << 31) - 1, 1 << 31] {
            let by = Divider::new(divisor);
            for numerator in [0, 1, 2, (1 << 30) - 1, 1 << 30, (1 << 31) - 2, (1 << 31) - 1] {
                assert_eq!(divided(numerator, by) as usize, numerator as usize / divisor);
            }
        }
    }
}
