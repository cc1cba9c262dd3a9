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
        let mut current = ptr::null_mut();
        // SAFETY: the driver writes one handle.
        unsafe { checked!(cuCtxGetCurrent(&mut current)) }?;
        if current == self.as_context {
            return Ok(Entered::nested());
        }
        let turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: the context lives as long as the guard, and the lock keeps it off other threads.
        unsafe { checked!(cuCtxSetCurrent(self.as_context)) }?;
        Ok(Entered::outermost(&self.context, current, turn))
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
    /// How many guards of green contexts this thread holds.
    static DEPTH: Cell<usize> = const { Cell::new(0) };
}

/// True where this thread is inside a green context.
pub(super) fn is_entered() -> bool {
    DEPTH.get() > 0
}

/// A context is current on this thread as long as this lives; then the one before it is again.
pub struct Entered<'a> {
    restored: Option<Restored<'a>>,
    /// What is current belongs to the thread.
    thread_bound: PhantomData<*const ()>,
}

struct Restored<'a> {
    context: &'a Context,
    before: sys::CUcontext,
    _turn: MutexGuard<'a, ()>,
}

impl<'a> Entered<'a> {
    fn nested() -> Self {
        Self { restored: None, thread_bound: PhantomData }
    }

    fn outermost(context: &'a Context, before: sys::CUcontext, turn: MutexGuard<'a, ()>) -> Self {
        DEPTH.set(DEPTH.get() + 1);
        Self {
            restored: Some(Restored { context, before, _turn: turn }),
            thread_bound: PhantomData,
        }
    }
}

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        let Some(restored) = &self.restored else { return };
        DEPTH.set(DEPTH.get() - 1);
        // SAFETY: what was current before belongs to a guard that this thread still holds, or is a primary context.
        let is_restored = unsafe { checked!(cuCtxSetCurrent(restored.before)) };
        if is_restored.is_err() {
            let _ = restored.context.make_current();
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
                context.bind_to_thread()?;
                Ok(Entered::nested())
            }
            Self::Part(green) => green.enter(),
        }
    }
}
