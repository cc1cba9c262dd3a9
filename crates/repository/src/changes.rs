//! What is different between two states of a repository, for whoever serves the older one.

use std::collections::BTreeSet;

use crate::repository::{Model, Repository};
use crate::settings::Settings;

/// One thing to do to get from the older state to the newer one.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// What `weft.toml` says, and the tables of it that are different.
    Settings {
        /// All that it says now; `None` where it became wrong.
        settings: Option<Box<Settings>>,
        /// The tables that are different.
        tables: Vec<SettingsTable>,
    },
    /// A model that was not there.
    Added {
        /// Its name.
        name: String,
        /// What it is.
        model: Model,
    },
    /// A model that is there no more.
    Removed {
        /// Its name.
        name: String,
    },
    /// A model that is different, or about which something else is agreed.
    Changed {
        /// Its name.
        name: String,
        /// What it is now.
        model: Model,
        /// The versions that came or whose files changed.
        loaded_anew: BTreeSet<u64>,
        /// Whether its configuration or what is agreed about it is different.
        is_agreed_anew: bool,
    },
}

/// A table of `weft.toml`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SettingsTable {
    /// `[server]`
    Server,
    /// `[device]`
    Device,
    /// `[admin]`
    Admin,
    /// `[tenants]`
    Tenants,
    /// `[defaults]` and `[models]`; which models that concerns is said with each of them.
    Models,
}

/// All that is different, settings first, then models by name. Where nothing is, the list is empty.
pub fn changes(old: &Repository, new: &Repository) -> Vec<Change> {
    let mut changes = Vec::new();
    let (before, after) = (&old.settings.settings, &new.settings.settings);
    if before != after {
        changes.push(Change::Settings {
            settings: after.clone().map(Box::new),
            tables: Settings::differing_tables(before.as_ref(), after.as_ref()),
        });
    }
    for name in old.model_names().union(&new.model_names()) {
        changes.extend(change_of(name, old, new));
    }
    changes
}

fn change_of(name: &str, old: &Repository, new: &Repository) -> Option<Change> {
    let name = name.to_string();
    let (before, after) = match (old.model(&name), new.model(&name)) {
        (Some(before), Some(after)) => (before, after),
        (None, Some(model)) => return Some(Change::Added { name, model: model.clone() }),
        (_, None) => return Some(Change::Removed { name }),
    };
    let is_agreed_anew =
        before.config != after.config || old.model_settings(&name) != new.model_settings(&name);
    if before.versions == after.versions && !is_agreed_anew {
        return None;
    }
    let is_new = |number: &u64| before.versions.get(number) != after.versions.get(number);
    let loaded_anew = after.versions.keys().copied().filter(is_new).collect();
    Some(Change::Changed { name, model: after.clone(), loaded_anew, is_agreed_anew })
}

#[cfg(test)]
mod tests;
