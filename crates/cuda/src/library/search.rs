//! Where CUDA's libraries and headers may lie, in the order they are looked for.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use super::{Absence, CudaLibrary};

/// The header that shows a folder to be the one kernels include from.
const HEADER: &str = "cuda_fp16.h";

/// The folder of Python packages whose folders are CUDA's parts.
const PACKAGE: &str = "nvidia";

/// What the search depends on.
#[derive(Clone, Debug, Default)]
pub struct Environment {
    /// `WEFT_CUDA_PATH`: folders that come before all others.
    pub cuda_path: Option<OsString>,
    /// `VIRTUAL_ENV`: an active Python environment.
    pub virtual_env: Option<OsString>,
    /// `CONDA_PREFIX`: an active Conda environment.
    pub conda_prefix: Option<OsString>,
    /// `PATH`, on which Python interpreters may lie.
    pub path: Option<OsString>,
    /// `HOME`, below which a user's own Python packages lie.
    pub home: Option<OsString>,
    /// The root of the file system.
    pub root: PathBuf,
}

impl Environment {
    /// That of this process.
    pub fn of_process() -> Self {
        Self {
            cuda_path: env::var_os("WEFT_CUDA_PATH"),
            virtual_env: env::var_os("VIRTUAL_ENV"),
            conda_prefix: env::var_os("CONDA_PREFIX"),
            path: env::var_os("PATH"),
            home: env::var_os("HOME"),
            root: PathBuf::from("/"),
        }
    }
}

/// The folders to look into; all of them exist.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SearchPath {
    /// Those the user chose, which come before the loader's.
    chosen: Vec<PathBuf>,
    /// Those where CUDA usually lies, which come after the loader's.
    known: Vec<PathBuf>,
    /// Folders of headers.
    includes: Vec<PathBuf>,
}

impl SearchPath {
    /// The folders that an environment leads to.
    pub fn of(environment: &Environment) -> Self {
        let chosen: Vec<PathBuf> =
            environment.cuda_path.iter().flat_map(|paths| env::split_paths(paths)).collect();
        let installed = installed(&environment.root);
        let packaged = packaged(environment);

        let mut path = Self::default();
        for home in &chosen {
            path.chosen.extend([home.clone()]);
            path.chosen.extend(library_folders(home));
            path.chosen.extend(children(home).iter().map(|child| child.join("lib")));
            path.includes.extend(include_folders(home));
            path.includes.extend(children(home).iter().map(|child| child.join("include")));
        }
        for home in installed.iter().chain(&packaged) {
            path.known.extend(library_folders(home));
            path.includes.extend(include_folders(home));
        }
        path.includes.push(environment.root.join("usr/include"));
        for folders in [&mut path.chosen, &mut path.known, &mut path.includes] {
            keep_existing(folders);
        }
        path
    }

    /// The folders of libraries.
    pub fn folders(&self) -> impl Iterator<Item = &Path> {
        self.chosen.iter().chain(&self.known).map(PathBuf::as_path)
    }

    /// The files in the user's folders that may be the library, the newest of a folder first.
    pub fn chosen_files(&self, library: CudaLibrary) -> Vec<PathBuf> {
        self.chosen.iter().flat_map(|folder| versions_in(folder, library.file_name())).collect()
    }

    /// The files in the usual folders that may be the library, the newest of a folder first.
    pub fn known_files(&self, library: CudaLibrary) -> Vec<PathBuf> {
        self.known.iter().flat_map(|folder| versions_in(folder, library.file_name())).collect()
    }

    /// The folder of headers for the compiler at `compiler`: the one beside it where there is one, else the first.
    pub fn include_folder(&self, compiler: Option<&Path>) -> Result<PathBuf, Absence> {
        let beside = compiler.and_then(|path| path.canonicalize().ok());
        let mut folders = beside.as_deref().map(folders_beside).unwrap_or_default();
        folders.extend(self.includes.iter().cloned());
        keep_existing(&mut folders);
        let found = folders.iter().find(|folder| folder.join(HEADER).is_file());
        found.cloned().ok_or_else(|| Absence {
            what: "the folder of CUDA's headers".to_string(),
            names: vec![HEADER.to_string()],
            folders,
            was_loader_asked: false,
            failures: Vec::new(),
        })
    }
}

/// The folders of headers that belong to a library: beside its own, and in Python packages those of other parts.
fn folders_beside(library: &Path) -> Vec<PathBuf> {
    let Some(home) = library.parent().and_then(Path::parent) else { return Vec::new() };
    let mut folders = vec![home.join("include")];
    if let Some(parts) = home.parent().filter(|parts| file_name(parts) == Some(PACKAGE)) {
        folders.extend(children(parts).iter().map(|part| part.join("include")));
    }
    folders
}

/// The folders that hold libraries, below one that CUDA is installed in.
fn library_folders(home: &Path) -> Vec<PathBuf> {
    let targets = children(&home.join("targets"));
    let mut folders = vec![home.join("lib64"), home.join("lib")];
    folders.extend(targets.iter().map(|target| target.join("lib")));
    folders
}

/// The folders that hold headers, below or beside one that CUDA is installed in.
fn include_folders(home: &Path) -> Vec<PathBuf> {
    let targets = children(&home.join("targets"));
    let mut folders = vec![home.join("include")];
    folders.extend(targets.iter().map(|target| target.join("include")));
    folders.extend(home.parent().map(|parent| parent.join("include")));
    folders
}

/// Where CUDA is installed for all users of a machine, the unversioned link first, then newest first; and where some
/// systems keep the driver.
fn installed(root: &Path) -> Vec<PathBuf> {
    let local = root.join("usr/local");
    let mut homes: Vec<PathBuf> = children(&local)
        .into_iter()
        .filter(|home| file_name(home).is_some_and(|name| name.starts_with("cuda-")))
        .collect();
    homes.sort_by_key(|home| std::cmp::Reverse(version_of(home, "cuda-")));
    homes.insert(0, local.join("cuda"));
    let of_driver = ["usr/local/nvidia", "usr/lib/wsl", "run/opengl-driver"];
    homes.extend(of_driver.map(|home| root.join(home)));
    homes
}

/// The folders of CUDA's parts in Python environments: `site-packages/nvidia/PART`. No Python is run for it.
fn packaged(environment: &Environment) -> Vec<PathBuf> {
    let active = [&environment.virtual_env, &environment.conda_prefix];
    let mut prefixes: Vec<PathBuf> = active.into_iter().flatten().map(PathBuf::from).collect();
    prefixes.extend(environment.path.iter().flat_map(python_prefixes));
    prefixes.extend(environment.home.iter().map(|home| Path::new(home).join(".local")));
    let libraries = prefixes
        .iter()
        .flat_map(|prefix| [prefix.join("lib"), prefix.join("local/lib"), prefix.join("lib64")])
        .flat_map(|folder| children(&folder))
        .filter(|library| file_name(library).is_some_and(|name| name.starts_with("python3")));
    libraries
        .flat_map(|library| [library.join("site-packages"), library.join("dist-packages")])
        .flat_map(|packages| children(&packages.join(PACKAGE)))
        .collect()
}

/// The prefixes of the Python interpreters on `path`: where each is found, and where it really lies.
fn python_prefixes(path: &OsString) -> Vec<PathBuf> {
    env::split_paths(path)
        .map(|folder| folder.join("python3"))
        .filter(|python| python.is_file())
        .flat_map(|python| [python.clone(), python.canonicalize().unwrap_or(python)])
        .filter_map(|python| Some(python.parent()?.parent()?.to_path_buf()))
        .collect()
}

/// The files of a folder that are `name` with any version or none, newest first, the one without a version last.
pub(super) fn versions_in(folder: &Path, name: &str) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = children(folder)
        .into_iter()
        .filter(|file| {
            file_name(file).and_then(|file| file.strip_prefix(name)).is_some_and(|version| {
                version.is_empty() || version.strip_prefix('.').is_some_and(is_version)
            })
        })
        .collect();
    files.sort_by_key(|file| std::cmp::Reverse(version_of(file, name)));
    files
}

fn is_version(text: &str) -> bool {
    text.split('.').all(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()))
}

/// The numbers that follow `prefix` in a file's name.
fn version_of(path: &Path, prefix: &str) -> Vec<u32> {
    let version = file_name(path).and_then(|name| name.strip_prefix(prefix)).unwrap_or_default();
    version.split('.').filter_map(|part| part.parse().ok()).collect()
}

fn file_name(path: &Path) -> Option<&str> {
    path.file_name()?.to_str()
}

/// What a folder holds, in order of name; nothing where it cannot be read.
fn children(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort_unstable();
    paths
}

/// Keeps folders that exist, each once, in order.
fn keep_existing(folders: &mut Vec<PathBuf>) {
    let mut seen = std::collections::HashSet::new();
    folders.retain(|folder| {
        folder.is_dir() && seen.insert(folder.canonicalize().unwrap_or_else(|_| folder.clone()))
    });
}
