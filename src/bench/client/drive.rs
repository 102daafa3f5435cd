//! Driving a future on a thread that reads connections.

use super::reactor::Reactor;
use rustix::event::{EventfdFlags, eventfd};
use std::io;
use std::os::fd::OwnedFd;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use tokio::runtime::Runtime;
use tokio::task::LocalSet;

/// What a thread needs to read connections: made on that thread, and for it.
#[derive(Debug)]
pub struct Driver {
    reactor: Rc<Reactor>,
    bell: Arc<Bell>,
    /// Connecting and coarse timers have a thread of their own: nothing that is measured waits for them.
    helper: Runtime,
}

impl Driver {
    pub fn new() -> io::Result<Driver> {
        let reactor = Reactor::here()?;
        let bell = Arc::new(Bell {
            rung: AtomicBool::new(true),
            unheard: AtomicBool::new(false),
            wire: eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?,
        });
        reactor.watch_bell(&bell.wire)?;
        let helper = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("vramp-connects")
            .enable_all()
            .build()?;
        Ok(Driver {
            reactor,
            bell,
            helper,
        })
    }

    /// Runs `future`, and the tasks that it spawns on this thread, to its end, and reads all connections of this thread meanwhile.
    pub fn drive<F: Future>(self, future: F) -> F::Output {
        let output = {
            let _entered = self.helper.enter();
            let tasks = LocalSet::new();
            self.turn_until(tasks.run_until(future))
        };
        // Name look-ups that were given up run on threads of the runtime; the end does not wait for them.
        self.helper.shutdown_background();
        output
    }

    fn turn_until<F: Future>(&self, future: F) -> F::Output {
        let bell = &self.bell;
        let waker = Waker::from(bell.clone());
        let mut context = Context::from_waker(&waker);
        let mut future = pin!(future);
        loop {
            if bell.rung.swap(false, Ordering::SeqCst)
                && let Poll::Ready(output) = future.as_mut().poll(&mut context)
            {
                return output;
            }
            bell.unheard.store(true, Ordering::SeqCst);
            let may_wait = !bell.rung.load(Ordering::SeqCst);
            self.reactor
                .turn(may_wait, || bell.unheard.store(false, Ordering::SeqCst));
        }
    }
}

/// Tells the thread that its future is to be polled.
#[derive(Debug)]
struct Bell {
    rung: AtomicBool,
    /// The thread may be asleep, so that only the kernel can wake it.
    unheard: AtomicBool,
    wire: OwnedFd,
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let was_rung = self.rung.swap(true, Ordering::SeqCst);
        if !was_rung && self.unheard.load(Ordering::SeqCst) {
            // It can only fail if it has rung without end, and then it rings.
            let _ = rustix::io::write(&self.wire, &1_u64.to_ne_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    #[test]
    fn it_hears_other_threads_and_its_own_tasks() {
        let (sender, mut receiver) = tokio::sync::mpsc::channel(1);
        std::thread::spawn(move || {
            for n in 0..50 {
                std::thread::sleep(Duration::from_micros(200 * (n % 3)));
                sender.blocking_send(n).unwrap();
            }
        });
        let began = Instant::now();
        let sum = Driver::new().unwrap().drive(async {
            let task = tokio::task::spawn_local(async move {
                let mut sum = 0;
                while let Some(n) = receiver.recv().await {
                    tokio::task::yield_now().await;
                    sum += n;
                }
                sum
            });
            tokio::time::sleep(Duration::from_millis(5)).await;
            task.await.unwrap()
        });
        assert_eq!(sum, 1225);
        assert!(began.elapsed() < Duration::from_secs(2));
    }
}
