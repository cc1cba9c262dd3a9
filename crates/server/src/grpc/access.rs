//! Which calls are for whom.

use super::HEALTH;
use crate::tenants::Access;

/// Who may make the call of a path.
pub(super) fn of(path: &str) -> Access {
    if path.starts_with(HEALTH) {
        return Access::Everybody;
    }
    let (_, call) = path.rsplit_once('/').unwrap_or_default();
    match call {
        "ServerLive" | "ServerReady" => Access::Everybody,
        "RepositoryModelLoad"
        | "RepositoryModelUnload"
        | "SystemSharedMemoryRegister"
        | "SystemSharedMemoryUnregister"
        | "CudaSharedMemoryRegister"
        | "CudaSharedMemoryUnregister"
        | "TraceSetting"
        | "LogSettings" => Access::Administrators,
        _ => Access::Callers,
    }
}
