//! What the server says of itself while it runs.

use std::io::stderr;

use anyhow::{Result, anyhow};
use tracing_subscriber::EnvFilter;
use weft_repository::LogFormat;

/// Writes to the standard error from now on.
pub(super) fn start(levels: &str, format: LogFormat) -> Result<()> {
    let filter = EnvFilter::try_new(levels)
        .map_err(|error| anyhow!("'{levels}' is no way to say what is logged: {error}"))?;
    // That a line cannot be written would be said in the same place, and end the thread that has said it.
    let subscriber = tracing_subscriber::fmt()
        .log_internal_errors(false)
        .with_env_filter(filter)
        .with_writer(stderr);
    let outcome = match format {
        LogFormat::Text => subscriber.try_init(),
        LogFormat::Json => subscriber.json().try_init(),
    };
    outcome.map_err(|error| anyhow!("{error}"))
}
