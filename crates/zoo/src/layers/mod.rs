//! The layers that models are made of, as methods of [`crate::network::Network`].

mod activation;
mod convolution;
mod linear;
mod normalisation;
mod pooling;
mod shape;
mod squeeze_excitation;

pub(crate) use convolution::{Convolution, unit_spread};
pub(crate) use pooling::Window;
pub(crate) use shape::Extent;
pub(crate) use squeeze_excitation::{Gate, Mean};
