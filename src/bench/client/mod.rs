//! The load client: its own sockets, read by the thread that measures.
//!
//! One stamp a read: the kernel's own where it gives one, else taken before the bytes are looked at. Bytes are decoded where they lie, in a buffer that all connections of the
//! thread share. Nothing is allocated for an event, and no event crosses to another thread or wakes a future.

mod alarm;
mod connection;
mod deadline;
mod drive;
mod exchange;
mod files;
mod reactor;
mod socket;
mod target;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_tls;
mod transport;

pub use alarm::Alarm;
pub use deadline::Deadlines;
pub use drive::Driver;
pub use exchange::Exchange;
pub use target::Target;

use super::point::Failure;
use super::stats::Samples;
use crate::engine::Endpoint;
use exchange::Line;
use futures_util::StreamExt as _;
use rustix::time::{ClockId, clock_gettime};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use tokio_rustls::TlsConnector;

/// Connections that are opened at once.
const OPENING: usize = 64;

/// Running counts over all requests of a client.
#[derive(Debug)]
pub struct Meter {
    pub reads: Cell<u64>,
    /// Reads that the kernel stamped.
    pub stamped: Cell<u64>,
    /// Age of the data at each read, in milliseconds: by the kernel's stamp, else since this thread woke up.
    pub age: RefCell<Samples>,
    pub events: Cell<u64>,
    /// Events with tokens.
    pub chunks: Cell<u64>,
}

impl Default for Meter {
    fn default() -> Self {
        Meter {
            reads: Cell::new(0),
            stamped: Cell::new(0),
            age: RefCell::new(Samples::coarse()),
            events: Cell::new(0),
            chunks: Cell::new(0),
        }
    }
}

impl Meter {
    fn read(&self, age_ns: u64, stamped: bool) {
        self.reads.set(self.reads.get() + 1);
        self.stamped.set(self.stamped.get() + u64::from(stamped));
        self.age.borrow_mut().add(age_ns as f64 / 1e6);
    }

    fn took(&self, events: u64, chunks: u64) {
        self.events.set(self.events.get() + events);
        self.chunks.set(self.chunks.get() + chunks);
    }
}

/// Nanoseconds of the steady clock.
fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    (now.tv_sec as u64).saturating_mul(1_000_000_000) + now.tv_nsec as u64
}

/// How to reach a server, as far as that can be said without it.
pub struct Access {
    target: Target,
    tls: Option<TlsConnector>,
}

impl Access {
    /// Fails with a sentence if the address cannot be used.
    pub fn new(endpoint: &Endpoint) -> Result<Access, String> {
        let target = Target::new(endpoint).map_err(|e| e.to_string())?;
        let tls = if target.tls {
            Some(transport::tls()?)
        } else {
            None
        };
        Ok(Access { target, tls })
    }
}

/// One server's client. Lives on one thread, which a [`Driver`] drives.
pub struct Client {
    access: Access,
    idle: RefCell<Vec<Line>>,
    pub meter: Rc<Meter>,
}

/// A request that is ready to be written.
#[derive(Debug, Clone)]
pub struct Request {
    /// Head and body.
    pub bytes: Vec<u8>,
    /// Tokens that the answer may have, to make room for.
    pub output: u64,
    pub limits: Deadlines,
}

impl Client {
    pub fn new(access: Access) -> Client {
        Client {
            access,
            idle: RefCell::default(),
            meter: Rc::default(),
        }
    }

    pub fn target(&self) -> &Target {
        &self.access.target
    }

    /// The time on the clock that figures are on, in nanoseconds; it never goes back.
    pub fn now_ns(&self) -> u64 {
        now_ns()
    }

    /// Opens connections until `count` are idle, so that the first requests need not. What fails here fails again, with its reason,
    /// at the request that needs it.
    pub async fn open(&self, count: usize, limits: &Deadlines) {
        let missing = count.saturating_sub(self.idle.borrow().len());
        files::make_room(count);
        // A server's queue of connections that nobody has accepted yet is short: what overflows it waits a second.
        let mut opening = futures_util::stream::iter(0..missing)
            .map(|_| self.connect(limits))
            .buffer_unordered(OPENING);
        while let Some(line) = opening.next().await {
            self.idle.borrow_mut().extend(line.ok());
        }
    }

    /// Sends a request and reads its stream to the end. Failures are part of what comes back. `on_start` is told the time just
    /// before the first byte is written, and is not called if no connection could be made.
    pub async fn send(&self, request: &Request, on_start: &dyn Fn(u64)) -> Exchange {
        let mut told = false;
        loop {
            let kept = self.kept();
            let used = kept.is_some();
            let line = match kept {
                Some(line) => Ok(line),
                None => self.connect(&request.limits).await,
            };
            let line = match line {
                Ok(line) => line,
                Err(failure) => return Exchange::unsent(self.now_ns(), failure),
            };
            if !std::mem::replace(&mut told, true) {
                on_start(self.now_ns());
            }
            let (exchange, kept) = line.carry(self, request).await;
            self.idle.borrow_mut().extend(kept);
            // A kept connection may be closed by the other side at any time; that it closed may be seen only now. The other kept
            // ones are of the same age, so the second try opens a new one.
            if used && exchange.is_untouched() {
                self.idle.borrow_mut().clear();
                continue;
            }
            return exchange;
        }
    }

    /// A connection that has served before and is good still.
    fn kept(&self) -> Option<Line> {
        let mut idle = self.idle.borrow_mut();
        std::iter::from_fn(|| idle.pop()).find(Line::is_good)
    }

    async fn connect(&self, limits: &Deadlines) -> Result<Line, Failure> {
        transport::connect(&self.access, limits.connect).await
    }
}
