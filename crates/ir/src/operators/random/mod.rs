//! Operators that draw random numbers.

mod bernoulli;
mod draw;
pub(crate) mod generator;
mod multinomial;

pub use bernoulli::Bernoulli;
pub use draw::{Distribution, Random};
pub use multinomial::Multinomial;

use crate::operator::Registration;

pub(super) const OPERATORS: &[Registration] = &[
    Registration::standard("Bernoulli", bernoulli::build),
    Registration::standard("Multinomial", multinomial::build),
    Registration::standard("RandomNormal", draw::build),
    Registration::standard("RandomNormalLike", draw::build),
    Registration::standard("RandomUniform", draw::build),
    Registration::standard("RandomUniformLike", draw::build),
];
