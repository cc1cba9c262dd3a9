//! Streams: whatever is added to one has been done when the call returns, unless it is recorded.

use std::ffi::{c_int, c_uint};
use std::sync::Arc;
use std::thread;

use super::capture::{self, Watched, captures};
use super::context::{self, Context};
use super::device;
use super::error::{Code, answer};
use super::event;
use super::graph;
use super::handles::{Handle, Handles};
use super::operation::{Operation, perform};
use super::places::give;
use crate::memory::Memory;

/// The flag of a stream that waits for no other one.
pub(super) const NON_BLOCKING: c_uint = 1;

/// A queue of work.
#[derive(Debug)]
pub(super) struct Stream {
    pub(super) handle: Handle,
    pub(super) context: Arc<Context>,
}

static STREAMS: Handles<Context> = Handles::new();

impl Stream {
    /// The stream of a handle; without one, the current context's own.
    pub(super) fn of(handle: Handle) -> Result<Self, Code> {
        device::started()?;
        let context = match handle.is_null() {
            true => context::current()?,
            false => STREAMS.get(handle)?,
        };
        context.family.check()?;
        Ok(Self { handle, context })
    }

    /// True where work is recorded.
    pub(super) fn is_recording(&self) -> bool {
        captures().is_recording(self.handle)
    }

    /// Does work, or records it.
    pub(super) fn add(&self, operation: Operation) -> Result<(), Code> {
        if !operation.has_memory(Memory::of_process()) {
            return Err(Code::InvalidValue);
        }
        // Others may record meanwhile.
        let added = captures().add(self.handle, operation)?;
        perform(added.iter(), &self.context.family);
        Ok(())
    }

    fn wait(&self) -> Result<(), Code> {
        capture::refuse_in(self.handle).inspect(|()| event::note_wait())
    }
}

/// Makes a stream of a context.
///
/// # Safety
/// `place` is null or can be written.
pub(super) unsafe fn create(
    place: *mut Handle,
    context: &Arc<Context>,
    flags: c_uint,
    _priority: c_int,
) -> Result<(), Code> {
    if place.is_null() || flags & !NON_BLOCKING != 0 {
        return Err(Code::InvalidValue);
    }
    // SAFETY: the caller vouches for the place.
    unsafe { give(place, STREAMS.keep(context.clone())) }
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn cuStreamCreate(place: *mut Handle, flags: c_uint) -> Code {
    // SAFETY: the caller gives null or a place for a handle.
    answer(|| unsafe { create(place, &context::current()?, flags, 0) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuStreamCreateWithPriority(
    place: *mut Handle,
    flags: c_uint,
    priority: c_int,
) -> Code {
    // SAFETY: the caller gives null or a place for a handle.
    answer(|| unsafe { create(place, &context::current()?, flags, priority) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuStreamDestroy_v2(stream: Handle) -> Code {
    answer(|| {
        STREAMS.take(stream)?;
        captures().forget(stream);
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn cuStreamSynchronize(stream: Handle) -> Code {
    answer(|| Stream::of(stream)?.wait())
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuStreamQuery(stream: Handle) -> Code {
    answer(|| Stream::of(stream)?.wait())
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn cuStreamWaitEvent(
    stream: Handle,
    event: Handle,
    flags: c_uint,
) -> Code {
    answer(|| {
        if flags != 0 {
            return Err(Code::NotSupported);
        }
        event::make_wait(&Stream::of(stream)?, event)
    })
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn cuStreamBeginCapture_v2(stream: Handle, mode: c_uint) -> Code {
    answer(|| {
        let stream = Stream::of(stream)?;
        if stream.handle.is_null() {
            return Err(Code::CaptureUnsupported);
        }
        let watched = Watched::from_mode(mode).ok_or(Code::InvalidValue)?;
        captures().begin(stream.handle, thread::current().id(), watched)
    })
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn cuStreamEndCapture(stream: Handle, graph: *mut Handle) -> Code {
    answer(|| {
        let stream = Stream::of(stream)?;
        let ended = captures().end(stream.handle, thread::current().id());
        let (handle, code) = match ended {
            Ok(nodes) => (graph::keep(nodes), Ok(())),
            Err(code) => (Handle::NULL, Err(code)),
        };
        // SAFETY: the caller gives null or a place for a handle.
        unsafe { give(graph, handle) }?;
        code
    })
}
