//! A model as an engine serves it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use weft_device::LoadedModel;
use weft_ir::Dimensions;
use weft_scheduler::{GroupId, Profile, ServedModel};

/// What an engine knows a model by; never used twice in one process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ModelKey(u64);

impl ModelKey {
    /// One that no model has.
    pub fn unused() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

/// A model that is loaded, and what was agreed about it.
#[derive(Clone)]
pub struct EngineModel {
    /// Requests ask for it by this.
    pub key: ModelKey,
    /// On the engine's device.
    pub loaded: Arc<dyn LoadedModel>,
    /// What its open dimensions are, but for the batch.
    pub dimensions: Dimensions,
    /// How long it takes, and what was promised; batches are no larger than the largest of its profile.
    pub served: ServedModel,
    /// What its requests may ask for.
    pub limits: ModelLimits,
    /// The group that it is a member of.
    pub group: Option<Membership>,
}

impl EngineModel {
    /// The same model as a member of a group, with a profile that says how long it takes there.
    pub fn in_group(mut self, membership: Membership) -> Self {
        self.served.profile = membership.profile.clone();
        self.served.group = Some(membership.id);
        self.group = Some(membership);
        self
    }
}

/// A model's part in a group: all its members have the same.
#[derive(Clone, Debug)]
pub struct Membership {
    id: GroupId,
    entries: u32,
    apart: Arc<Profile>,
    fused: Arc<Profile>,
    /// The better of the two.
    profile: Arc<Profile>,
}

impl Membership {
    /// In a group of which one launch takes so many entries at most: how long its members take, each by itself at batch 1,
    /// and how long entries of any of them take in one launch.
    pub fn new(id: GroupId, entries: u32, apart: Arc<Profile>, fused: Arc<Profile>) -> Self {
        let profile = Arc::new(Profile::better_of(&fused, &apart).up_to_batch(entries.max(1)));
        Self { id, entries, apart, fused, profile }
    }

    /// The group.
    pub fn id(&self) -> GroupId {
        self.id
    }

    /// Of the device's memory, besides what its members take.
    pub fn memory_bytes(&self) -> u64 {
        self.fused.memory_bytes
    }

    /// How many entries one launch takes at most.
    pub(crate) fn entries(&self) -> usize {
        self.entries.max(1) as usize
    }

    /// Whether so many entries are expected to take less time in one launch than one after another.
    pub(crate) fn fuses(&self, entries: u32, units: u32) -> bool {
        Profile::is_better_fused(&self.fused, &self.apart, entries, units)
    }
}

/// What requests for a model may ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ModelLimits {
    /// Where so many rows wait, no further request is taken in.
    pub max_queue: usize,
    /// The timeout of requests that name none.
    pub timeout: Option<Duration>,
}

impl Default for ModelLimits {
    fn default() -> Self {
        Self { max_queue: usize::MAX, timeout: None }
    }
}
