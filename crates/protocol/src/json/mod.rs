//! Requests and answers as JSON, with the tensors that are sent as bytes behind it.
//!
//! The reader of tensors is our own and not `serde_json`'s, for three things: a decimal is rounded once, to the tensor's
//! own type; a problem names its tensor and element; and numbers that are not finite, which other servers and this one
//! write into answers as `NaN`, `Infinity` and `-Infinity`, can be read back.

mod body;
mod cursor;
mod elements;
mod number;
mod reading;
mod request;
mod response;
mod writing;

pub use body::EncodedBody;
pub use request::{TensorForm, decode_request, encode_request};
pub use response::{decode_response, encode_response};
