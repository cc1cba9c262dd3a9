//! The calls of CUDA's run-time compiler.
//!
//! Its functions are taken from the library that was found, not from whichever of several the loader would choose.

use std::ffi::{CStr, CString, c_char, c_int};
use std::ptr;

use cudarc::nvrtc::sys::nvrtcProgram;

use super::program::Program;
use crate::driver::{CudaError, Version};
use crate::library::{CudaLibrary, Libraries, OpenLibrary};

/// A result as the compiler numbers it; zero is success.
type Code = c_int;

/// The compiler's functions.
pub(super) struct Nvrtc {
    version: Version,
    create: unsafe extern "C" fn(
        *mut nvrtcProgram,
        *const c_char,
        *const c_char,
        c_int,
        *const *const c_char,
        *const *const c_char,
    ) -> Code,
    compile: unsafe extern "C" fn(nvrtcProgram, c_int, *const *const c_char) -> Code,
    destroy: unsafe extern "C" fn(*mut nvrtcProgram) -> Code,
    code_size: unsafe extern "C" fn(nvrtcProgram, *mut usize) -> Code,
    code: unsafe extern "C" fn(nvrtcProgram, *mut c_char) -> Code,
    log_size: unsafe extern "C" fn(nvrtcProgram, *mut usize) -> Code,
    log: unsafe extern "C" fn(nvrtcProgram, *mut c_char) -> Code,
    describe: unsafe extern "C" fn(Code) -> *const c_char,
}

/// A function of the library as the type that the field it is for has.
///
/// # Safety
/// That type is the one of NVRTC's documentation.
unsafe fn function<T: Copy>(library: &OpenLibrary, name: &str) -> Result<T, CudaError> {
    // SAFETY: the caller knows the type.
    unsafe { library.symbol(name) }
        .ok_or_else(|| CudaError::Refused(format!("NVRTC has no function {name}")))
}

impl Nvrtc {
    /// The compiler among `libraries`.
    pub(super) fn load(libraries: &'static Libraries) -> Result<Self, CudaError> {
        let library = libraries.open(CudaLibrary::Nvrtc)?;
        type GetVersion = unsafe extern "C" fn(*mut c_int, *mut c_int) -> Code;
        // SAFETY: the types are those of NVRTC's documentation, which have not changed since its first version, but
        // for the functions of machine code, which came later and as they are.
        unsafe {
            let version: GetVersion = function(library, "nvrtcVersion")?;
            let (mut major, mut minor) = (0, 0);
            version(&mut major, &mut minor);
            Ok(Self {
                version: Version((1000 * major + 10 * minor).unsigned_abs()),
                create: function(library, "nvrtcCreateProgram")?,
                compile: function(library, "nvrtcCompileProgram")?,
                destroy: function(library, "nvrtcDestroyProgram")?,
                code_size: function(library, "nvrtcGetCUBINSize")?,
                code: function(library, "nvrtcGetCUBIN")?,
                log_size: function(library, "nvrtcGetProgramLogSize")?,
                log: function(library, "nvrtcGetProgramLog")?,
                describe: function(library, "nvrtcGetErrorString")?,
            })
        }
    }

    pub(super) fn version(&self) -> Version {
        self.version
    }

    /// The machine code of a program, or what the compiler says of its errors.
    pub(super) fn compile(&self, program: &Program) -> Result<Vec<u8>, String> {
        let c_string = |text: &str| CString::new(text).map_err(|error| error.to_string());
        let (text, name) = (c_string(&program.text)?, c_string(&program.name)?);
        let options: Vec<CString> =
            program.options.iter().map(|option| c_string(option)).collect::<Result<_, _>>()?;
        let options: Vec<*const c_char> = options.iter().map(|option| option.as_ptr()).collect();

        let mut unit = Unit { nvrtc: self, raw: ptr::null_mut() };
        // SAFETY: both strings end in zero, there are no headers, and the compiler writes one handle.
        let created = unsafe {
            (self.create)(&mut unit.raw, text.as_ptr(), name.as_ptr(), 0, ptr::null(), ptr::null())
        };
        self.check(created)?;
        // SAFETY: the program was created, and `options` has as many strings as it says.
        let compiled =
            unsafe { (self.compile)(unit.raw, options.len() as c_int, options.as_ptr()) };
        self.check(compiled).map_err(|error| format!("{error}\n{}", unit.log()))?;
        unit.code()
    }

    fn check(&self, code: Code) -> Result<(), String> {
        if code == 0 {
            return Ok(());
        }
        // SAFETY: the compiler returns a constant string that ends in zero, for every number.
        let text = unsafe { CStr::from_ptr((self.describe)(code)) };
        Err(text.to_string_lossy().into_owned())
    }
}

/// A program that the compiler holds.
struct Unit<'a> {
    nvrtc: &'a Nvrtc,
    raw: nvrtcProgram,
}

impl Unit<'_> {
    fn code(&self) -> Result<Vec<u8>, String> {
        let mut size = 0;
        // SAFETY: the program was compiled, and the compiler writes one number.
        self.nvrtc.check(unsafe { (self.nvrtc.code_size)(self.raw, &mut size) })?;
        let mut code = vec![0u8; size];
        // SAFETY: there is place for as many bytes as the compiler said.
        self.nvrtc.check(unsafe { (self.nvrtc.code)(self.raw, code.as_mut_ptr().cast()) })?;
        Ok(code)
    }

    fn log(&self) -> String {
        let mut size = 0;
        // SAFETY: the program exists, and the compiler writes one number.
        let sized = unsafe { (self.nvrtc.log_size)(self.raw, &mut size) };
        let mut log = vec![0u8; size];
        // SAFETY: there is place for as many bytes as the compiler said.
        let read = unsafe { (self.nvrtc.log)(self.raw, log.as_mut_ptr().cast()) };
        if self.nvrtc.check(sized).and(self.nvrtc.check(read)).is_err() {
            return "the compiler gives no log".to_string();
        }
        String::from_utf8_lossy(&log).trim_end_matches('\0').trim_end().to_string()
    }
}

impl Drop for Unit<'_> {
    fn drop(&mut self) {
        if !self.raw.is_null() {
            // SAFETY: the program was created, and nothing uses it any more.
            unsafe { (self.nvrtc.destroy)(&mut self.raw) };
        }
    }
}
