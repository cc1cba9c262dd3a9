//! Models that differ in their weights alone, run as one.

use weft_ir::Value;

use crate::{DeviceError, LoadedModel};

/// One of a group's models.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GroupMember(pub u32);

/// A group that was made, and the model that it was made with.
pub struct NewGroup {
    /// The group.
    pub group: Box<dyn Group>,
    /// Its first member.
    pub first: GroupMember,
}

/// A request for one of a group's models.
#[derive(Clone, Copy, Debug)]
pub struct GroupEntry<'a> {
    /// Whose weights it is for.
    pub member: GroupMember,
    /// One value per required input.
    pub inputs: &'a [Value],
}

/// Models of one structure at fixed shapes on one partition. A run takes requests for any of them, several for one too, and
/// shares the partition among them as no run of one model could.
pub trait Group: Send + Sync {
    /// How many requests a run takes at most.
    fn entries(&self) -> usize;

    /// What it takes of the device's memory besides the weights of its members, however many there are.
    fn memory_bytes(&self) -> usize;

    /// Takes in a model that differs from the others in its weights alone.
    fn join(&self, model: &dyn LoadedModel) -> Result<GroupMember, DeviceError>;

    /// Lets a member go.
    fn leave(&self, member: GroupMember) -> Result<(), DeviceError>;

    /// Runs at least one request and at most [`entries`](Self::entries): what becomes of each, in order. The results are
    /// those that each has when it runs alone.
    fn run(&self, entries: &[GroupEntry<'_>]) -> Vec<Result<Vec<Value>, DeviceError>>;
}
