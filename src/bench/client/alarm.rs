//! Waiting for a moment to the microsecond. The runtime's own timers have a grain of a millisecond, which is the size of what is
//! measured here.

use super::reactor::{Reactor, Slot};
use rustix::io::Errno;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};
use std::future::poll_fn;
use std::io;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

/// A timer of the kernel, for one thread.
#[derive(Debug)]
pub struct Alarm {
    timer: OwnedFd,
    key: usize,
    reactor: Rc<Reactor>,
}

impl Alarm {
    pub fn new() -> io::Result<Alarm> {
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let timer = timerfd_create(TimerfdClockId::Monotonic, flags)?;
        let reactor = Reactor::here()?;
        let key = reactor.add_alarm(&timer)?;
        Ok(Alarm {
            timer,
            key,
            reactor,
        })
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
        timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &once)?;
        poll_fn(|cx| {
            let waits = Slot::Alarm(Some(cx.waker().clone()));
            drop(
                self.reactor
                    .with(self.key, |slot| std::mem::replace(slot, waits)),
            );
            match rustix::io::read(&self.timer, &mut [0_u8; 8]) {
                Ok(_) => Poll::Ready(Ok(())),
                Err(Errno::AGAIN | Errno::INTR) => Poll::Pending,
                Err(error) => Poll::Ready(Err(error.into())),
            }
        })
        .await
    }
}

impl Drop for Alarm {
    fn drop(&mut self) {
        self.reactor.remove(self.key);
    }
}

#[cfg(test)]
mod tests {
    use super::super::Driver;
    use super::*;
    use std::time::Instant;

    #[test]
    fn it_is_never_early() {
        Driver::new().unwrap().drive(async {
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
