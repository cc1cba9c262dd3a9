//! Load for servers of KServe v2. Requests are sent at instants that were drawn before, whatever became of those before
//! them, and latency counts from these instants: a server that stalls does not get less load for it, nor better numbers.

mod alarm;
mod answer_check;
mod capacity;
mod client;
mod connection;
mod crew;
mod declared;
mod encoder;
mod error;
mod generator;
mod grpc;
mod http;
mod inputs;
mod lane;
mod messages;
mod model_load;
mod outcome;
mod output_size;
mod prepare;
mod prepared;
mod reasons;
mod recorder;
mod reply;
mod schedule;
mod session;
mod shared_memory;
mod target;
mod upcoming;
mod workload;

pub use answer_check::AnswerCheck;
pub use capacity::{Capacity, CapacityOptions, Step, Stopped, find_capacity};
pub use error::LoadError;
pub use generator::Progress;
pub use model_load::{Dimensions, ModelLoad};
pub use outcome::{DELAY_PERCENTILE, Interval, MAX_DELAY, ModelOutcome, Outcome};
pub use reasons::{Reason, Reasons};
pub use session::{RunOptions, Session, SessionOptions};
pub use shared_memory::MAX_SLOTS;
pub use target::{Protocol, Target};
pub use weft_simulator::Histogram;
pub use workload::Workload;
