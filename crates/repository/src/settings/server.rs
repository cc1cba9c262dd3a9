//! `[server]` and `[admin]`: where the server listens, what it takes in, what it tells.

use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use weft_scheduler::document::{Item, Problems, Section};

use super::quantity::{address, count, flag, given, mebibytes, named, path_from, seconds, text};
use super::tenant::read_key_hashes;
use crate::keys::KeyHash;
use crate::watch::DEFAULT_INTERVAL;

/// The most entries that one launch of a group can be made for.
const MAX_GROUP_ENTRIES: u32 = 64;

/// Where and how the server listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerSettings {
    /// For HTTP.
    pub listen: Option<SocketAddr>,
    /// For gRPC.
    pub grpc_listen: Option<SocketAddr>,
    /// For administration and metrics.
    pub admin_listen: Option<SocketAddr>,
    /// Whether requests without a key are answered, where the file says so; see
    /// [`Settings::allows_anonymous`](super::Settings::allows_anonymous).
    pub anonymous: Option<bool>,
    /// The longest body of a request.
    pub max_body_bytes: u64,
    /// The most connections at a time.
    pub max_connections: u32,
    /// How long a request may take to arrive in whole.
    pub read_timeout: Duration,
    /// How long a shutdown waits for what was accepted.
    pub shutdown_timeout: Duration,
    /// How long to wait between two looks at the repository.
    pub watch_interval: Duration,
    /// The certificate chain and its key, both PEM files; given together.
    pub tls: Option<TlsFiles>,
    /// What is logged: a level, or levels by part of the program.
    pub log: String,
    /// How log lines are written.
    pub log_format: LogFormat,
    /// Where traces are sent, if anywhere.
    pub otlp_endpoint: Option<String>,
    /// Whether models that differ in their weights alone share launches; where it is not said, those that gain much by it.
    pub groups: Option<bool>,
    /// How many entries one such launch takes at most.
    pub group_entries: u32,
    /// Whether requests for different models that come together again and again are regulated; where it is not said, as the
    /// device has it.
    pub regulation: Option<bool>,
}

/// What TLS needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// The certificate chain.
    pub certificate: PathBuf,
    /// Its private key.
    pub key: PathBuf,
}

/// How log lines are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    Text,
    /// For programs, one object per line.
    Json,
}

impl fmt::Display for LogFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Text => "text",
            Self::Json => "json",
        })
    }
}

/// Who may administer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AdminSettings {
    /// What the keys of administrators hash to; without any, everybody may who reaches the port.
    pub key_hashes: Vec<KeyHash>,
}

impl Default for ServerSettings {
    fn default() -> Self {
        let loopback = |port| Some(SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
        Self {
            listen: loopback(8000),
            grpc_listen: loopback(8001),
            admin_listen: loopback(8002),
            anonymous: None,
            max_body_bytes: 64 << 20,
            max_connections: 16_384,
            read_timeout: Duration::from_secs(30),
            shutdown_timeout: Duration::from_secs(30),
            watch_interval: DEFAULT_INTERVAL,
            tls: None,
            log: "info".into(),
            log_format: LogFormat::Text,
            otlp_endpoint: None,
            groups: None,
            group_entries: 32,
            regulation: None,
        }
    }
}

pub(super) fn read(
    mut section: Section<'_>,
    folder: &Path,
    problems: &mut Problems,
) -> ServerSettings {
    let default = ServerSettings::default();
    let s = &mut section;
    let settings = ServerSettings {
        listen: given(s, "listen", problems, address).unwrap_or(default.listen),
        grpc_listen: given(s, "grpc_listen", problems, address).unwrap_or(default.grpc_listen),
        admin_listen: given(s, "admin_listen", problems, address).unwrap_or(default.admin_listen),
        anonymous: given(s, "anonymous", problems, flag),
        max_body_bytes: given(s, "max_body_mib", problems, mebibytes)
            .unwrap_or(default.max_body_bytes),
        max_connections: given(s, "max_connections", problems, count)
            .unwrap_or(default.max_connections),
        read_timeout: given(s, "read_timeout_s", problems, seconds).unwrap_or(default.read_timeout),
        shutdown_timeout: given(s, "shutdown_timeout_s", problems, seconds)
            .unwrap_or(default.shutdown_timeout),
        watch_interval: given(s, "watch_interval_s", problems, seconds)
            .unwrap_or(default.watch_interval),
        tls: read_tls(s, folder, problems),
        log: given(s, "log", problems, text).unwrap_or(default.log),
        log_format: given(s, "log_format", problems, named(&[LogFormat::Text, LogFormat::Json]))
            .unwrap_or(default.log_format),
        otlp_endpoint: given(s, "otlp_endpoint", problems, endpoint),
        groups: given(s, "groups", problems, flag),
        group_entries: given(s, "group_entries", problems, group_entries)
            .unwrap_or(default.group_entries),
        regulation: given(s, "regulation", problems, flag),
    };
    check_listeners(&settings, section.line(), problems);
    section.close(problems);
    settings
}

fn read_tls(section: &mut Section<'_>, folder: &Path, problems: &mut Problems) -> Option<TlsFiles> {
    let certificate = given(section, "tls_certificate", problems, path_from(folder));
    let key = given(section, "tls_key", problems, path_from(folder));
    match (certificate, key) {
        (Some(certificate), Some(key)) => Some(TlsFiles { certificate, key }),
        (None, None) => None,
        _ => {
            problems.note(section.line(), "'tls_certificate' and 'tls_key' need each other");
            None
        }
    }
}

fn group_entries(item: &Item<'_>, problems: &mut Problems) -> Option<u32> {
    let entries = item.count(problems)?;
    let fits = (1..=MAX_GROUP_ENTRIES).contains(&entries);
    if !fits {
        problems.note(item.line(), format!("'group_entries' is from 1 to {MAX_GROUP_ENTRIES}"));
    }
    fits.then_some(entries)
}

fn endpoint(item: &Item<'_>, problems: &mut Problems) -> Option<String> {
    let text = item.text(problems)?;
    let is_address = text.starts_with("http://");
    if !is_address {
        problems.note(item.line(), "'otlp_endpoint' must begin with http://");
    }
    is_address.then(|| text.to_string())
}

/// Two listeners at one address would fail later, and say less. HTTP and gRPC may share one.
fn check_listeners(settings: &ServerSettings, line: usize, problems: &mut Problems) {
    let for_inference = [settings.listen, settings.grpc_listen];
    if for_inference == [None, None] {
        problems.note(line, "'listen' and 'grpc_listen' cannot both be off");
    }
    let admin = settings.admin_listen.filter(|address| address.port() != 0);
    if let Some(address) = admin.filter(|&address| for_inference.contains(&Some(address))) {
        problems.note(line, format!("'admin_listen' needs an address of its own, not {address}"));
    }
}

pub(super) fn read_admin(mut section: Section<'_>, problems: &mut Problems) -> AdminSettings {
    let key_hashes = read_key_hashes(&mut section, problems);
    section.close(problems);
    AdminSettings { key_hashes }
}
