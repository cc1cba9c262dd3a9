//! Who runs where and when. This crate decides and does nothing: it reads no clock, starts no thread and touches no device.

pub mod document;
pub mod fleet;
mod identity;
mod lane;
mod latency;
mod layout;
mod learned;
pub mod plan;
pub mod policies;
mod policy;
mod profile;
pub mod regulate;
mod request;
mod served;
mod serving;
mod time;
mod unit_mask;

pub use identity::{GroupId, MixId, ModelId};
pub use lane::{Batch, BatchLatency, Lane, LaneMix, LaneModel, MixLatency, Prospect};
pub use latency::{LatencyFunction, MemoryShare, Prediction, PredictionError, memory_stretch};
pub use layout::{Layout, LayoutFound, LayoutTask, Lost, RoundLoad};
pub use learned::{Learned, LearnedModel};
pub use policy::{Action, Event, LaunchId, NoMix, PartitionId, Policy, Refusal};
pub use profile::{Profile, ProfileError, ProfilePoint, ProfileSet, ProfiledDevice};
pub use request::{Request, RequestId};
pub use served::{ServedDevice, ServedModel};
pub use serving::{FixedServing, MixUse, ReadyMix, Serving, ServingPartition};
pub use time::{Span, Time};
pub use unit_mask::{MAX_UNITS, UnitMask};
