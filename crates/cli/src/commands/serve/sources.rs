//! What the command line names, as a repository that can be looked at again and again.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};
use weft_repository::{
    Entry, FileStamp, Fingerprint, Model, Problem, Repository, RepositoryFiles, Settings,
    SettingsEntry, Version, scan,
};

use crate::model_file;

/// The version of a model whose file stands by itself.
const ONLY_VERSION: u64 = 1;

/// Where models come from.
#[derive(Clone, Debug)]
pub(super) enum Sources {
    /// A model repository.
    Folder(RepositoryFiles),
    /// Files that stand by themselves, by the names of their models.
    Files(BTreeMap<String, PathBuf>),
}

impl Sources {
    /// A folder, or files and models of the zoo.
    pub(super) fn named(given: &[String], settings: Option<&Path>) -> Result<Self> {
        let paths: Vec<PathBuf> =
            given.iter().map(|given| model_file::resolve(given)).collect::<Result<_>>()?;
        if let [root] = &paths[..]
            && root.is_dir()
        {
            let settings = settings.map(Path::to_path_buf);
            return Ok(Self::Folder(RepositoryFiles { root: root.clone(), settings }));
        }
        ensure!(settings.is_none(), "--config is for a model repository: one folder of models");
        let mut files = BTreeMap::new();
        for path in paths {
            ensure!(
                !path.is_dir(),
                "{} is a folder; a model repository is served by itself",
                path.display()
            );
            ensure!(path.is_file(), "{} is not there", path.display());
            let name = model_file::name(&path);
            let is_new = files.insert(name.clone(), path).is_none();
            ensure!(is_new, "two models are named '{name}'");
        }
        Ok(Self::Files(files))
    }

    /// What is there now.
    pub(super) fn look(&self) -> Result<Repository, weft_repository::ScanError> {
        match self {
            Self::Folder(files) => scan(files),
            Self::Files(files) => Ok(alone(files)),
        }
    }
}

/// A repository of files that stand by themselves, about which nothing is agreed.
fn alone(files: &BTreeMap<String, PathBuf>) -> Repository {
    let entry = |(name, file): (&String, &PathBuf)| {
        let entry = match fs::metadata(file) {
            Ok(metadata) => {
                let stamp = FileStamp {
                    length_bytes: metadata.len(),
                    modified_ns: i128::from(metadata.mtime()) * 1_000_000_000
                        + i128::from(metadata.mtime_nsec()),
                    inode: metadata.ino(),
                };
                let fingerprint = Fingerprint::new(vec![(name.clone(), stamp)]);
                let version = Version { file: file.clone(), fingerprint };
                let versions = BTreeMap::from([(ONLY_VERSION, version)]);
                Entry { model: Some(Model { versions, config: None }), ..Entry::default() }
            }
            Err(error) => {
                let problem = Problem::new(file.display().to_string(), error.to_string());
                Entry { problems: vec![problem], ..Entry::default() }
            }
        };
        (name.clone(), entry)
    };
    Repository {
        entries: files.iter().map(entry).collect(),
        settings: SettingsEntry { settings: Some(Settings::default()), problems: Vec::new() },
    }
}
