//! The models that are served: what they take and give, and the table that they are found in.

mod entry;
mod signature;
mod table;

pub use entry::ModelEntry;
pub use signature::{Signature, TensorSpec};
pub use table::ModelTable;
