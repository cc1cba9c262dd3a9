//! Requests: one client's call each, with the instant by which it is worth something.

use crate::identity::ModelId;
use crate::time::Time;

/// A request's number, unique in one run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RequestId(pub u64);

/// One client's call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Its number.
    pub id: RequestId,
    /// The model it asks for.
    pub model: ModelId,
    /// When it came.
    pub arrived: Time,
    /// When its answer must be there; [`Time::NEVER`] for best-effort work.
    pub deadline: Time,
}
