//! Copies and fills in streams.

use std::ffi::{c_uchar, c_void};

use super::error::{Code, answer};
use super::handles::Handle;
use super::operation::{Ends, Operation};
use super::stream::Stream;

fn copy(to: u64, from: u64, size_bytes: usize, checked: Ends, stream: Handle) -> Code {
    answer(|| {
        let stream = Stream::of(stream)?;
        if to == 0 || from == 0 {
            return Err(Code::InvalidValue);
        }
        stream.add(Operation::Copy { to, from, size_bytes: size_bytes as u64, checked })
    })
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn cuMemcpyHtoDAsync_v2(
    to: u64,
    from: *const c_void,
    size_bytes: usize,
    stream: Handle,
) -> Code {
    copy(to, from as u64, size_bytes, Ends::To, stream)
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn cuMemcpyDtoHAsync_v2(
    to: *mut c_void,
    from: u64,
    size_bytes: usize,
    stream: Handle,
) -> Code {
    copy(to as u64, from, size_bytes, Ends::From, stream)
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn cuMemcpyDtoDAsync_v2(
    to: u64,
    from: u64,
    size_bytes: usize,
    stream: Handle,
) -> Code {
    copy(to, from, size_bytes, Ends::Both, stream)
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn cuMemsetD8Async(
    to: u64,
    byte: c_uchar,
    size_bytes: usize,
    stream: Handle,
) -> Code {
    answer(|| {
        let stream = Stream::of(stream)?;
        stream.add(Operation::Fill { to, byte, size_bytes: size_bytes as u64 })
    })
}
