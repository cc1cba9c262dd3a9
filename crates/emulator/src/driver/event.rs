//! Events: what they mark has been reached at once, unless it is recorded. Who only asks is told so the second time, or after
//! somebody has waited for something: a GPU takes its time.

use std::ffi::c_uint;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use super::capture::{self, Mark, captures};
use super::context::{self, Context};
use super::error::{Code, answer};
use super::handles::{Handle, Handles};
use super::places::give;
use super::stream::Stream;

/// An event's flags: waiting without keeping a core busy, and no time noted.
const BLOCKING_SYNC: c_uint = 1;
const DISABLE_TIMING: c_uint = 2;

struct Event {
    context: Arc<Context>,
    has_time: bool,
    state: Mutex<State>,
}

#[derive(Clone)]
enum State {
    Unused,
    Reached {
        when: Instant,
        /// Somebody has asked already.
        was_asked: bool,
    },
    /// It was last put into a stream that was recording.
    Recorded(Mark),
}

static EVENTS: Handles<Event> = Handles::new();

/// When somebody last waited for the device, after which everything has been reached that came before.
fn last_wait() -> MutexGuard<'static, Option<Instant>> {
    static LAST_WAIT: Mutex<Option<Instant>> = Mutex::new(None);
    LAST_WAIT.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Notes that somebody waited for the device.
pub(super) fn note_wait() {
    *last_wait() = Some(Instant::now());
}

fn reached_now() -> State {
    State::Reached { when: Instant::now(), was_asked: false }
}

impl Event {
    fn of(handle: Handle) -> Result<Arc<Self>, Code> {
        let event = EVENTS.get(handle)?;
        event.context.family.check()?;
        Ok(event)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Refuses an event whose mark nothing reaches.
    fn wait(&self) -> Result<(), Code> {
        let is_recorded = matches!(*self.state(), State::Recorded(_));
        match is_recorded {
            true => Err(Code::CapturedEvent),
            false => capture::refuse_here().inspect(|()| note_wait()),
        }
    }

    /// Whether it is known by now that it was reached.
    fn ask(&self) -> Result<(), Code> {
        if let State::Reached { when, was_asked } = &mut *self.state() {
            let is_known = std::mem::replace(was_asked, true) || Some(*when) <= *last_wait();
            return if is_known { capture::refuse_here() } else { Err(Code::NotReady) };
        }
        self.wait()
    }

    fn reached(&self) -> Result<Instant, Code> {
        match &*self.state() {
            State::Reached { when, .. } if self.has_time => Ok(*when),
            _ => Err(Code::InvalidHandle),
        }
    }
}

/// Has a stream go on after what an event marks.
pub(super) fn make_wait(stream: &Stream, event: Handle) -> Result<(), Code> {
    let state = Event::of(event)?.state().clone();
    match state {
        State::Unused => Ok(()),
        // Work outside a recording is no part of it.
        State::Reached { .. } if captures().fail(stream.handle) => Err(Code::CaptureIsolation),
        State::Reached { .. } => Ok(()),
        State::Recorded(mark) => captures().wait(stream.handle, &mark),
    }
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn cuEventCreate(event: *mut Handle, flags: c_uint) -> Code {
    answer(|| {
        let context = context::current()?;
        if event.is_null() || flags & !(BLOCKING_SYNC | DISABLE_TIMING) != 0 {
            return Err(Code::InvalidValue);
        }
        let has_time = flags & DISABLE_TIMING == 0;
        let made = Event { context, has_time, state: Mutex::new(State::Unused) };
        // SAFETY: the caller gives a place for a handle.
        unsafe { give(event, EVENTS.keep(made)) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuEventDestroy_v2(event: Handle) -> Code {
    answer(|| EVENTS.take(event).map(drop))
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn cuEventRecord(event: Handle, stream: Handle) -> Code {
    answer(|| {
        let (event, stream) = (Event::of(event)?, Stream::of(stream)?);
        if !Arc::ptr_eq(&event.context, &stream.context) {
            return Err(Code::InvalidHandle);
        }
        let mark = captures().mark(stream.handle);
        *event.state() = mark.map_or_else(reached_now, State::Recorded);
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn cuEventQuery(event: Handle) -> Code {
    answer(|| Event::of(event)?.ask())
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn cuEventSynchronize(event: Handle) -> Code {
    answer(|| Event::of(event)?.wait())
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn cuEventElapsedTime_v2(
    milliseconds: *mut f32,
    start: Handle,
    end: Handle,
) -> Code {
    answer(|| {
        let [start, end] = [Event::of(start)?.reached()?, Event::of(end)?.reached()?];
        let elapsed = match end.checked_duration_since(start) {
            Some(elapsed) => elapsed.as_secs_f64(),
            None => -start.duration_since(end).as_secs_f64(),
        };
        // SAFETY: the caller gives null or a place for a number.
        unsafe { give(milliseconds, (elapsed * 1e3) as f32) }
    })
}
