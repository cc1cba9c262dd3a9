//! The ONNX standard's test suite, run on any executor.

mod case;
mod comparison;
mod executor;
mod inference;
mod named;
mod on_device;
mod suite;

pub use case::{Case, CaseError, DataSet, cases};
pub use comparison::{compare, compare_type};
pub use executor::{Executor, Reference, RoundTrip};
pub use inference::check_inference;
pub use named::{executor, on_cuda};
pub use on_device::OnDevice;
pub use suite::{Outcome, Summary, run_case, run_suite};
