//! What streams and graphs are made of, and doing it.

use std::ptr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::context::Family;
use super::launch::KernelLaunch;
use crate::memory::Memory;

/// Work for the device.
#[derive(Clone)]
pub(super) enum Operation {
    Launch(Arc<KernelLaunch>),
    /// Between any two of the device, the host and each other.
    Copy {
        to: u64,
        from: u64,
        size_bytes: u64,
        checked: Ends,
    },
    Fill {
        to: u64,
        byte: u8,
        size_bytes: u64,
    },
}

/// Which ends of a copy are memory of the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ends {
    To,
    From,
    Both,
}

/// The device, which does one thing at a time. Whoever takes memory away must hold it too, so that nothing is using that.
pub(super) fn device() -> MutexGuard<'static, ()> {
    static DEVICE: Mutex<()> = Mutex::new(());
    DEVICE.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Operation {
    /// True where all memory that it names is there; that which kernels use shows when they run.
    pub(super) fn has_memory(&self, memory: &Memory) -> bool {
        match *self {
            Self::Launch(_) => true,
            Self::Copy { to, from, size_bytes, checked } => {
                (checked == Ends::From || memory.contains(to, size_bytes))
                    && (checked == Ends::To || memory.contains(from, size_bytes))
            }
            Self::Fill { to, size_bytes, .. } => memory.contains(to, size_bytes),
        }
    }

    fn perform(&self, memory: &Memory) -> Result<(), String> {
        if !self.has_memory(memory) {
            return Err("a graph copies or fills memory that was freed".to_string());
        }
        match *self {
            Self::Launch(ref launch) => launch.run(memory)?,
            Self::Copy { to, from, size_bytes, .. } => {
                let (to, from) = (to as *mut u8, from as *const u8);
                // SAFETY: what is the device's was found there and stays, as the device is held; the caller vouches for the rest.
                unsafe { ptr::copy(from, to, size_bytes as usize) };
            }
            Self::Fill { to, byte, size_bytes } => {
                // SAFETY: the memory was found there and stays, as the device is held.
                unsafe { ptr::write_bytes(to as *mut u8, byte, size_bytes as usize) };
            }
        }
        Ok(())
    }
}

/// Does work, one thing after another. What goes wrong shows in later calls, as it does where work is done later.
pub(super) fn perform<'a>(work: impl IntoIterator<Item = &'a Operation>, family: &Family) {
    let memory = Memory::of_process();
    for operation in work {
        let _device = device();
        if family.check().is_err() {
            return;
        }
        if let Err(why) = operation.perform(memory) {
            eprintln!("emulator: {why}");
            family.lose();
        }
    }
}
