//! The scheduler under virtual time. The deciding code is the one that serves; time, load and device are made here, from a
//! seed, so that a run can be repeated to the last request.

mod arrivals;
mod capacity;
mod circumstances;
mod closed_loop;
mod durations;
mod event_queue;
mod fleet;
mod histogram;
mod lateness;
mod load;
mod mixes;
mod observer;
mod open_requests;
mod outcome;
mod partitions;
mod pause;
mod run;
mod running;
mod scenario;
mod trace;
mod trace_events;
mod violation;
mod world;

pub use arrivals::Arrivals;
pub use capacity::{Capacity, capacity};
pub use circumstances::Circumstances;
pub use closed_loop::Clients;
pub use fleet::{DeviceOutcome, FleetError, FleetOutcome, run_fleet};
pub use histogram::Histogram;
pub use lateness::Lateness;
pub use load::Load;
pub use observer::{Executed, Observer};
pub use outcome::{ModelOutcome, Outcome, Reconfigurations};
pub use run::{run, run_observed, run_under};
pub use scenario::{Scenario, Traces, WorkloadFiles, read_load};
pub use trace::Trace;
pub use trace_events::TraceEvents;
pub use violation::Violation;
pub use world::{SimulatedMix, SimulatedModel, World};
