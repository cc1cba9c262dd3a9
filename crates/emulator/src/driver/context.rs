//! Contexts: what work is done in, on which SMs, and whether it still can be.

use std::cell::Cell;
use std::collections::HashSet;
use std::ffi::{c_int, c_uint, c_void};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::capture;
use super::device;
use super::error::{Code, answer};
use super::event;
use super::handles::{Handle, Handles};
use super::places::give;
use super::sms::SmSet;

/// As the driver numbers them: the lesser number goes first.
const LEAST_PRIORITY: c_int = 0;
const GREATEST_PRIORITY: c_int = -5;

/// What a context and those over parts of it have in common.
#[derive(Debug, Default)]
pub(super) struct Family {
    /// A kernel did what it must not do.
    is_lost: AtomicBool,
    /// The kernels that are loaded.
    loaded: Mutex<HashSet<Handle>>,
}

impl Family {
    /// From now on, every call answers that memory was used which is none.
    pub(super) fn lose(&self) {
        self.is_lost.store(true, Ordering::Release);
    }

    pub(super) fn check(&self) -> Result<(), Code> {
        match self.is_lost.load(Ordering::Acquire) {
            true => Err(Code::IllegalAddress),
            false => Ok(()),
        }
    }

    /// Loads a kernel; true where it was not there.
    pub(super) fn load(&self, kernel: Handle) -> bool {
        self.loaded().insert(kernel)
    }

    /// True where a kernel is loaded.
    pub(super) fn has(&self, kernel: Handle) -> bool {
        self.loaded().contains(&kernel)
    }

    fn loaded(&self) -> MutexGuard<'_, HashSet<Handle>> {
        self.loaded.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What work is done in.
#[derive(Debug)]
pub(super) struct Context {
    pub(super) sms: SmSet,
    /// The same as their numbers.
    pub(super) sm_numbers: Vec<u32>,
    pub(super) family: Arc<Family>,
}

pub(super) static CONTEXTS: Handles<Context> = Handles::new();

thread_local! {
    static CURRENT: Cell<Handle> = const { Cell::new(Handle::NULL) };
}

impl Context {
    /// A context over some SMs.
    pub(super) fn over(sms: SmSet, family: Arc<Family>) -> Arc<Self> {
        let sm_numbers = sms.iter().collect();
        Arc::new(Self { sms, sm_numbers, family })
    }
}

/// The context that is current on this thread, where calls on it are of any use.
pub(super) fn current() -> Result<Arc<Context>, Code> {
    device::started()?;
    let context = CONTEXTS.get(CURRENT.get()).map_err(|_| Code::InvalidContext)?;
    context.family.check()?;
    Ok(context)
}

/// The context that all who ask for it share.
#[derive(Default)]
struct Primary {
    active: Option<(Handle, Arc<Context>)>,
    holders: usize,
    family: Arc<Family>,
}

static PRIMARY: Mutex<Option<Primary>> = Mutex::new(None);

fn with_primary<T>(act: impl FnOnce(&mut Primary) -> T) -> T {
    act(PRIMARY.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_default())
}

/// The primary context's family, where somebody holds it.
pub(super) fn primary_family() -> Result<Arc<Family>, Code> {
    let active = with_primary(|primary| primary.active.clone());
    let (_, context) = active.ok_or(Code::InvalidContext)?;
    context.family.check()?;
    Ok(context.family.clone())
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuDevicePrimaryCtxRetain(context: *mut Handle, device: c_int) -> Code {
    answer(|| {
        device::check(device)?;
        let handle = with_primary(|primary| {
            primary.family.check()?;
            primary.holders += 1;
            let family = &primary.family;
            let (handle, _) = primary.active.get_or_insert_with(|| {
                let context = Context::over(SmSet::all(), family.clone());
                (CONTEXTS.keep(context.clone()), context)
            });
            Ok::<Handle, Code>(*handle)
        })?;
        // SAFETY: the caller gives null or a place for a handle.
        unsafe { give(context, handle) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuDevicePrimaryCtxRelease_v2(device: c_int) -> Code {
    answer(|| {
        device::check(device)?;
        with_primary(|primary| {
            primary.holders = primary.holders.checked_sub(1).ok_or(Code::InvalidContext)?;
            if primary.holders == 0
                && let Some((handle, _)) = primary.active.take()
            {
                CONTEXTS.take(handle)?;
            }
            Ok(())
        })
    })
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn cuCtxCreate_v4(
    context: *mut Handle,
    parameters: *mut c_void,
    _flags: c_uint,
    device: c_int,
) -> Code {
    answer(|| {
        device::check(device)?;
        if !parameters.is_null() {
            return Err(Code::NotSupported);
        }
        if context.is_null() {
            return Err(Code::InvalidValue);
        }
        let handle = CONTEXTS.keep(Context::over(SmSet::all(), Arc::default()));
        CURRENT.set(handle);
        // SAFETY: the caller gives a place for a handle.
        unsafe { give(context, handle) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuCtxDestroy_v2(context: Handle) -> Code {
    answer(|| {
        device::started()?;
        CONTEXTS.take(context).map_err(|_| Code::InvalidContext)?;
        if CURRENT.get() == context {
            CURRENT.set(Handle::NULL);
        }
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn cuCtxSetCurrent(context: Handle) -> Code {
    answer(|| {
        device::started()?;
        if !context.is_null() {
            CONTEXTS.get(context).map_err(|_| Code::InvalidContext)?;
        }
        CURRENT.set(context);
        Ok(())
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuCtxSynchronize() -> Code {
    answer(|| {
        current()?;
        capture::refuse_here().inspect(|()| event::note_wait())
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuCtxGetStreamPriorityRange(least: *mut c_int, greatest: *mut c_int) -> Code {
    answer(|| {
        current()?;
        // SAFETY: the caller gives null or places for numbers.
        unsafe {
            give(least, LEAST_PRIORITY)?;
            give(greatest, GREATEST_PRIORITY)
        }
    })
}
