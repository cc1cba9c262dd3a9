//! What holds for all models: names, parameter counts, shapes, activations, and that they never change silently.

mod activations;
mod golden;
mod structure;
