//! Tenants: who asks, what is there for them, and how much they may ask for.

mod access;
mod allowance;
mod bucket;
mod caller;
mod credentials;
mod known;
mod region_names;

use arc_swap::ArcSwap;
use http::HeaderMap;
use weft_repository::Settings;

pub(crate) use access::Access;
pub(crate) use allowance::Permit;
pub(crate) use caller::Caller;
pub(crate) use region_names::RegionName;

use crate::error::ServeError;
use credentials::{Presented, presented};
use known::Known;

/// Who is known to a server. It is read by every request without a lock, and follows the settings while the server runs.
#[derive(Debug)]
pub struct Tenants {
    known: ArcSwap<Known>,
}

/// Settings that would let everybody in where keys were needed, and do not say that they mean it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "no keys are declared any more, and 'anonymous = true' is not said: the keys that were declared are still needed"
)]
pub struct WouldOpen;

impl Tenants {
    /// Those of the settings.
    pub fn new(settings: &Settings) -> Self {
        Self { known: ArcSwap::from_pointee(Known::new(settings, None)) }
    }

    /// Those of other settings from now on. A tenant whose limits stay as they were goes on from what it has used of them.
    pub fn replace(&self, settings: &Settings) -> Result<(), WouldOpen> {
        let is_opening = Known::new(settings, None).is_keyless() && !self.known.load().is_keyless();
        // A file that is gone for a moment, or lost its tables, is no reason to let everybody in.
        if is_opening && settings.server.anonymous != Some(true) {
            return Err(WouldOpen);
        }
        self.known.rcu(|known| Known::new(settings, Some(known)));
        Ok(())
    }

    /// Who sends a request with these headers, where that is enough for what it asks for.
    pub(crate) fn let_in(&self, access: Access, headers: &HeaderMap) -> Result<Caller, ServeError> {
        match access {
            Access::Everybody => Ok(self.caller(headers).unwrap_or_default()),
            Access::Callers => self.caller(headers),
            Access::Administrators => {
                let caller = self.caller(headers)?;
                if caller.administers() { Ok(caller) } else { Err(ServeError::NotAdministrator) }
            }
        }
    }

    /// Who sends a request with these headers. A key that is wrong is never taken for none.
    pub(crate) fn caller(&self, headers: &HeaderMap) -> Result<Caller, ServeError> {
        let known = self.known.load_full();
        if known.is_keyless() && known.settings.allows_anonymous() {
            return Ok(Caller::anonymous(known));
        }
        match presented(headers) {
            Presented::Nothing if known.settings.allows_anonymous() => Ok(Caller::anonymous(known)),
            Presented::Nothing => Err(ServeError::KeyMissing),
            Presented::Key(key) => Caller::with_key(known, key).ok_or(ServeError::KeyUnknown),
            Presented::Unclear => Err(ServeError::KeyUnknown),
        }
    }

    /// Whether a request to the port of administration is answered: with an administrator's key, where there are any.
    pub fn authorise(&self, headers: &HeaderMap) -> Result<(), ServeError> {
        let known = self.known.load_full();
        if known.administrators.is_empty() {
            return Ok(());
        }
        match presented(headers) {
            Presented::Nothing => Err(ServeError::KeyMissing),
            Presented::Key(key) if known.administrators.owner(key).is_some() => Ok(()),
            Presented::Key(key) if known.tenants.owner(key).is_some() => {
                Err(ServeError::NotAdministrator)
            }
            Presented::Key(_) | Presented::Unclear => Err(ServeError::KeyUnknown),
        }
    }
}

impl Default for Tenants {
    /// Nobody in particular: everybody who reaches the server may use all of it.
    fn default() -> Self {
        Self::new(&Settings::default())
    }
}

/// Whoever asks a server that knows nobody in particular.
#[cfg(test)]
pub(crate) fn anybody() -> Caller {
    Caller::anonymous(std::sync::Arc::new(Known::new(&Settings::default(), None)))
}

#[cfg(test)]
mod tests;
