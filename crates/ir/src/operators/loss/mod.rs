//! Training losses and optimiser steps.

mod likelihood;
mod optimiser;

pub use likelihood::{LikelihoodLoss, Reduction};
pub use optimiser::{OptimiserStep, Rule};

use crate::operator::Registration;

const TRAINING: &str = "ai.onnx.preview.training";

pub(super) const OPERATORS: &[Registration] = &[
    Registration { domain: TRAINING, name: "Adagrad", build: optimiser::build },
    Registration { domain: TRAINING, name: "Adam", build: optimiser::build },
    Registration { domain: TRAINING, name: "Momentum", build: optimiser::build },
    Registration::standard("NegativeLogLikelihoodLoss", likelihood::build),
    Registration::standard("SoftmaxCrossEntropyLoss", likelihood::build),
];
