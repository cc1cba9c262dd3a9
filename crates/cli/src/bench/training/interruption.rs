//! Somebody who asks this process to end: what it has started ends first.

use std::fmt;
use std::process::exit;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use rustix::process::Signal;
use tokio::runtime::Builder;
use tokio::signal::unix::{SignalKind, signal};

use crate::commands::run::ignores_hangups;

/// How often those who wait look. What is measured shares the cores with them.
pub(super) const LOOK: Duration = Duration::from_millis(100);

/// What shells add to the number of the signal that ended a program.
const SIGNALLED: u8 = 128;

/// The signal that came, or 0.
#[derive(Clone)]
pub(super) struct Interruption(Arc<AtomicU8>);

/// This process was asked to end.
#[derive(Debug)]
pub(crate) struct Interrupted {
    signal: u8,
}

impl Interrupted {
    /// What this process ends with.
    pub(crate) fn exit_code(&self) -> u8 {
        SIGNALLED + self.signal
    }
}

impl fmt::Display for Interrupted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("interrupted")
    }
}

impl std::error::Error for Interrupted {}

impl Interruption {
    /// Listens from now on. The second signal ends this process at once.
    pub(super) fn listen() -> Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let entered = runtime.enter();
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        let listens = !ignores_hangups()?;
        let mut hangup = listens.then(|| signal(SignalKind::hangup())).transpose()?;
        drop(entered);
        let came = Arc::new(AtomicU8::new(0));
        let told = came.clone();
        thread::spawn(move || {
            runtime.block_on(async move {
                loop {
                    let signal = tokio::select! {
                        _ = terminate.recv() => Signal::TERM,
                        _ = interrupt.recv() => Signal::INT,
                        _ = async { hangup.as_mut()?.recv().await }, if listens => Signal::HUP,
                    };
                    let number = signal.as_raw() as u8;
                    if told.swap(number, Ordering::Relaxed) != 0 {
                        exit(i32::from(SIGNALLED + number));
                    }
                }
            });
        });
        Ok(Self(came))
    }

    /// An error once somebody has asked.
    pub(super) fn check(&self) -> Result<()> {
        match self.0.load(Ordering::Relaxed) {
            0 => Ok(()),
            signal => bail!(Interrupted { signal }),
        }
    }

    /// Sleeps, unless somebody asks.
    pub(super) fn sleep(&self, length: Duration) -> Result<()> {
        let start = Instant::now();
        loop {
            self.check()?;
            let left = length.saturating_sub(start.elapsed());
            if left.is_zero() {
                return Ok(());
            }
            thread::sleep(left.min(LOOK));
        }
    }
}
