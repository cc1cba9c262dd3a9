//! How the operating system chooses between threads of one core.

/// Who runs when several threads want a core.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Priority {
    /// It has its share of the core like any other thread, in long turns: who wakes for a moment, to take in a request or to
    /// send an answer, goes first.
    #[default]
    Normal,
    /// The same in short turns, so that it goes before `Normal` when it wakes.
    Prompt,
    /// Only while nobody else wants the core; whoever does gets it at once.
    Background,
}

impl Priority {
    /// Of those that interrupt workers of this one.
    pub(super) fn of_interrupter(self) -> Self {
        match self {
            Self::Normal | Self::Prompt => Self::Prompt,
            Self::Background => Self::Background,
        }
    }

    /// Gives the calling thread this priority; false where the operating system refuses.
    pub(super) fn apply_to_current(self) -> bool {
        match self {
            Self::Normal => {
                // Without it the thread works as well; others wait longer for their turn.
                let _ = set_turn(TURN_NS);
                true
            }
            Self::Prompt => true,
            Self::Background => {
                let parameters = libc::sched_param { sched_priority: 0 };
                // SAFETY: the pointer is to a live value of the type that the call takes; 0 is the calling thread.
                unsafe { libc::sched_setscheduler(0, libc::SCHED_IDLE, &parameters) == 0 }
            }
        }
    }
}

/// How long a worker would run at a stretch. Linux lets a thread that wakes interrupt one with longer turns than its own at
/// once, and one with turns like its own only at the next tick of the clock, up to 4 ms later.
const TURN_NS: u64 = 100_000_000;

/// The argument of `sched_setattr`, in its first version.
#[repr(C)]
#[derive(Default)]
struct SchedulingAttributes {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    runtime_ns: u64,
    deadline_ns: u64,
    period_ns: u64,
}

/// Asks for turns of this length for the calling thread; kernels before 6.12 take no notice.
fn set_turn(turn_ns: u64) -> std::io::Result<()> {
    // SAFETY: `getpriority` has no pointers; 0 is the calling thread.
    let nice = unsafe { libc::getpriority(libc::PRIO_PROCESS, 0) };
    let attributes = SchedulingAttributes {
        size: size_of::<SchedulingAttributes>() as u32,
        policy: libc::SCHED_OTHER as u32,
        nice,
        runtime_ns: turn_ns,
        ..SchedulingAttributes::default()
    };
    // SAFETY: the pointer is to a live value of the layout and size that the call is told; 0 is the calling thread.
    let outcome = unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &attributes, 0) };
    if outcome == 0 { Ok(()) } else { Err(std::io::Error::last_os_error()) }
}
