//! The functions of a library, taken from the file that was found, not from whichever the loader would choose.

use std::ffi::{CStr, c_char, c_int};

use crate::driver::{CudaError, FailedCall};
use crate::library::{CudaLibrary, OpenLibrary};

/// A result as the libraries number them; zero is success.
pub(super) type Code = c_int;

/// A function of a library as the type that the field it is for has.
///
/// # Safety
/// That type is the one of the library's documentation.
pub(super) unsafe fn function<T: Copy>(
    library: &OpenLibrary,
    kind: CudaLibrary,
    name: &str,
) -> Result<T, CudaError> {
    // SAFETY: the caller knows the type.
    unsafe { library.symbol(name) }
        .ok_or_else(|| CudaError::Refused(format!("{} has no function {name}", kind.title())))
}

/// A structure of a library's functions, with the function `load` that finds all of them or names the one that is
/// missing.
macro_rules! functions {
    (
        $(#[$doc:meta])*
        struct $name:ident of $kind:expr;
        $($field:ident: fn($($argument:ty),* $(,)?) -> $result:ty = $symbol:literal;)*
    ) => {
        $(#[$doc])*
        pub(super) struct $name {
            $(pub(super) $field: unsafe extern "C" fn($($argument),*) -> $result,)*
        }

        impl $name {
            /// # Safety
            /// The types are those of the library's documentation.
            unsafe fn load(library: &$crate::library::OpenLibrary) -> Result<Self, $crate::driver::CudaError> {
                Ok(Self {
                    // SAFETY: the caller vouches for the types.
                    $($field: unsafe { $crate::vendor::functions::function(library, $kind, $symbol) }?,)*
                })
            }
        }
    };
}
pub(super) use functions;

/// The error of a call that failed.
pub(super) fn failed(call: &'static str, code: String, description: String) -> CudaError {
    CudaError::Call(FailedCall { call, code, description })
}

/// A text that a library owns and never frees.
///
/// # Safety
/// `text` is null, or a constant string that ends in zero.
pub(super) unsafe fn constant_text(text: *const c_char) -> String {
    if text.is_null() {
        return "the library does not describe it".to_string();
    }
    // SAFETY: the caller vouches for it.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}
