//! What takes long is done beside the connections, since the others of the thread would wait for it.

use crate::error::ServeError;

/// What is longer takes long to read and to write.
pub(crate) const LONG_BYTES: usize = 256 << 10;

/// Does some work, on a thread of its own if it takes long.
pub(crate) async fn beside_if<T: Send + 'static>(
    is_long: bool,
    work: impl FnOnce() -> Result<T, ServeError> + Send + 'static,
) -> Result<T, ServeError> {
    match is_long {
        true => tokio::task::spawn_blocking(work).await.unwrap_or(Err(ServeError::Stopping)),
        false => work(),
    }
}
