//! Who may ask for something.

/// Who may ask for something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// Everybody who reaches the server.
    Everybody,
    /// Tenants, and those without a key where these are answered.
    Callers,
    /// Administrators, and everybody on a server that knows no keys and listens to its own machine alone.
    Administrators,
}
