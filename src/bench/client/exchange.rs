//! One request and its answer.

use super::connection::{Connection, Flight};
use super::reactor::{Reactor, Slot};
use super::socket::Socket;
use super::{Client, Request, now_ns};
use crate::bench::point::{Failure, FailureKind};
use crate::bench::stream::Answer;
use rustls::ClientConnection;
use std::future::poll_fn;
use std::io;
use std::rc::Rc;
use std::task::{Context, Poll};

/// What one request left behind. Times are nanoseconds of the client's clock.
#[derive(Debug, Clone, PartialEq)]
pub struct Exchange {
    /// Just before the first byte was written.
    pub start_ns: u64,
    /// The last byte was written.
    pub sent_ns: u64,
    /// The answer was whole, or the failure was seen.
    pub end_ns: u64,
    pub answer: Answer,
    pub result: Result<(), Failure>,
    /// The status line, if one came.
    pub status: Option<u16>,
    /// The body of an answer that is no stream.
    pub body: Vec<u8>,
}

impl Exchange {
    /// A request that never left.
    pub(super) fn unsent(at_ns: u64, failure: Failure) -> Self {
        Exchange {
            start_ns: at_ns,
            sent_ns: at_ns,
            end_ns: at_ns,
            answer: Answer::default(),
            result: Err(failure),
            status: None,
            body: Vec::new(),
        }
    }

    /// The connection was closed before any byte of an answer.
    pub(super) fn is_untouched(&self) -> bool {
        self.status.is_none()
            && matches!(&self.result, Err(failure) if failure.kind == FailureKind::CutOff)
    }

    /// Milliseconds from the start to `at_ns`.
    pub fn ms_to(&self, at_ns: u64) -> f64 {
        at_ns.saturating_sub(self.start_ns) as f64 / 1e6
    }
}

/// A connection that this thread's reactor keeps. Dropping it closes it, which cancels the request on the server.
#[derive(Debug)]
pub struct Line {
    reactor: Rc<Reactor>,
    key: usize,
}

impl Drop for Line {
    fn drop(&mut self) {
        self.reactor.remove(self.key);
    }
}

impl Line {
    pub fn new(socket: Socket, tls: Option<Box<ClientConnection>>) -> io::Result<Line> {
        let reactor = Reactor::here()?;
        let connection = Connection::new(socket, tls);
        let key = reactor.add_connection(connection)?;
        Ok(Line { reactor, key })
    }

    /// Whether it can serve a request, as far as is known.
    pub fn is_good(&self) -> bool {
        self.with(|connection| !connection.is_spoilt())
            .unwrap_or(false)
    }

    fn with<T>(&self, work: impl FnOnce(&mut Connection) -> T) -> Option<T> {
        let worked = self.reactor.with(self.key, |slot| match slot {
            Slot::Connection(connection) => Some(work(connection)),
            Slot::Alarm(_) | Slot::Free => None,
        });
        worked.flatten()
    }

    /// Writes the request and reads the answer. Gives the connection back if it can serve again.
    pub(super) async fn carry(
        self,
        client: &Client,
        request: &Request,
    ) -> (Exchange, Option<Line>) {
        let start_ns = now_ns();
        let flight = Flight::new(
            request.output,
            request.limits,
            client.meter.clone(),
            start_ns,
        );
        self.reactor.expect(flight.due_ns());
        // A failure to take it is seen as a failure to write it.
        let _ = self.with(|connection| connection.begin(flight, &request.bytes));
        let mut written = 0;
        poll_fn(|cx| self.poll_write(cx, request, &mut written)).await;
        let flight = poll_fn(|cx| self.poll_landed(cx)).await;
        let Some(flight) = flight else {
            return (Exchange::unsent(start_ns, gone()), None);
        };
        let Flight {
            mut reader,
            sent_ns,
            end_ns,
            verdict,
            ..
        } = flight;
        let keep = reader.may_keep() && self.is_good();
        let result = match verdict {
            Some(Ok(end)) => reader.end(&end, end_ns),
            Some(Err(failure)) => Err(failure),
            None => Err(gone()),
        };
        let exchange = Exchange {
            start_ns,
            sent_ns: sent_ns.unwrap_or(end_ns),
            end_ns,
            status: reader.head().map(|head| head.status),
            result,
            body: reader.body().to_vec(),
            answer: reader.into_answer(),
        };
        (exchange, keep.then_some(self))
    }

    /// Writes as much as there is room for. A server may refuse a long request before it has read it all: the write fails then, or
    /// is done for, and the answer is there to read.
    fn poll_write(&self, cx: &mut Context<'_>, request: &Request, written: &mut usize) -> Poll<()> {
        let step = self.with(|connection| {
            let wrote = connection.write(&request.bytes, written);
            let Some(flight) = &mut connection.flight else {
                return Poll::Ready(());
            };
            if matches!(wrote, Ok(false)) && flight.verdict.is_none() {
                flight.blocked = true;
                flight.waker = Some(cx.waker().clone());
                return Poll::Pending;
            }
            if flight.verdict.is_none() {
                flight.sent(now_ns());
            }
            Poll::Ready(())
        });
        step.unwrap_or(Poll::Ready(()))
    }

    /// What is known of the request once nothing more will come.
    fn poll_landed(&self, cx: &mut Context<'_>) -> Poll<Option<Flight>> {
        let step = self.with(|connection| {
            let Some(flight) = &mut connection.flight else {
                return Poll::Ready(None);
            };
            if flight.verdict.is_none() {
                flight.waker = Some(cx.waker().clone());
                return Poll::Pending;
            }
            Poll::Ready(connection.flight.take())
        });
        step.unwrap_or(Poll::Ready(None))
    }
}

/// The connection is no longer there, which it is as long as a request is under way.
fn gone() -> Failure {
    Failure {
        kind: FailureKind::CutOff,
        message: "the connection was given up".to_string(),
    }
}
