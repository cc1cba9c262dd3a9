//! What the processes that tune tell the one that started them, one line of JSON each.

use serde::{Deserialize, Serialize};
use weft_tuner::report::{ProgressReport, SizeReport};

/// One line.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) enum Message {
    /// How far it is.
    Progress(ProgressReport),
    /// A size is done.
    Size(SizeReport),
    /// All is done, and written down.
    Done,
}
