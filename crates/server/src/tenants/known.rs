//! Everybody who is known by one state of the settings.

use std::collections::BTreeMap;
use std::sync::Arc;

use weft_repository::{Keyring, Settings};

use super::allowance::Allowance;

/// Everybody who is known, and what is agreed with them.
#[derive(Debug)]
pub(super) struct Known {
    pub(super) settings: Settings,
    pub(super) tenants: Keyring<Arc<KnownTenant>>,
    pub(super) administrators: Keyring<()>,
    by_name: BTreeMap<String, Arc<KnownTenant>>,
}

/// A tenant, and what it has used of its limits.
#[derive(Debug)]
pub(super) struct KnownTenant {
    pub(super) name: String,
    pub(super) allowance: Allowance,
}

impl Known {
    /// Those of the settings, who go on from what they have used before.
    pub(super) fn new(settings: &Settings, before: Option<&Self>) -> Self {
        let known = |(name, tenant)| {
            let name: &String = name;
            let earlier = before.and_then(|before| before.by_name.get(name));
            let allowance = Allowance::new(tenant, earlier.map(|earlier| &earlier.allowance));
            (name.clone(), Arc::new(KnownTenant { name: name.clone(), allowance }))
        };
        let by_name: BTreeMap<_, _> = settings.tenants.iter().map(known).collect();
        let keys = settings.tenants.iter().flat_map(|(name, tenant)| {
            let known = by_name[name].clone();
            tenant.key_hashes.iter().map(move |&hash| (hash, known.clone()))
        });
        let tenants = Keyring::new(keys);
        let administrators = settings.admin_keys();
        Self { settings: settings.clone(), tenants, administrators, by_name }
    }

    /// True where nobody has a key.
    pub(super) fn is_keyless(&self) -> bool {
        self.tenants.is_empty() && self.administrators.is_empty()
    }

    /// True where administration takes no key: nobody has one, and only this machine reaches the server.
    pub(super) fn is_administration_open(&self) -> bool {
        // Without tenants, other machines reach a server only where it is said to be for everybody.
        self.is_keyless() && self.settings.server.anonymous != Some(true)
    }
}
