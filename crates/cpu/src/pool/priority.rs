//! How the operating system chooses between threads of one core.

/// Who runs when several threads want a core.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Priority {
    /// Like any other thread.
    #[default]
    Normal,
    /// Only while nobody else wants the core; whoever does gets it at once.
    Background,
}

impl Priority {
    /// Gives the calling thread this priority; false where the operating system refuses.
    pub(super) fn apply_to_current(self) -> bool {
        if self == Self::Normal {
            return true;
        }
        let parameters = libc::sched_param { sched_priority: 0 };
        // SAFETY: the pointer is to a live value of the type that the call takes; 0 is the calling thread.
        unsafe { libc::sched_setscheduler(0, libc::SCHED_IDLE, &parameters) == 0 }
    }
}
