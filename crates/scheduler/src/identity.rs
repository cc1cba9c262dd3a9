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

/// A group of models that have the same structure and differ in their weights alone: one launch can run requests of any of
/// them together. Models with the same number are in one group.
///
/// Members of a group have the same profile, whose batch sizes are numbers of requests, whoever they belong to; the same
/// objective; and the same priority. Their weights may differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GroupId(pub u32);

/// A mix's number, never used twice in one run: requests of different models that come together again and again, and that one
/// launch runs together by a schedule that was found for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MixId(pub u32);
