//! An open connection and the answer that comes on it.

use super::deadline::Stage;
use super::socket::{Receiver, Socket};
use super::{Deadlines, Meter, now_ns};
use crate::bench::point::{Failure, FailureKind};
use crate::bench::stream::{End, Reader};
use rustix::event::epoll::EventFlags;
use rustix::time::{ClockId, clock_gettime};
use rustls::ClientConnection;
use std::cell::Cell;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd, BorrowedFd};
use std::rc::Rc;
use std::task::Waker;
use std::time::Duration;

/// Bytes of the buffers that all connections of a thread share.
const READ_BUFFER: usize = 64 * 1024;
/// A stamp that is older than this, or lies ahead, tells that the calendar's clock was set: it is no stamp.
const OLDEST_NS: i64 = 60_000_000_000;

/// Where bytes are read to.
#[derive(Debug)]
pub struct Room {
    receiver: Receiver,
    buffer: Vec<u8>,
    /// What TLS made of them.
    plain: Vec<u8>,
}

impl Default for Room {
    fn default() -> Self {
        Room {
            receiver: Receiver::default(),
            buffer: vec![0; READ_BUFFER],
            plain: Vec::new(),
        }
    }
}

/// When this thread woke up, on the clock that figures are on and on the calendar's, which the kernel's stamps are of.
#[derive(Debug)]
pub struct Woke {
    at_ns: u64,
    calendar_ns: i64,
}

impl Woke {
    pub fn now() -> Self {
        let calendar = clock_gettime(ClockId::Realtime);
        Woke {
            at_ns: now_ns(),
            calendar_ns: calendar.tv_sec.saturating_mul(1_000_000_000) + calendar.tv_nsec,
        }
    }

    /// A stamp on the clock of the figures; `None` if it cannot be true.
    fn place(&self, stamp_ns: i64, now_ns: u64) -> Option<u64> {
        let since = stamp_ns.saturating_sub(self.calendar_ns);
        let at_ns = self.at_ns.checked_add_signed(since)?;
        let is_true = since > -OLDEST_NS && at_ns <= now_ns.saturating_add(1_000_000);
        is_true.then_some(at_ns.min(now_ns))
    }
}

/// An open connection.
#[derive(Debug)]
pub struct Connection {
    socket: Socket,
    tls: Option<Box<ClientConnection>>,
    /// Bytes came that nobody asked for, or nothing will come any more: it serves no other request.
    spoilt: bool,
    pub flight: Option<Flight>,
}

impl AsFd for Connection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Connection {
    pub fn new(socket: Socket, tls: Option<Box<ClientConnection>>) -> Self {
        Connection {
            socket,
            tls,
            spoilt: false,
            flight: None,
        }
    }

    pub fn is_spoilt(&self) -> bool {
        self.spoilt
    }

    /// The future that is to look at what became of its request.
    pub fn take_waker(&mut self) -> Option<Waker> {
        let flight = self.flight.as_mut()?;
        if !flight.calls {
            return None;
        }
        flight.calls = false;
        flight.waker.take()
    }

    /// Takes what an event announces; true if there is more than one read took.
    pub fn on_event(
        &mut self,
        flags: EventFlags,
        room: &mut Room,
        woke: &Woke,
        due_ns: &Cell<u64>,
    ) -> bool {
        if flags.contains(EventFlags::OUT)
            && let Some(flight) = &mut self.flight
        {
            flight.calls |= flight.blocked;
        }
        let closing = EventFlags::RDHUP | EventFlags::HUP | EventFlags::ERR;
        let closes = flags.intersects(closing);
        if !closes && !flags.contains(EventFlags::IN) {
            return false;
        }
        loop {
            let received = match room.receiver.receive(&self.socket, &mut room.buffer) {
                Ok(received) => received,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return false,
                Err(error) => {
                    self.end(End::Broken(error.kind().to_string()));
                    return false;
                }
            };
            let now_ns = now_ns();
            let stamp_ns = received.stamp_ns.and_then(|at| woke.place(at, now_ns));
            let bytes = room.buffer.get(..received.bytes).unwrap_or_default();
            let Some(flight) = self.flight.as_mut().filter(|f| f.verdict.is_none()) else {
                self.spoilt = true;
                return false;
            };
            if bytes.is_empty() {
                let end = match self.tls {
                    // A plain end could be anybody's.
                    Some(_) => End::Broken(io::ErrorKind::UnexpectedEof.to_string()),
                    None => End::Closed,
                };
                self.end(end);
                return false;
            }
            let age_ns = now_ns - stamp_ns.unwrap_or(woke.at_ns).min(now_ns);
            flight.meter.read(age_ns, stamp_ns.is_some());
            let at_ns = stamp_ns.unwrap_or(now_ns);
            match &mut self.tls {
                None => flight.feed(bytes, at_ns, due_ns),
                Some(tls) => match decrypt(tls, bytes, &mut room.plain) {
                    Ok(closed) => {
                        if !room.plain.is_empty() {
                            flight.feed(&room.plain, at_ns, due_ns);
                        }
                        // An answer to the other side's TLS is small and has room, or the next write takes it along.
                        let _ = self.socket.see_off(tls);
                        if closed {
                            self.end(End::Closed);
                            return false;
                        }
                    }
                    Err(what) => {
                        self.end(End::Broken(what));
                        return false;
                    }
                },
            }
            if received.bytes == room.buffer.len() {
                return true;
            }
            // A read that leaves room has emptied the socket; the end of the stream makes no new event, though.
            if !closes {
                return false;
            }
        }
    }

    /// Nothing more will come.
    fn end(&mut self, end: End) {
        self.spoilt = true;
        if let Some(flight) = self.flight.as_mut().filter(|f| f.verdict.is_none()) {
            if flight.stage != Stage::Settled {
                flight.end_ns = now_ns();
            }
            flight.finish(Ok(end));
        }
    }

    /// Ends what is over its time; says when the next deadline ends.
    pub fn enforce(&mut self, now_ns: u64) -> u64 {
        let waits = self.flight.as_mut().filter(|f| f.verdict.is_none());
        waits.map_or(u64::MAX, |flight| flight.enforce(now_ns))
    }

    /// Takes a whole request to write.
    pub fn begin(&mut self, flight: Flight, request: &[u8]) -> io::Result<()> {
        self.flight = Some(flight);
        match &mut self.tls {
            None => Ok(()),
            Some(tls) => tls.writer().write_all(request),
        }
    }

    /// Writes on, from `written` bytes of `request`; true once all of it is gone.
    pub fn write(&mut self, request: &[u8], written: &mut usize) -> io::Result<bool> {
        if let Some(tls) = &mut self.tls {
            return self.socket.see_off(tls);
        }
        while let Some(rest) = request.get(*written..).filter(|rest| !rest.is_empty()) {
            match self.socket.write(rest) {
                Ok(n) => *written += n,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }
}

/// Decrypts all of `bytes` into `plain`; true if the other side has said that there is no more.
fn decrypt(
    tls: &mut ClientConnection,
    mut bytes: &[u8],
    plain: &mut Vec<u8>,
) -> Result<bool, String> {
    plain.clear();
    let mut closed = false;
    while !bytes.is_empty() && !closed {
        if tls.read_tls(&mut bytes).map_err(|e| e.to_string())? == 0 {
            break;
        }
        let state = tls.process_new_packets().map_err(|e| e.to_string())?;
        closed = state.peer_has_closed();
        let more = state.plaintext_bytes_to_read() as u64;
        tls.reader()
            .take(more)
            .read_to_end(plain)
            .map_err(|e| e.to_string())?;
    }
    Ok(closed)
}

/// A request under way and what has come of its answer.
#[derive(Debug)]
pub struct Flight {
    pub reader: Reader,
    limits: Deadlines,
    stage: Stage,
    meter: Rc<Meter>,
    /// Just before the first byte was written.
    pub start_ns: u64,
    /// The last byte was written.
    pub sent_ns: Option<u64>,
    /// The answer was whole, or the failure was seen.
    pub end_ns: u64,
    /// The last sign of life.
    last_ns: u64,
    pub verdict: Option<Result<End, Failure>>,
    /// The socket takes no more of the request for now.
    pub blocked: bool,
    pub waker: Option<Waker>,
    /// The waker is due.
    calls: bool,
}

impl Flight {
    pub fn new(output: u64, limits: Deadlines, meter: Rc<Meter>, start_ns: u64) -> Self {
        Flight {
            reader: Reader::new(usize::try_from(output).unwrap_or(usize::MAX)),
            limits,
            stage: Stage::Waiting,
            meter,
            start_ns,
            sent_ns: None,
            end_ns: start_ns,
            last_ns: start_ns,
            verdict: None,
            blocked: false,
            waker: None,
            calls: false,
        }
    }

    /// All of the request is gone, or no more of it is wanted.
    pub fn sent(&mut self, at_ns: u64) {
        self.sent_ns = Some(at_ns);
        self.blocked = false;
        self.last_ns = self.last_ns.max(at_ns);
        if self.verdict.is_none() {
            self.end_ns = self.end_ns.max(at_ns);
        }
    }

    fn feed(&mut self, bytes: &[u8], at_ns: u64, due_ns: &Cell<u64>) {
        let (events, chunks) = (self.reader.answer().events, self.reader.answer().chunks);
        let fed = self.reader.feed(bytes, at_ns);
        let answer = self.reader.answer();
        self.meter
            .took(answer.events - events, answer.chunks - chunks);
        self.last_ns = at_ns;
        if self.stage != Stage::Settled {
            self.end_ns = at_ns;
        }
        if let Err(failure) = fed {
            return self.finish(Err(failure));
        }
        if self.reader.is_whole() {
            return self.finish(Ok(End::Whole));
        }
        let stage = Stage::of(&self.reader);
        if stage != self.stage {
            self.stage = stage;
            due_ns.set(due_ns.get().min(self.due_ns()));
        }
    }

    fn finish(&mut self, verdict: Result<End, Failure>) {
        self.verdict = Some(verdict);
        self.calls = true;
    }

    /// When the present wait, or all of it, has taken too long.
    pub fn due_ns(&self) -> u64 {
        let patience = ns(self.stage.patience(&self.limits));
        self.last_ns.saturating_add(patience).min(self.over_ns())
    }

    fn over_ns(&self) -> u64 {
        self.start_ns.saturating_add(ns(self.limits.total))
    }

    fn enforce(&mut self, now_ns: u64) -> u64 {
        let due_ns = self.due_ns();
        if now_ns < due_ns {
            return due_ns;
        }
        let verdict = match self.stage.overdue(&self.limits) {
            None => Ok(End::Whole),
            Some(failure) => {
                self.end_ns = now_ns;
                Err(match self.sent_ns {
                    None => Failure {
                        kind: FailureKind::TimeoutFirstByte,
                        message: "the server does not take the request".to_string(),
                    },
                    Some(_) if now_ns >= self.over_ns() => too_long(self.limits.total),
                    Some(_) => failure,
                })
            }
        };
        self.finish(verdict);
        u64::MAX
    }
}

fn ns(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

fn too_long(limit: Duration) -> Failure {
    Failure {
        kind: FailureKind::TimeoutTotal,
        message: format!(
            "the answer was not whole after {:.1} s",
            limit.as_secs_f64()
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_calendar_that_was_set_gives_no_stamp() {
        let woke = Woke {
            at_ns: 100_000_000_000,
            calendar_ns: 1_700_000_000_000_000_000,
        };
        let placed = |after_ms: i64| {
            let stamp_ns = woke.calendar_ns + after_ms * 1_000_000;
            woke.place(stamp_ns, woke.at_ns + 5_000_000)
        };
        assert_eq!(placed(-2), Some(99_998_000_000));
        // It came while this thread was at work.
        assert_eq!(placed(3), Some(100_003_000_000));
        assert_eq!(placed(5000), None);
        assert_eq!(placed(-100_000), None);
    }
}
