//! The functions of NVRTC that Weft calls, passed on to the real one, which is asked for PTX where machine code is wanted.
//!
//! Callers keep to NVRTC's documentation, and all that they give is passed on as it is.
#![allow(non_snake_case, reason = "the names are CUDA's")]

use std::env;
use std::ffi::{CStr, CString, OsStr, c_char, c_int, c_void};
use std::fs;
use std::mem::ManuallyDrop;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use libloading::os::unix::{Library, RTLD_GLOBAL, RTLD_LOCAL, RTLD_NOW};

/// Names the file of the real NVRTC.
const LOCATION: &str = "WEFT_EMULATOR_NVRTC";

/// What NVRTC needs, and the loader does not look for beside it.
const BUILTINS: &str = "libnvrtc-builtins.so";

/// A result as NVRTC numbers it; zero is success.
type Code = c_int;

/// Something inside it went wrong.
const INTERNAL_ERROR: Code = 11;

type Program = *mut c_void;
type Strings = *const *const c_char;

/// The real compiler's functions.
struct Nvrtc {
    version: unsafe extern "C" fn(*mut c_int, *mut c_int) -> Code,
    create: unsafe extern "C" fn(
        *mut Program,
        *const c_char,
        *const c_char,
        c_int,
        Strings,
        Strings,
    ) -> Code,
    compile: unsafe extern "C" fn(Program, c_int, Strings) -> Code,
    destroy: unsafe extern "C" fn(*mut Program) -> Code,
    ptx_size: unsafe extern "C" fn(Program, *mut usize) -> Code,
    ptx: unsafe extern "C" fn(Program, *mut c_char) -> Code,
    log_size: unsafe extern "C" fn(Program, *mut usize) -> Code,
    log: unsafe extern "C" fn(Program, *mut c_char) -> Code,
    describe: unsafe extern "C" fn(Code) -> *const c_char,
    /// The addresses of its functions are in use.
    _library: ManuallyDrop<Library>,
}

impl Nvrtc {
    fn load(path: &Path) -> Result<Self, String> {
        if let Some(builtins) = builtins_beside(path) {
            open(&builtins, RTLD_GLOBAL)?;
        }
        let library = open(path, RTLD_LOCAL)?;
        // SAFETY: the types are those of NVRTC's documentation.
        unsafe {
            Ok(Self {
                version: function(&library, "nvrtcVersion")?,
                create: function(&library, "nvrtcCreateProgram")?,
                compile: function(&library, "nvrtcCompileProgram")?,
                destroy: function(&library, "nvrtcDestroyProgram")?,
                ptx_size: function(&library, "nvrtcGetPTXSize")?,
                ptx: function(&library, "nvrtcGetPTX")?,
                log_size: function(&library, "nvrtcGetProgramLogSize")?,
                log: function(&library, "nvrtcGetProgramLog")?,
                describe: function(&library, "nvrtcGetErrorString")?,
                _library: library,
            })
        }
    }
}

/// Opens a library for the rest of the process.
fn open(path: &Path, scope: c_int) -> Result<ManuallyDrop<Library>, String> {
    // SAFETY: it is NVRTC or a part of it, whose initialisers may run at any time and on any thread.
    let library = unsafe { Library::open(Some(path), RTLD_NOW | scope) };
    library.map(ManuallyDrop::new).map_err(|error| error.to_string())
}

/// A function as the type that the field it is for has.
///
/// # Safety
/// That type is the one of NVRTC's documentation.
unsafe fn function<T: Copy>(library: &Library, name: &str) -> Result<T, String> {
    // SAFETY: the caller knows the type.
    let symbol = unsafe { library.get::<T>(name) };
    symbol.map(|symbol| *symbol).map_err(|error| error.to_string())
}

fn builtins_beside(path: &Path) -> Option<PathBuf> {
    let beside = fs::read_dir(path.parent()?).ok()?;
    let names_builtins = |name: &OsStr| name.as_encoded_bytes().starts_with(BUILTINS.as_bytes());
    let files = beside.flatten().filter(|file| names_builtins(&file.file_name()));
    files.map(|file| file.path()).next()
}

/// The real compiler; `None`, said once, where it cannot be loaded.
fn nvrtc() -> Option<&'static Nvrtc> {
    static NVRTC: OnceLock<Option<Nvrtc>> = OnceLock::new();
    let load = || {
        let path = env::var_os(LOCATION).ok_or_else(|| format!("{LOCATION} names no compiler"))?;
        Nvrtc::load(path.as_ref())
    };
    let found = NVRTC.get_or_init(|| load().map_err(|why| eprintln!("emulator: {why}")).ok());
    found.as_ref()
}

/// Calls the real compiler, where it is there.
fn with_nvrtc(call: impl FnOnce(&Nvrtc) -> Code) -> Code {
    nvrtc().map_or(INTERNAL_ERROR, call)
}

/// An option, which asks for a virtual architecture where it asked for a real one: what is made for that is PTX.
fn virtual_option(option: &CStr) -> CString {
    const REAL: &[u8] = b"--gpu-architecture=sm_";
    const VIRTUAL: &[u8] = b"--gpu-architecture=compute_";
    let changed = option.to_bytes().strip_prefix(REAL).map(|chip| [VIRTUAL, chip].concat());
    changed.and_then(|option| CString::new(option).ok()).unwrap_or_else(|| option.to_owned())
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvrtcVersion(major: *mut c_int, minor: *mut c_int) -> Code {
    // SAFETY: all is passed on.
    with_nvrtc(|nvrtc| unsafe { (nvrtc.version)(major, minor) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvrtcCreateProgram(
    program: *mut Program,
    text: *const c_char,
    name: *const c_char,
    header_count: c_int,
    headers: Strings,
    include_names: Strings,
) -> Code {
    // SAFETY: all is passed on.
    with_nvrtc(|nvrtc| unsafe {
        (nvrtc.create)(program, text, name, header_count, headers, include_names)
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvrtcCompileProgram(
    program: Program,
    option_count: c_int,
    options: Strings,
) -> Code {
    let option = |at: usize| {
        // SAFETY: there are as many options as the caller said, each of which ends in zero.
        virtual_option(unsafe { CStr::from_ptr(*options.add(at)) })
    };
    let changed: Vec<CString> =
        (0..usize::try_from(option_count).unwrap_or(0)).map(option).collect();
    let pointers: Vec<*const c_char> = changed.iter().map(|option| option.as_ptr()).collect();
    // SAFETY: there are as many options as before, each of which ends in zero.
    with_nvrtc(|nvrtc| unsafe { (nvrtc.compile)(program, option_count, pointers.as_ptr()) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvrtcDestroyProgram(program: *mut Program) -> Code {
    // SAFETY: all is passed on.
    with_nvrtc(|nvrtc| unsafe { (nvrtc.destroy)(program) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvrtcGetCUBINSize(program: Program, size: *mut usize) -> Code {
    // SAFETY: all is passed on, to a function of the same type.
    with_nvrtc(|nvrtc| unsafe { (nvrtc.ptx_size)(program, size) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvrtcGetCUBIN(program: Program, code: *mut c_char) -> Code {
    // SAFETY: all is passed on, to a function of the same type.
    with_nvrtc(|nvrtc| unsafe { (nvrtc.ptx)(program, code) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvrtcGetProgramLogSize(program: Program, size: *mut usize) -> Code {
    // SAFETY: all is passed on.
    with_nvrtc(|nvrtc| unsafe { (nvrtc.log_size)(program, size) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvrtcGetProgramLog(program: Program, log: *mut c_char) -> Code {
    // SAFETY: all is passed on.
    with_nvrtc(|nvrtc| unsafe { (nvrtc.log)(program, log) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvrtcGetErrorString(code: Code) -> *const c_char {
    // SAFETY: it takes any number.
    let found = nvrtc().map(|nvrtc| unsafe { (nvrtc.describe)(code) });
    found.unwrap_or_else(|| c"the emulator has no compiler".as_ptr())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_real_architecture_becomes_a_virtual_one_and_other_options_stay() {
        for (given, expected) in [
            (c"--gpu-architecture=sm_90a", c"--gpu-architecture=compute_90a"),
            (c"--gpu-architecture=sm_90", c"--gpu-architecture=compute_90"),
            (c"--gpu-architecture=compute_80", c"--gpu-architecture=compute_80"),
            (c"--include-path=sm_90", c"--include-path=sm_90"),
        ] {
            assert_eq!(&*virtual_option(given), expected);
        }
    }
}
