//! Names of shared memory, which each tenant has its own of.

/// The name of a region of shared memory, and whose it is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RegionName {
    /// `None` where it is no tenant's.
    pub(super) tenant: Option<String>,
    pub(super) name: String,
}

impl RegionName {
    pub(super) fn of_tenant(tenant: &str, name: &str) -> Self {
        Self { tenant: Some(tenant.into()), name: name.into() }
    }

    pub(super) fn of_nobody(name: &str) -> Self {
        Self { tenant: None, name: name.into() }
    }
}
