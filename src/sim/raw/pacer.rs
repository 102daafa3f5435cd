//! The thread that writes tokens when they are due.

use super::script::{Script, Voice};
use super::truth::{End, Sent, Served};
use super::{Manner, Raw, steady_ns};
use rustix::net::SendFlags;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::num::NonZeroU64;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::sync::oneshot;

/// Time until a socket that took nothing is tried again.
const RETRY_NS: u64 = 1_000_000;

/// A stream to be paced.
#[derive(Debug)]
pub struct Job {
    pub socket: Arc<TcpStream>,
    pub script: Script,
    pub received_ns: u64,
    /// Set when the client has closed the connection.
    pub gone: Arc<AtomicBool>,
    /// Told when the stream is over.
    pub done: oneshot::Sender<()>,
}

/// Starts the thread. It ends when nobody can send it a job any more.
pub fn start(raw: Arc<Raw>) -> std::io::Result<Sender<Job>> {
    let (jobs, inbox) = channel();
    std::thread::Builder::new()
        .name("vramp-sim-pacer".to_string())
        .spawn(move || {
            // A sleep ends when it is over, not up to 50 µs later; without it the schedule is less exact and no more.
            let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
            Pacer::new(raw).run(&inbox);
        })?;
    Ok(jobs)
}

#[derive(Debug)]
struct Stream {
    job: Job,
    served: Served,
    /// When the next write is due.
    due_ns: u64,
    /// The write before it, or the request.
    before_ns: u64,
    /// What the socket has not taken yet.
    backlog: Vec<u8>,
    stalled: bool,
}

impl Stream {
    fn holds(&self) -> u64 {
        self.job.script.prompt + u64::from(self.job.script.total)
    }

    fn is_said(&self) -> bool {
        self.served.tokens >= self.job.script.total
    }
}

#[derive(Debug)]
struct Pacer {
    raw: Arc<Raw>,
    streams: Vec<Option<Stream>>,
    free: Vec<usize>,
    /// Who is next, and when.
    next: BinaryHeap<Reverse<(u64, usize)>>,
    bytes: Vec<u8>,
}

impl Pacer {
    fn new(raw: Arc<Raw>) -> Self {
        Pacer {
            raw,
            streams: Vec::new(),
            free: Vec::new(),
            next: BinaryHeap::new(),
            bytes: Vec::new(),
        }
    }

    fn run(&mut self, inbox: &Receiver<Job>) {
        loop {
            let wait = self
                .next
                .peek()
                .map(|Reverse((at, _))| Duration::from_nanos(at.saturating_sub(steady_ns())));
            let job = match wait {
                None => inbox.recv().map_err(|_| RecvTimeoutError::Disconnected),
                Some(wait) => inbox.recv_timeout(wait),
            };
            match job {
                Ok(job) => {
                    self.begin(job);
                    while let Ok(job) = inbox.try_recv() {
                        self.begin(job);
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            let now = steady_ns();
            while let Some(Reverse((at, index))) = self.next.peek().copied()
                && at <= now
            {
                self.next.pop();
                self.turn(index);
            }
        }
    }

    fn begin(&mut self, job: Job) {
        let stream = Stream {
            due_ns: job.received_ns + self.raw.manner.ttft_ns,
            before_ns: job.received_ns,
            served: Served {
                number: job.script.number,
                prompt: job.script.prompt,
                received_ns: job.received_ns,
                ..Served::default()
            },
            backlog: Vec::new(),
            stalled: false,
            job,
        };
        let truth = &self.raw.truth;
        truth.began(
            stream.served.prompt,
            stream.holds(),
            stream.served.received_ns,
        );
        let due = stream.due_ns;
        let index = match self.free.pop() {
            Some(index) => index,
            None => {
                self.streams.push(None);
                self.streams.len() - 1
            }
        };
        if let Some(place) = self.streams.get_mut(index) {
            *place = Some(stream);
        }
        self.next.push(Reverse((due, index)));
    }

    /// A stream's turn: what is due is written, and it is put back or over.
    fn turn(&mut self, index: usize) {
        let Some(place) = self.streams.get_mut(index) else {
            return;
        };
        let Some(stream) = place.as_mut() else {
            return;
        };
        let end = match turn(&self.raw, stream, &mut self.bytes) {
            Turn::Next(at) => {
                self.next.push(Reverse((at, index)));
                return;
            }
            Turn::Over(end) => end,
        };
        if let Some(stream) = place.take() {
            if end != End::Done {
                // The reading side then sees the end of the connection; it may be closed already.
                let _ = rustix::net::shutdown(&*stream.job.socket, rustix::net::Shutdown::Both);
            }
            let holds = stream.holds();
            // Nobody waits for it if the connection is over, too.
            let _ = stream.job.done.send(());
            self.raw.truth.ended(stream.served, end, holds);
            self.free.push(index);
        }
    }
}

enum Turn {
    Next(u64),
    Over(End),
}

fn turn(raw: &Raw, stream: &mut Stream, bytes: &mut Vec<u8>) -> Turn {
    if stream.job.gone.load(Ordering::Relaxed) {
        return Turn::Over(End::Left);
    }
    bytes.clear();
    bytes.append(&mut stream.backlog);
    let due_ns = stream.due_ns;
    let mut sent = None;
    if steady_ns() >= due_ns && !stream.is_said() {
        let before = stream.served.tokens;
        if stream
            .job
            .script
            .cut_at
            .is_some_and(|at| before >= at.max(1))
        {
            return Turn::Over(End::Cut);
        }
        let events = say(&raw.manner, &raw.voice, stream, bytes);
        sent = Some((before, events));
    }
    let taken = match rustix::net::send(
        &*stream.job.socket,
        bytes,
        SendFlags::NOSIGNAL | SendFlags::DONTWAIT,
    ) {
        Ok(taken) => taken,
        Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => 0,
        Err(_) => return Turn::Over(End::Left),
    };
    let at_ns = steady_ns();
    stream
        .backlog
        .extend_from_slice(bytes.get(taken..).unwrap_or_default());
    if let Some((before, events)) = sent {
        raw.truth.sent(&Sent {
            at_ns,
            due_ns,
            before_ns: stream.before_ns,
            first: before == 0,
            events,
            tokens: stream.served.tokens - before,
            blocked: !stream.backlog.is_empty(),
        });
        stream.before_ns = at_ns;
        stream.served.sent_ns.push(at_ns);
        stream.due_ns = due_ns + until_next(&raw.manner, &raw.voice, stream);
    }
    if !stream.backlog.is_empty() {
        return Turn::Next(at_ns + RETRY_NS);
    }
    if stream.is_said() {
        return Turn::Over(End::Done);
    }
    Turn::Next(stream.due_ns)
}

/// Appends the events of one write; says how many.
fn say(manner: &Manner, voice: &Voice, stream: &mut Stream, bytes: &mut Vec<u8>) -> u32 {
    let script = &stream.job.script;
    if stream.served.tokens == 0 {
        bytes.extend_from_slice(&script.opening);
    }
    let mut events = 0;
    while events < manner.events_per_write && stream.served.tokens < script.total {
        let sent = stream.served.tokens;
        let tokens = voice.next_tokens(script, sent, manner.tokens_per_chunk);
        voice.event(script, sent, tokens, bytes);
        stream.served.tokens += tokens;
        events += 1;
    }
    if stream.served.tokens >= script.total {
        bytes.extend_from_slice(&script.closing);
    }
    events
}

/// Time from one write to the next: that of the tokens which the next will carry, and the pause where there is one.
fn until_next(manner: &Manner, voice: &Voice, stream: &mut Stream) -> u64 {
    let script = &stream.job.script;
    let mut after = stream.served.tokens;
    for _ in 0..manner.events_per_write {
        if after < script.total {
            after += voice.next_tokens(script, after, manner.tokens_per_chunk);
        }
    }
    let mut ns = manner.itl_ns * u64::from(after - stream.served.tokens);
    if !stream.stalled && script.stall_at.is_some_and(|at| stream.served.tokens >= at) {
        stream.stalled = true;
        ns += manner.stall_ns;
    }
    ns
}
