//! One request and its answer.

use super::deadline::Stage;
use super::transport::Transport;
use super::{Client, Request, awake};
use crate::bench::point::{Failure, FailureKind};
use crate::bench::stream::{Answer, End, Reader};
use std::future::{Future as _, poll_fn};
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::Duration;
use tokio::time::{Instant, Sleep, sleep};

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

/// What one wait for bytes brought.
enum Step {
    /// Bytes came at this time and were taken.
    Fed(u64, Result<(), Failure>),
    Ended(End),
    Overdue,
}

/// Writes the request and reads the answer. Gives the connection back if it can serve again.
pub(super) async fn run(
    client: &Client,
    mut transport: Transport,
    request: &Request,
) -> (Exchange, Option<Transport>) {
    let limits = &request.limits;
    let mut reader = Reader::new(usize::try_from(request.output).unwrap_or(usize::MAX));
    let start_ns = client.now_ns();
    let deadline_ns = start_ns.saturating_add(ns(limits.total));
    let written = transport.write_all(&request.bytes);
    let written = tokio::time::timeout(limits.first_token, written).await;
    let sent_ns = client.now_ns();
    let mut exchange = Exchange {
        start_ns,
        sent_ns,
        end_ns: sent_ns,
        answer: Answer::default(),
        result: Ok(()),
        status: None,
        body: Vec::new(),
    };
    if written.is_err() {
        exchange.result = Err(Failure {
            kind: FailureKind::TimeoutFirstByte,
            message: "the server does not take the request".to_string(),
        });
        return (exchange, None);
    }
    // A server may refuse a long request before it has read it all: the write fails then, and the answer is there to read.
    let mut stage = Stage::Waiting;
    let mut timer = pin!(sleep(stage.patience(limits)));
    let mut last_ns = sent_ns;
    let verdict = loop {
        let due_ns = last_ns.saturating_add(ns(stage.patience(limits)));
        let due_ns = due_ns.min(deadline_ns);
        match step(client, &mut transport, &mut reader, timer.as_mut(), due_ns).await {
            Step::Fed(at_ns, fed) => {
                last_ns = at_ns;
                if stage != Stage::Settled {
                    exchange.end_ns = at_ns;
                }
                if let Err(failure) = fed {
                    break Err(failure);
                }
                if reader.is_whole() {
                    break Ok(End::Whole);
                }
                let now = stage_of(&reader);
                if now != stage {
                    stage = now;
                    timer
                        .as_mut()
                        .reset(Instant::now() + stage.patience(limits));
                }
            }
            Step::Ended(end) => {
                if stage != Stage::Settled {
                    exchange.end_ns = client.now_ns();
                }
                break Ok(end);
            }
            Step::Overdue => match stage.overdue(limits) {
                None => break Ok(End::Whole),
                Some(failure) => {
                    exchange.end_ns = client.now_ns();
                    break Err(if exchange.end_ns >= deadline_ns {
                        too_long(limits.total)
                    } else {
                        failure
                    });
                }
            },
        }
    };
    let keep = reader.may_keep();
    exchange.status = reader.head().map(|head| head.status);
    exchange.result = verdict.and_then(|end| reader.end(&end, exchange.end_ns));
    exchange.body = reader.body().to_vec();
    exchange.answer = reader.into_answer();
    (exchange, keep.then_some(transport))
}

fn ns(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// Waits for one read, or until `due_ns`. The read is stamped and decoded before anything else happens. The timer is set anew only when
/// it fires too early, so that a flowing stream never touches it.
async fn step(
    client: &Client,
    transport: &mut Transport,
    reader: &mut Reader,
    mut timer: Pin<&mut Sleep>,
    due_ns: u64,
) -> Step {
    poll_fn(|cx| {
        let mut buffer = client.buffer.borrow_mut();
        match transport.poll_receive(cx, &mut buffer) {
            Poll::Ready(Ok(received)) => {
                let now_ns = client.now_ns();
                let bytes = buffer.get(..received.bytes).unwrap_or_default();
                if bytes.is_empty() {
                    return Poll::Ready(Step::Ended(End::Closed));
                }
                let events = reader.answer().events;
                let chunks = reader.answer().chunks;
                let age_ns = received.age.map(ns);
                let at_ns = now_ns - age_ns.unwrap_or(0).min(now_ns);
                let fed = reader.feed(bytes, at_ns);
                let meter = &client.meter;
                meter.read(age_ns, || ns(awake::ago()));
                meter
                    .events
                    .set(meter.events.get() + reader.answer().events - events);
                meter
                    .chunks
                    .set(meter.chunks.get() + reader.answer().chunks - chunks);
                Poll::Ready(Step::Fed(at_ns, fed))
            }
            Poll::Ready(Err(error)) => {
                Poll::Ready(Step::Ended(End::Broken(error.kind().to_string())))
            }
            Poll::Pending => {
                while timer.as_mut().poll(cx).is_ready() {
                    let left_ns = due_ns.saturating_sub(client.now_ns());
                    if left_ns == 0 {
                        return Poll::Ready(Step::Overdue);
                    }
                    let left = Duration::from_nanos(left_ns);
                    timer.as_mut().reset(Instant::now() + left);
                }
                Poll::Pending
            }
        }
    })
    .await
}

fn stage_of(reader: &Reader) -> Stage {
    let answer = reader.answer();
    if reader.is_settled() {
        Stage::Settled
    } else if answer.finish_reason.is_some() {
        Stage::Finished
    } else if answer.first_token_ns.is_some() {
        Stage::Flowing
    } else {
        Stage::Waiting
    }
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
