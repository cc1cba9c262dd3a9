//! Waking up at an instant, to within some microseconds: the runtime's own timers know whole milliseconds only.

use std::io::{self, ErrorKind};
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};
use tokio::net::unix::pipe::Receiver;

/// A timer of the operating system that the runtime waits for as it does for sockets.
pub(crate) struct Alarm {
    timer: OwnedFd,
    /// The same timer to the runtime, which reads it as it reads the end of a pipe: when it rings, there are bytes.
    rings: Receiver,
}

impl Alarm {
    pub(crate) fn new() -> io::Result<Self> {
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let timer = timerfd_create(TimerfdClockId::Monotonic, flags)?;
        let rings = Receiver::from_owned_fd_unchecked(timer.try_clone()?)?;
        Ok(Self { timer, rings })
    }

    /// Returns after this time. Dropped before, it leaves the alarm set, which the next call sets anew.
    pub(crate) async fn after(&mut self, wait: Duration) -> io::Result<()> {
        // A value of zero would switch the timer off.
        let wait = wait.max(Duration::from_nanos(1));
        let zero = Timespec { tv_sec: 0, tv_nsec: 0 };
        let once = Timespec {
            tv_sec: wait.as_secs().try_into().unwrap_or(i64::MAX),
            tv_nsec: wait.subsec_nanos().into(),
        };
        let setting = Itimerspec { it_interval: zero, it_value: once };
        timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &setting)?;
        loop {
            self.rings.readable().await?;
            let mut expirations = [0; size_of::<u64>()];
            match self.rings.try_read(&mut expirations) {
                // It rang for an earlier call, and was then set anew.
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                read => return read.map(|_| ()),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    #[tokio::test]
    async fn it_never_wakes_early_and_rarely_late() {
        let mut alarm = Alarm::new().unwrap();
        let mut late: Vec<Duration> = Vec::new();
        for us in (0..200).map(|step| 100 + step * 7) {
            let wait = Duration::from_micros(us);
            let before = Instant::now();
            alarm.after(wait).await.unwrap();
            late.push(before.elapsed().checked_sub(wait).expect("not early"));
        }
        late.sort_unstable();
        // On a machine that does other things some wake late; rounding to milliseconds would make most late.
        assert!(late[20] < Duration::from_micros(300), "{late:?}");
    }

    #[tokio::test]
    async fn an_alarm_that_was_given_up_does_not_ring_for_the_next() {
        let mut alarm = Alarm::new().unwrap();
        tokio::select! {
            biased;
            _ = alarm.after(Duration::from_millis(1)) => panic!("it waits"),
            () = std::future::ready(()) => {}
        }
        std::thread::sleep(Duration::from_millis(2));
        let before = Instant::now();
        alarm.after(Duration::from_millis(20)).await.unwrap();
        assert!(before.elapsed() >= Duration::from_millis(20));
    }
}
