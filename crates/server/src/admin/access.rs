//! Who may administer.

use ::http::request::Parts;

use super::error::AdminError;
use crate::tenants::Tenants;

/// Lets a request in, or says why not: with an administrator's key, where there are any.
pub(super) fn authorise(tenants: &Tenants, request: &Parts) -> Result<(), AdminError> {
    tenants.authorise(&request.headers).map_err(AdminError::NotAllowed)
}
