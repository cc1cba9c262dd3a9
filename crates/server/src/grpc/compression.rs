//! Answers are compressed for clients that compress their requests: others merely say that they could read it.

use tonic::Response;
use tonic::metadata::MetadataMap;

/// An answer to a call with this metadata.
pub(super) fn answered<T>(metadata: &MetadataMap, message: T) -> Response<T> {
    let mut answer = Response::new(message);
    let is_compressed =
        metadata.get("grpc-encoding").is_some_and(|encoding| encoding != "identity");
    if !is_compressed {
        answer.disable_compression();
    }
    answer
}
