//! What lies on disk: the models of a repository and their versions, `config.pbtxt`, `weft.toml`, and what changed there.
//! Nothing here reads a model, opens a connection or touches a device. `docs/repository.md` is its description.

mod changes;
mod file;
mod fingerprint;
mod keys;
mod model_config;
mod names;
mod problem;
mod repository;
#[cfg(test)]
mod samples;
mod scan;
mod settings;
mod text_format;
mod versions;
mod watch;

pub use changes::{Change, SettingsTable, changes};
pub use fingerprint::{FileStamp, Fingerprint};
pub use keys::{GeneratedKey, KeyHash, KeyHashError, Keyring, NoRandomness, generate_key};
pub use model_config::{
    ConfigDataType, ConfigTensor, DynamicBatching, ModelConfig, QueuePolicy, TimeoutAction,
};
pub use problem::Problem;
pub use repository::{Entry, Model, Repository, SettingsEntry, Version};
pub use scan::{MAX_ENTRIES, RepositoryFiles, ScanError, scan};
pub use settings::{
    AdminSettings, DeviceKind, DeviceSettings, LogFormat, ModelSettings, Precision, ServerSettings,
    Settings, Tenant, TlsFiles,
};
pub use versions::VersionPolicy;
pub use watch::{DEFAULT_INTERVAL, Watch};
