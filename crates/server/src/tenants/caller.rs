//! Who sends a request.

use std::sync::Arc;
use std::time::Instant;

use super::allowance::Permit;
use super::known::{Known, KnownTenant};
use super::region_names::RegionName;
use crate::error::ServeError;

/// Who sends a request, by one state of the settings.
#[derive(Clone, Debug, Default)]
pub(crate) struct Caller(Who);

#[derive(Clone, Debug, Default)]
enum Who {
    /// Nobody who may ask for anything but what is everybody's.
    #[default]
    Stranger,
    /// Without a key, where none is needed.
    Anonymous(Arc<Known>),
    Tenant(Arc<Known>, Arc<KnownTenant>),
    Administrator(Arc<Known>),
}

impl Caller {
    pub(super) fn anonymous(known: Arc<Known>) -> Self {
        Self(Who::Anonymous(known))
    }

    /// Whose key this is, where it is one.
    pub(super) fn with_key(known: Arc<Known>, key: &str) -> Option<Self> {
        if let Some(tenant) = known.tenants.owner(key).cloned() {
            return Some(Self(Who::Tenant(known, tenant)));
        }
        let is_administrator = known.administrators.owner(key).is_some();
        is_administrator.then_some(Self(Who::Administrator(known)))
    }

    /// Whether a model is there for the caller; administrators see all.
    pub(crate) fn sees(&self, model: &str) -> bool {
        match &self.0 {
            Who::Stranger => false,
            Who::Anonymous(known) => known.settings.may_use(None, model),
            Who::Tenant(known, tenant) => known.settings.may_use(Some(&tenant.name), model),
            Who::Administrator(_) => true,
        }
    }

    /// Fails as for a model that does not exist where it is not there for the caller.
    pub(crate) fn check_sees(&self, model: &str) -> Result<(), ServeError> {
        if self.sees(model) { Ok(()) } else { Err(ServeError::UnknownModel(model.into())) }
    }

    /// Lets a request for inference through, or says which of the caller's limits it would pass. Only tenants have any.
    pub(crate) fn admit(&self, now: Instant) -> Result<Permit, ServeError> {
        match &self.0 {
            Who::Stranger => Err(ServeError::KeyMissing),
            Who::Anonymous(_) | Who::Administrator(_) => Ok(Permit::unlimited()),
            Who::Tenant(_, tenant) => tenant.allowance.admit(now),
        }
    }

    /// Whether the caller may administer.
    pub(super) fn administers(&self) -> bool {
        match &self.0 {
            Who::Stranger | Who::Tenant(..) => false,
            Who::Anonymous(known) => known.is_administration_open(),
            Who::Administrator(_) => true,
        }
    }

    /// The region of shared memory that the caller calls so. An administrator calls a tenant's `TENANT/NAME`.
    pub(crate) fn region(&self, name: &str) -> RegionName {
        match &self.0 {
            Who::Tenant(_, tenant) => RegionName::of_tenant(&tenant.name, name),
            Who::Administrator(known) => match name.split_once('/') {
                Some((tenant, name)) if known.settings.tenants.contains_key(tenant) => {
                    RegionName::of_tenant(tenant, name)
                }
                _ => RegionName::of_nobody(name),
            },
            Who::Stranger | Who::Anonymous(_) => RegionName::of_nobody(name),
        }
    }

    /// What the caller calls a region of shared memory; `None` where it is not there for the caller.
    pub(crate) fn name_of_region(&self, region: &RegionName) -> Option<String> {
        match (&self.0, &region.tenant) {
            (Who::Anonymous(_) | Who::Administrator(_), None) => Some(region.name.clone()),
            (Who::Administrator(_), Some(tenant)) => Some(format!("{tenant}/{}", region.name)),
            (Who::Tenant(_, caller), Some(tenant)) if *tenant == caller.name => {
                Some(region.name.clone())
            }
            _ => None,
        }
    }
}
