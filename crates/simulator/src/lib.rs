//! The scheduler under virtual time. The deciding code is the one that serves; time, load and device are made here, from a
//! seed, so that a run can be repeated to the last request.

mod arrivals;
mod capacity;
mod event_queue;
mod histogram;
mod open_requests;
mod outcome;
mod run;
mod scenario;
mod world;

pub use arrivals::{Arrivals, Load};
pub use capacity::{Capacity, capacity};
pub use histogram::Histogram;
pub use outcome::{ModelOutcome, Outcome};
pub use run::{Violation, run};
pub use scenario::Scenario;
pub use world::{SimulatedModel, World};
