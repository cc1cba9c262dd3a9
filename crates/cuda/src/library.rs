//! CUDA's libraries, opened at run time from where users have them.

mod absence;
mod search;

use std::ffi::OsStr;
use std::fs;
use std::mem::ManuallyDrop;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use libloading::os::unix::{self, RTLD_GLOBAL, RTLD_NOW};

pub use absence::Absence;
pub use search::{Environment, SearchPath};

/// One of CUDA's libraries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum CudaLibrary {
    Driver,
    Nvrtc,
    Cublas,
    CublasLt,
    Cudnn,
}

impl CudaLibrary {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::Driver, Self::Nvrtc, Self::Cublas, Self::CublasLt, Self::Cudnn];

    /// What it is, for people.
    pub fn title(self) -> &'static str {
        match self {
            Self::Driver => "the CUDA driver",
            Self::Nvrtc => "CUDA's run-time compiler NVRTC",
            Self::Cublas => "cuBLAS",
            Self::CublasLt => "cuBLASLt",
            Self::Cudnn => "cuDNN",
        }
    }

    /// The file name without a version.
    pub fn file_name(self) -> &'static str {
        match self {
            Self::Driver => "libcuda.so",
            Self::Nvrtc => "libnvrtc.so",
            Self::Cublas => "libcublas.so",
            Self::CublasLt => "libcublasLt.so",
            Self::Cudnn => "libcudnn.so",
        }
    }

    /// The versions that end the file name where there is no link without one, newest first.
    fn versions(self) -> &'static [&'static str] {
        match self {
            Self::Driver => &["1"],
            Self::Nvrtc | Self::Cublas | Self::CublasLt => &["13", "12"],
            Self::Cudnn => &["9"],
        }
    }

    /// The names that the loader is asked for, in order. The names with a version come first: what they name is
    /// what programs run with, while the name without one belongs to those who build, and may be a stub.
    pub fn loader_names(self) -> Vec<String> {
        let name = self.file_name();
        let versioned = self.versions().iter().map(|version| format!("{name}.{version}"));
        versioned.chain([name.to_string()]).collect()
    }

    /// What must be loaded before it from the same folder, as the loader does not look there by itself.
    fn companions(self) -> &'static [&'static str] {
        match self {
            Self::Nvrtc => &["libnvrtc-builtins.so"],
            Self::Cublas => &["libcublasLt.so"],
            _ => &[],
        }
    }
}

/// A library that stays open for the rest of the process.
#[derive(Debug)]
pub struct OpenLibrary {
    /// Where it lies; `None` where the loader found it and does not say.
    pub path: Option<PathBuf>,
    handle: ManuallyDrop<unix::Library>,
}

impl OpenLibrary {
    /// The address of a function as `T`, which must be a pointer to a function; `None` where there is none of the name.
    ///
    /// # Safety
    /// `T` is the type that the library's documentation gives the function.
    pub(crate) unsafe fn symbol<T: Copy>(&self, name: &str) -> Option<T> {
        // SAFETY: the caller knows the function's type.
        let symbol = unsafe { self.handle.get::<T>(name.as_bytes()) };
        symbol.ok().map(|symbol| *symbol)
    }

    /// True where the library has a function of the name.
    pub fn has(&self, name: &str) -> bool {
        // SAFETY: the address is looked at and not called.
        unsafe { self.symbol::<*const ()>(name) }.is_some_and(|address| !address.is_null())
    }
}

type Slot = OnceLock<Result<OpenLibrary, Absence>>;

/// CUDA's libraries as one search path gives them; each is opened when it is first asked for, and stays open.
#[derive(Debug)]
pub struct Libraries {
    search: SearchPath,
    slots: [Slot; CudaLibrary::ALL.len()],
}

impl Libraries {
    /// The libraries of this process, searched for as its environment says.
    pub fn of_process() -> &'static Self {
        static LIBRARIES: OnceLock<Libraries> = OnceLock::new();
        LIBRARIES.get_or_init(|| Self::new(SearchPath::of(&Environment::of_process())))
    }

    /// The libraries that `search` leads to.
    pub fn new(search: SearchPath) -> Self {
        Self { search, slots: Default::default() }
    }

    /// Opens a library, or says why it is absent.
    pub fn open(&self, library: CudaLibrary) -> Result<&OpenLibrary, Absence> {
        let slot = &self.slots[library as usize];
        slot.get_or_init(|| self.find(library)).as_ref().map_err(Absence::clone)
    }

    /// The folder of the headers that kernels include: beside the compiler where it has them, as they belong together.
    pub fn include_folder(&self) -> Result<PathBuf, Absence> {
        let compiler = self.open(CudaLibrary::Nvrtc).ok().and_then(|open| open.path.as_deref());
        self.search.include_folder(compiler)
    }

    fn find(&self, library: CudaLibrary) -> Result<OpenLibrary, Absence> {
        let mut failures = Vec::new();
        for path in self.search.chosen_files(library) {
            if let Some(open) = open_file(library, &path, &mut failures) {
                return Ok(open);
            }
        }
        for name in library.loader_names() {
            if let Some(open) = open_name(&name, &mut failures) {
                return Ok(open);
            }
        }
        for path in self.search.known_files(library) {
            if let Some(open) = open_file(library, &path, &mut failures) {
                return Ok(open);
            }
        }
        Err(Absence {
            what: library.title().to_string(),
            names: library.loader_names(),
            folders: self.search.folders().map(Path::to_path_buf).collect(),
            was_loader_asked: true,
            failures,
        })
    }
}

fn open_file(library: CudaLibrary, path: &Path, failures: &mut Vec<String>) -> Option<OpenLibrary> {
    for name in library.companions() {
        let newest =
            path.parent().and_then(|folder| search::versions_in(folder, name).into_iter().next());
        if let Some(companion) = newest {
            // What cannot be opened shows in what needs it; what can stays open.
            open(companion.as_os_str(), &mut Vec::new());
        }
    }
    let handle = open(path.as_os_str(), failures)?;
    Some(OpenLibrary { path: Some(path.to_path_buf()), handle })
}

fn open_name(name: &str, failures: &mut Vec<String>) -> Option<OpenLibrary> {
    let handle = open(name.as_ref(), failures)?;
    Some(OpenLibrary { path: mapped_path(name), handle })
}

fn open(name: &OsStr, failures: &mut Vec<String>) -> Option<ManuallyDrop<unix::Library>> {
    // SAFETY: these are CUDA's own libraries, whose initialisers may run at any time and on any thread; nothing closes
    // them again.
    match unsafe { unix::Library::open(Some(name), RTLD_NOW | RTLD_GLOBAL) } {
        Ok(library) => Some(ManuallyDrop::new(library)),
        Err(error) => {
            failures.push(with_cause(&error));
            None
        }
    }
}

/// The error with the loader's own message, which is its source.
fn with_cause(error: &dyn std::error::Error) -> String {
    error.source().map_or_else(|| error.to_string(), ToString::to_string)
}

/// Where a library that the loader found lies.
fn mapped_path(name: &str) -> Option<PathBuf> {
    let stem = name.split(".so").next()?;
    let maps = fs::read_to_string("/proc/self/maps").ok()?;
    maps.lines()
        .filter_map(|line| line.find('/').map(|start| Path::new(&line[start..])))
        .find(|path| {
            let file = path.file_name().and_then(|file| file.to_str());
            file.is_some_and(|file| file.starts_with(&format!("{stem}.so")))
        })
        .map(Path::to_path_buf)
}

#[cfg(test)]
mod tests;
