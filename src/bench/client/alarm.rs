//! Waiting for a moment to the microsecond. The runtime's own timers have a grain of a millisecond, which is the size of what is
//! measured here.

// Registering a descriptor with the runtime is unsafe, because it must stay open and the same until it is registered no more.
#![allow(unsafe_code)]

use rustix::io::Errno;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};
use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;
use tokio::io::unix::AsyncFd;

/// A timer of the kernel.
#[derive(Debug)]
pub struct Alarm(AsyncFd<OwnedFd>);

impl Alarm {
    pub fn new() -> io::Result<Alarm> {
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let timer = timerfd_create(TimerfdClockId::Monotonic, flags)?;
        // SAFETY: the descriptor is new, owned by the result alone, never handed out to be closed or replaced, and closed after it
        // is deregistered.
        Ok(Alarm(unsafe { AsyncFd::register(timer) }?))
    }

    /// Ends after `wait`.
    pub async fn after(&self, wait: Duration) -> io::Result<()> {
        if wait.is_zero() {
            return Ok(());
        }
        let once = Itimerspec {
            it_interval: Timespec {
                tv_sec: 0,
                tv_nsec: 0,
            },
            it_value: Timespec {
                tv_sec: i64::try_from(wait.as_secs()).unwrap_or(i64::MAX),
                tv_nsec: i64::from(wait.subsec_nanos()),
            },
        };
        timerfd_settime(self.0.get_ref(), TimerfdTimerFlags::empty(), &once)?;
        loop {
            let mut guard = self.0.readable().await?;
            match rustix::io::read(self.0.get_ref(), &mut [0; 8]) {
                Ok(_) => {
                    guard.clear_ready();
                    return Ok(());
                }
                Err(Errno::AGAIN) => guard.clear_ready(),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    #[test]
    fn it_is_never_early() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .build()
            .unwrap();
        runtime.block_on(async {
            let alarm = Alarm::new().unwrap();
            for wait in [0, 30, 1500, 30] {
                let wait = Duration::from_micros(wait);
                let began = Instant::now();
                alarm.after(wait).await.unwrap();
                assert!(began.elapsed() >= wait);
            }
        });
    }
}
