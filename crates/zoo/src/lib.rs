//! Standard architectures as graphs with seeded weights, so that nothing needs downloading.
//!
//! Layers, shapes and parameter counts are those of the torchvision and Hugging Face originals, written the way
//! exporters write them; `tiny_` models have the structure of their family in less than a megabyte.

mod entry;
mod error;
mod layers;
mod models;
mod network;
mod sample;
#[cfg(test)]
mod tests;
mod weights;

use std::sync::LazyLock;

use weft_ir::Graph;

pub use entry::{Entry, Takes};
pub use error::ZooError;
use network::Network;
pub use sample::sample_inputs;

/// How a model is built.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ZooOptions {
    /// What the weights are drawn from, together with their names.
    pub seed: u64,
    /// The side of the images that the model takes, where it is not to be the original's.
    pub image_side: Option<usize>,
}

/// All models, family by family.
pub fn entries() -> impl Iterator<Item = &'static Entry> {
    models::FAMILIES.iter().copied().flatten()
}

/// The names of all models, in the order of [`entries`].
pub fn names() -> &'static [&'static str] {
    static NAMES: LazyLock<Vec<&str>> =
        LazyLock::new(|| entries().map(|entry| entry.name).collect());
    &NAMES
}

/// What the zoo says of one model.
pub fn entry(name: &str) -> Result<&'static Entry, ZooError> {
    entries()
        .find(|entry| entry.name == name)
        .ok_or_else(|| ZooError::UnknownModel { name: name.to_string() })
}

/// Builds one model.
pub fn build(name: &str, options: &ZooOptions) -> Result<Graph, ZooError> {
    let entry = entry(name)?;
    let mut network = Network::new(entry, options)?;
    (entry.assemble)(&mut network);
    network.finish().map_err(|source| ZooError::Graph { model: entry.name, source })
}
