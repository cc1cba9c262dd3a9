//! What a policy has learned, and the one that comes in its place need not learn again.

use crate::latency::ModelLatency;
use crate::layout::Layout;
use crate::serving::Certainty;

/// What a policy has learned of a device and its models.
#[derive(Clone, Debug, Default)]
pub struct Learned {
    /// How large its partitions are; `None` where it knows no layouts, or has none yet.
    pub layout: Option<Layout>,
    /// By model; `None` where nothing is known about it.
    pub models: Vec<Option<LearnedModel>>,
}

/// How long a model takes in relation to its profile, how far that strays, and how cautious promises must be for it.
#[derive(Clone, Debug)]
pub struct LearnedModel {
    pub(crate) latency: ModelLatency,
    pub(crate) certainty: Certainty,
}
