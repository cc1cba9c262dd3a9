//! KServe v2 over HTTP and gRPC, in front of an engine.
//!
//! A few threads carry all connections, each with a runtime of its own; a request stays on its connection's thread but for
//! the time that it spends in the engine.

mod admin;
mod answer;
mod beside;
mod classification;
mod connection;
mod door;
mod error;
mod grpc;
mod http;
mod inference;
mod inputs;
mod io_threads;
mod library;
mod limits;
mod listener;
mod management;
mod metrics;
mod models;
mod outputs;
mod passage;
mod refusal;
mod repository;
mod server;
mod shared_memory;
mod spans;
mod statistics;
mod tenants;
mod tls;
mod tuning;
mod wakes;

pub use admin::{
    LatencyDocument, MembershipDocument, MemoryDocument, ModelDocument, ObjectiveDocument,
    PartitionDocument, PredictionDocument, RunningDocument, StatusDocument,
};
pub use error::{ServeError, StartError};
pub use library::{Library, LoadModel, Loader, Look, ProfileStore};
pub use limits::Limits;
pub use models::{ModelEntry, ModelTable, Signature, TensorSpec};
pub use repository::{FixedRepository, IndexEntry, MemoryUse, ModelState, Repository};
pub use server::{Server, ServerOptions};
pub use shared_memory::RegionError;
pub use spans::ExportError;
pub use tenants::{Tenants, WouldOpen};
pub use tuning::{
    KernelTuning, TuningDocument, TuningError, TuningHost, TuningRequest, TuningState,
};
