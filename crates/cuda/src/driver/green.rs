//! Green contexts: contexts whose work runs on some of the GPU's SMs.

use std::cell::Cell;
use std::fmt;
use std::marker::PhantomData;
use std::ptr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cudarc::driver::sys::{self, CUdevResourceType, CUgreenCtxCreate_flags};

use super::context::Context;
use super::error::{CudaError, checked};

/// A context over some of the GPU's SMs. It shares memory and kernels with the primary context.
pub struct GreenContext {
    raw: sys::CUgreenCtx,
    as_context: sys::CUcontext,
    sm_count: u32,
    /// The driver allows it to be current on one thread at a time.
    turn: Mutex<()>,
    context: Arc<Context>,
}

// SAFETY: the driver allows calls with its handle from any thread; `turn` keeps it current on one at a time.
unsafe impl Send for GreenContext {}
// SAFETY: as above; no other field changes.
unsafe impl Sync for GreenContext {}

impl GreenContext {
    /// A context over the SMs of `groups`, which are of one split of the GPU's SMs.
    pub(super) fn new(
        context: &Arc<Context>,
        groups: &[sys::CUdevResource],
    ) -> Result<Arc<Self>, CudaError> {
        context.bind_to_thread()?;
        let mut groups = groups.to_vec();
        let mut description = ptr::null_mut();
        // SAFETY: the driver reads the groups, and writes a handle that it owns.
        unsafe {
            checked!(cuDevResourceGenerateDesc(
                &mut description,
                groups.as_mut_ptr(),
                groups.len() as u32,
            ))
        }?;
        let flags = CUgreenCtxCreate_flags::CU_GREEN_CTX_DEFAULT_STREAM as u32;
        let mut raw = ptr::null_mut();
        // SAFETY: the description is the driver's own, and it writes one handle, which `drop` destroys.
        unsafe { checked!(cuGreenCtxCreate(&mut raw, description, context.device(), flags)) }?;
        let mut green = Self {
            raw,
            as_context: ptr::null_mut(),
            sm_count: 0,
            turn: Mutex::default(),
            context: context.clone(),
        };
        // SAFETY: the green context lives, and the driver writes one handle, which lives as long.
        unsafe { checked!(cuCtxFromGreenCtx(&mut green.as_context, raw)) }?;
        green.sm_count = sm_count(raw)?;
        Ok(Arc::new(green))
    }

    /// Makes it current on this thread until the guard is dropped; waits while it is current on another one.
    pub fn enter(&self) -> Result<Entered<'_>, CudaError> {
        if ENTERED.get() == self.as_context {
            return Ok(Entered::unchanged());
        }
        let turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: the context lives as long as the guard, and the lock keeps it off other threads.
        unsafe { checked!(cuCtxSetCurrent(self.as_context)) }?;
        Ok(Entered::changed(&self.context, self.as_context, Some(turn)))
    }

    /// How many SMs its work runs on.
    pub fn sm_count(&self) -> u32 {
        self.sm_count
    }

    /// The GPU it is a part of.
    pub fn context(&self) -> &Arc<Context> {
        &self.context
    }

    pub(super) fn raw(&self) -> sys::CUgreenCtx {
        self.raw
    }
}

fn sm_count(green: sys::CUgreenCtx) -> Result<u32, CudaError> {
    // SAFETY: all fields are numbers, for which zero is valid.
    let mut resource: sys::CUdevResource = unsafe { std::mem::zeroed() };
    let kind = CUdevResourceType::CU_DEV_RESOURCE_TYPE_SM;
    // SAFETY: the green context lives, and the driver writes one description of SMs, whose count is then read.
    unsafe {
        checked!(cuGreenCtxGetDevResource(green, &mut resource, kind))?;
        Ok(resource.__bindgen_anon_1.sm.smCount)
    }
}

impl Drop for GreenContext {
    fn drop(&mut self) {
        // SAFETY: streams and events hold an `Arc` of it, so they are gone, and it is current on no thread.
        unsafe { sys::cuGreenCtxDestroy(self.raw) };
    }
}

impl fmt::Debug for GreenContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "GreenContext({} SMs)", self.sm_count)
    }
}

thread_local! {
    /// The green context that this thread is inside; null where it is inside none.
    static ENTERED: Cell<sys::CUcontext> = const { Cell::new(ptr::null_mut()) };
}

/// True where this thread is inside a green context.
pub(super) fn is_entered() -> bool {
    !ENTERED.get().is_null()
}

/// A context is current on this thread as long as this lives; then the one before it is again.
pub struct Entered<'a> {
    change: Option<Change<'a>>,
    /// What is current belongs to the thread.
    thread_bound: PhantomData<*const ()>,
}

struct Change<'a> {
    context: &'a Context,
    /// The green context that was entered before, which is another guard's; null where there was none.
    before: sys::CUcontext,
    _turn: Option<MutexGuard<'a, ()>>,
}

impl<'a> Entered<'a> {
    fn unchanged() -> Self {
        Self { change: None, thread_bound: PhantomData }
    }

    fn changed(
        context: &'a Context,
        entered: sys::CUcontext,
        turn: Option<MutexGuard<'a, ()>>,
    ) -> Self {
        let before = ENTERED.replace(entered);
        Self { change: Some(Change { context, before, _turn: turn }), thread_bound: PhantomData }
    }
}

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        let Some(change) = &self.change else { return };
        ENTERED.set(change.before);
        if change.before.is_null() {
            let _ = change.context.make_current();
        } else {
            // SAFETY: the guard of the context before is still held, so that context lives.
            unsafe { sys::cuCtxSetCurrent(change.before) };
        }
    }
}

/// Where streams and events live: the whole GPU, or a part of it.
#[derive(Clone, Debug)]
pub(super) enum Home {
    Whole(Arc<Context>),
    Part(Arc<GreenContext>),
}

impl Home {
    pub(super) fn context(&self) -> &Arc<Context> {
        match self {
            Self::Whole(context) => context,
            Self::Part(green) => green.context(),
        }
    }

    /// Makes it current on this thread until the guard is dropped.
    pub(super) fn enter(&self) -> Result<Entered<'_>, CudaError> {
        match self {
            Self::Whole(context) => {
                context.make_current()?;
                Ok(Entered::changed(context, ptr::null_mut(), None))
            }
            Self::Part(green) => green.enter(),
        }
    }
}
