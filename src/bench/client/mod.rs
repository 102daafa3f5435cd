//! The load client: its own sockets, on whatever single-threaded runtime it is driven by.
//!
//! One stamp a read: the kernel's own where it gives one, else taken before the bytes are looked at. Bytes are decoded where they lie, in a buffer that all connections of the
//! thread share. Nothing is allocated for an event, and no event crosses to another thread.

mod alarm;
pub mod awake;
mod deadline;
mod exchange;
mod files;
mod socket;
mod target;
#[cfg(test)]
mod tests;
mod transport;

pub use alarm::Alarm;
pub use deadline::Deadlines;
pub use exchange::Exchange;
pub use target::Target;

use super::point::Failure;
use super::stats::Samples;
use futures_util::StreamExt as _;
use std::cell::{Cell, RefCell};
use std::time::Instant;
use tokio_rustls::TlsConnector;
use transport::Transport;

/// Bytes of the shared read buffer.
const READ_BUFFER: usize = 64 * 1024;
/// Connections that are opened at once.
const OPENING: usize = 64;

/// Running counts over all requests of a client.
#[derive(Debug, Default)]
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

impl Meter {
    fn read(&self, age_ns: Option<u64>, awake_ns: impl FnOnce() -> u64) {
        self.reads.set(self.reads.get() + 1);
        if age_ns.is_some() {
            self.stamped.set(self.stamped.get() + 1);
        }
        let age_ns = age_ns.unwrap_or_else(awake_ns);
        self.age.borrow_mut().add(age_ns as f64 / 1e6);
    }
}

/// One server's client. Lives on one thread.
pub struct Client {
    target: Target,
    tls: Option<TlsConnector>,
    born: Instant,
    buffer: RefCell<Vec<u8>>,
    idle: RefCell<Vec<Transport>>,
    pub meter: Meter,
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

/// A connection to write to, and whether it has served before.
#[derive(Debug)]
struct Line {
    transport: Transport,
    used: bool,
}

impl Client {
    pub fn new(target: Target) -> Result<Client, String> {
        let tls = if target.tls {
            Some(transport::tls()?)
        } else {
            None
        };
        Ok(Client {
            target,
            tls,
            born: Instant::now(),
            buffer: RefCell::new(vec![0; READ_BUFFER]),
            idle: RefCell::new(Vec::new()),
            meter: Meter::default(),
        })
    }

    pub fn target(&self) -> &Target {
        &self.target
    }

    /// Nanoseconds since this client was made, never going back.
    pub fn now_ns(&self) -> u64 {
        u64::try_from(self.born.elapsed().as_nanos()).unwrap_or(u64::MAX)
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
            let Ok(line) = line else { continue };
            self.idle.borrow_mut().push(line.transport);
        }
    }

    /// Sends a request and reads its stream to the end. Failures are part of what comes back. `on_start` is told the time just
    /// before the first byte is written, and is not called if no connection could be made.
    pub async fn send(&self, request: &Request, on_start: &dyn Fn(u64)) -> Exchange {
        let mut told = false;
        loop {
            let line = match self.line(&request.limits).await {
                Ok(line) => line,
                Err(failure) => return Exchange::unsent(self.now_ns(), failure),
            };
            let used = line.used;
            if !std::mem::replace(&mut told, true) {
                on_start(self.now_ns());
            }
            let (exchange, kept) = exchange::run(self, line.transport, request).await;
            if let Some(transport) = kept {
                self.idle.borrow_mut().push(transport);
            }
            // A kept connection may be closed by the other side at any time; that it closed is seen only now. The other kept ones
            // are of the same age, so the second try opens a new one.
            if used && exchange.is_untouched() {
                self.idle.borrow_mut().clear();
                continue;
            }
            return exchange;
        }
    }

    async fn line(&self, limits: &Deadlines) -> Result<Line, Failure> {
        let idle = self.idle.borrow_mut().pop();
        match idle {
            Some(transport) => Ok(Line {
                transport,
                used: true,
            }),
            None => self.connect(limits).await,
        }
    }

    async fn connect(&self, limits: &Deadlines) -> Result<Line, Failure> {
        let transport = transport::connect(&self.target, self.tls.as_ref(), limits.connect).await?;
        Ok(Line {
            transport,
            used: false,
        })
    }
}
