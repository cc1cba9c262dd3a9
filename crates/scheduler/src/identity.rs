//! Names that decisions are made on: small numbers instead of texts.

/// A model's place in the list of models that a plan is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ModelId(pub u32);

impl ModelId {
    /// The place as an index.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}
