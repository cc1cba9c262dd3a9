//! What `weft.toml` says: the server, its device, tenants, and what is agreed about models.

mod device;
mod model;
mod overrides;
mod quantity;
mod server;
mod tenant;

use std::collections::BTreeMap;
use std::path::Path;

use weft_scheduler::document::{self, Problems, Section};

pub use device::{DeviceKind, DeviceSettings, Precision};
pub use model::ModelSettings;
pub use server::{AdminSettings, LogFormat, ServerSettings, TlsFiles};
pub use tenant::Tenant;

use crate::changes::SettingsTable;
use crate::keys::{KeyHash, Keyring};
use crate::model_config::ModelConfig;
use crate::names;
use overrides::ModelOverrides;

/// All that `weft.toml` says.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Settings {
    /// Where and how the server listens.
    pub server: ServerSettings,
    /// What models run on.
    pub device: DeviceSettings,
    /// Who may administer.
    pub admin: AdminSettings,
    /// Who may infer; empty where everybody may who reaches the server.
    pub tenants: BTreeMap<String, Tenant>,
    defaults: ModelOverrides,
    models: BTreeMap<String, ModelOverrides>,
}

/// A file that was read: what it says, and on which lines it names models.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ReadSettings {
    pub(crate) settings: Settings,
    pub(crate) mentions: Vec<Mention>,
}

/// A place where a model is named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mention {
    pub(crate) model: String,
    pub(crate) line: usize,
}

impl Settings {
    /// Reads a `weft.toml`. Files that it names are looked for from `folder`, the one it lies in.
    pub(crate) fn from_toml(text: &str, folder: &Path) -> Result<ReadSettings, Problems> {
        document::read(text, |root, problems| Some(read(root, folder, problems)))
    }

    /// What is agreed about a model: the nearest that says something counts, from the model's own table over its
    /// `config.pbtxt` to the file's defaults.
    pub fn of_model(&self, name: &str, config: Option<&ModelConfig>) -> ModelSettings {
        let own = self.models.get(name).cloned().unwrap_or_default();
        let from_config = config.map(ModelOverrides::from_config).unwrap_or_default();
        own.or(from_config).or(self.defaults.clone()).resolved()
    }

    /// Whether requests without a key are answered.
    pub fn allows_anonymous(&self) -> bool {
        self.server.anonymous.unwrap_or(self.tenants.is_empty())
    }

    /// Whether a tenant may see and use a model; `None` is a request without a key, where these are answered. A model
    /// without a tenant and one that is shared are everybody's. It is asked with every request, and allocates nothing.
    pub fn may_use(&self, tenant: Option<&str>, model: &str) -> bool {
        let own = self.models.get(model);
        if ModelOverrides::is_for_everybody(own, &self.defaults) {
            return true;
        }
        let Some(tenant) = tenant else { return false };
        let is_granted =
            || self.tenants.get(tenant).is_some_and(|tenant| tenant.models.contains(model));
        ModelOverrides::tenant_of(own, &self.defaults) == Some(tenant) || is_granted()
    }

    /// Which tenant a key belongs to.
    pub fn tenant_keys(&self) -> Keyring<String> {
        let of_tenant = |(name, tenant): (&String, &Tenant)| {
            let name = name.clone();
            tenant.key_hashes.clone().into_iter().map(move |hash| (hash, name.clone()))
        };
        Keyring::new(self.tenants.iter().flat_map(of_tenant))
    }

    /// Which keys administrators have.
    pub fn admin_keys(&self) -> Keyring<()> {
        Keyring::new(self.admin.key_hashes.iter().map(|&hash| (hash, ())))
    }

    /// The tables in which two files differ; all of them where one is wrong.
    pub(crate) fn differing_tables(one: Option<&Self>, other: Option<&Self>) -> Vec<SettingsTable> {
        let differs = |same: fn(&Self, &Self) -> bool| match (one, other) {
            (Some(one), Some(other)) => !same(one, other),
            (None, None) => false,
            _ => true,
        };
        [
            (SettingsTable::Server, differs(|a, b| a.server == b.server)),
            (SettingsTable::Device, differs(|a, b| a.device == b.device)),
            (SettingsTable::Admin, differs(|a, b| a.admin == b.admin)),
            (SettingsTable::Tenants, differs(|a, b| a.tenants == b.tenants)),
            (
                SettingsTable::Models,
                differs(|a, b| a.defaults == b.defaults && a.models == b.models),
            ),
        ]
        .into_iter()
        .filter_map(|(table, differs)| differs.then_some(table))
        .collect()
    }

    /// What would let strangers in. Whoever changes an address after the file was read asks again.
    pub fn exposures(&self) -> Vec<String> {
        let mut exposures = Vec::new();
        let is_open = self.tenants.is_empty() && self.server.anonymous != Some(true);
        let addresses = [("listen", self.server.listen), ("grpc_listen", self.server.grpc_listen)];
        for (key, address) in addresses {
            if let Some(address) = address.filter(|address| is_open && !address.ip().is_loopback())
            {
                exposures.push(format!(
                    "'{key}' is {address}, which other machines reach, and there are no tenants: declare \
                     [tenants.NAME], or let everybody in with 'anonymous = true'"
                ));
            }
        }
        let admin = self.server.admin_listen.filter(|address| !address.ip().is_loopback());
        if let Some(address) = admin.filter(|_| self.admin.key_hashes.is_empty()) {
            exposures.push(format!(
                "'admin_listen' is {address}, which other machines reach, and [admin] has no 'key_hashes'"
            ));
        }
        exposures
    }
}

fn read(mut root: Section<'_>, folder: &Path, problems: &mut Problems) -> ReadSettings {
    let mut mentions = Vec::new();
    let server = root.optional("server").and_then(|item| item.section(problems));
    let server_line = server.as_ref().map_or(1, Section::line);
    let server = server.map(|section| server::read(section, folder, problems)).unwrap_or_default();
    let device = root.optional("device").and_then(|item| item.section(problems));
    let device = device.map(|section| device::read(section, folder, problems)).unwrap_or_default();
    let admin = root.optional("admin").and_then(|item| item.section(problems));
    let admin = admin.map(|section| server::read_admin(section, problems)).unwrap_or_default();
    let tenants = read_tenants(&mut root, &mut mentions, problems);
    check_keys(&tenants, &admin, problems);
    let defaults = root.optional("defaults").and_then(|item| item.section(problems));
    let defaults = defaults.map(|section| overrides::read(section, &tenants, problems));
    let models = read_models(&mut root, &tenants, &mut mentions, problems);
    root.close(problems);
    let tenants = tenants.into_iter().map(|(name, (tenant, _))| (name, tenant)).collect();
    let defaults = defaults.unwrap_or_default();
    let settings = Settings { server, device, admin, tenants, defaults, models };
    for exposure in settings.exposures() {
        problems.note(server_line, exposure);
    }
    ReadSettings { settings, mentions }
}

/// Tenants, each with its line.
type Declared = BTreeMap<String, (Tenant, usize)>;

fn read_tenants(
    root: &mut Section<'_>,
    mentions: &mut Vec<Mention>,
    problems: &mut Problems,
) -> Declared {
    let mut tenants = Declared::new();
    let Some(section) = root.optional("tenants").and_then(|item| item.section(problems)) else {
        return tenants;
    };
    for item in section.entries() {
        if let Some(objection) = names::objection(item.name()) {
            problems.note(item.line(), format!("tenant {:?}: {objection}", item.name()));
        }
        if let Some(section) = item.section(problems) {
            let tenant = tenant::read(section, mentions, problems);
            tenants.insert(item.name().to_string(), (tenant, item.line()));
        }
    }
    tenants
}

/// A key belongs to one owner: which of two a request came from could not be told.
fn check_keys(tenants: &Declared, admin: &AdminSettings, problems: &mut Problems) {
    let of_admin = admin.key_hashes.iter().map(|hash| (hash, "[admin]", 1));
    let of_tenants = tenants.iter().flat_map(|(name, (tenant, line))| {
        tenant.key_hashes.iter().map(move |hash| (hash, name.as_str(), *line))
    });
    let mut owners: BTreeMap<[u8; KeyHash::ID_BYTES], &str> = BTreeMap::new();
    for (hash, owner, line) in of_admin.chain(of_tenants) {
        if let Some(other) = owners.insert(hash.id(), owner) {
            problems
                .note(line, format!("{owner} has a key that {other} has too; a key has one owner"));
        }
    }
}

fn read_models(
    root: &mut Section<'_>,
    tenants: &Declared,
    mentions: &mut Vec<Mention>,
    problems: &mut Problems,
) -> BTreeMap<String, ModelOverrides> {
    let mut models = BTreeMap::new();
    let Some(section) = root.optional("models").and_then(|item| item.section(problems)) else {
        return models;
    };
    for item in section.entries() {
        mentions.push(Mention { model: item.name().to_string(), line: item.line() });
        if let Some(section) = item.section(problems) {
            models.insert(item.name().to_string(), overrides::read(section, tenants, problems));
        }
    }
    models
}

#[cfg(test)]
mod tests;
