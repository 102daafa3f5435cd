//! The scheduler on the real clock: requests go in, each gets its tokens by a channel of its own.

use super::core::{Core, Emission, State, Work};
use super::timing::Timing;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::{Notify, mpsc};

/// Chunks that may wait for one client. One that is further behind is dropped, as a server must.
const BACKLOG: usize = 4096;

/// The running scheduler.
#[derive(Debug)]
pub struct Engine {
    start: Instant,
    wake: Notify,
    inner: Mutex<Inner>,
}

#[derive(Debug)]
struct Inner {
    core: Core,
    clients: HashMap<u64, mpsc::Sender<Emission>>,
    out: Vec<Emission>,
}

/// One request at work. Dropping it, as a disconnected client does, frees its place.
#[derive(Debug)]
pub struct Ticket {
    id: u64,
    engine: Arc<Engine>,
    tokens: mpsc::Receiver<Emission>,
}

impl Ticket {
    /// The next tokens; `None` if the server gave the request up.
    pub async fn next(&mut self) -> Option<Emission> {
        self.tokens.recv().await
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.engine.cancel(self.id);
    }
}

impl Engine {
    pub fn new(timing: Timing, pool: u64, seed: u64) -> Self {
        Engine {
            start: Instant::now(),
            wake: Notify::new(),
            inner: Mutex::new(Inner {
                core: Core::new(timing, pool, seed),
                clients: HashMap::new(),
                out: Vec::new(),
            }),
        }
    }

    /// Hands out tokens when they are due, for ever.
    pub async fn run(&self) {
        loop {
            let next = {
                let mut inner = self.advanced();
                inner.deliver();
                inner.core.next_event()
            };
            match next {
                Some(at) => {
                    let due = self.start + Duration::from_secs_f64(at.max(0.0));
                    tokio::select! {
                        () = tokio::time::sleep_until(due.into()) => {}
                        () = self.wake.notified() => {}
                    }
                }
                None => self.wake.notified().await,
            }
        }
    }

    /// Takes a request in.
    pub fn submit(self: &Arc<Self>, work: Work) -> Ticket {
        let (sender, tokens) = mpsc::channel(BACKLOG);
        let mut inner = self.advanced();
        inner.deliver();
        let id = inner.core.submit(work);
        inner.clients.insert(id, sender);
        drop(inner);
        self.wake.notify_one();
        Ticket {
            id,
            engine: Arc::clone(self),
            tokens,
        }
    }

    /// What it does now.
    pub fn state(&self) -> State {
        let mut inner = self.advanced();
        inner.deliver();
        inner.core.state()
    }

    fn cancel(&self, id: u64) {
        let mut inner = self.advanced();
        inner.deliver();
        if inner.clients.remove(&id).is_some() {
            inner.core.cancel(id);
            drop(inner);
            self.wake.notify_one();
        }
    }

    /// The scheduler, with its clock at now.
    fn advanced(&self) -> MutexGuard<'_, Inner> {
        let mut guard = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        let inner = &mut *guard;
        inner
            .core
            .advance(self.start.elapsed().as_secs_f64(), &mut inner.out);
        guard
    }
}

impl Inner {
    fn deliver(&mut self) {
        for emission in self.out.drain(..) {
            let Some(client) = self.clients.get(&emission.id) else {
                continue;
            };
            let lost = client.try_send(emission).is_err();
            if lost || emission.last {
                self.clients.remove(&emission.id);
            }
            if lost {
                self.core.cancel(emission.id);
            }
        }
    }
}
