//! A server with an exact schedule that knows what it sent and when: one thread, one wait for all connections, prepared bytes, one
//! write for each event. It ends when its standard input does, and says then what it did.

use crate::{ITL_MS, Truth, mean, quantile};
use memchr::memmem;
use rustix::event::{Timespec, epoll};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

/// Answers that are shorter than this belong to what a client does before it measures.
const LEARNING: u64 = 8;
const LISTENER: u64 = u64::MAX;
const STDIN: u64 = u64::MAX - 1;

struct Connection {
    stream: TcpStream,
    input: Vec<u8>,
    received: Instant,
    tokens: u64,
    sent: u64,
    last: Instant,
}

#[derive(Default)]
struct Seen {
    ttft: Vec<f64>,
    gaps: Vec<f64>,
    open: u64,
    most_open: u64,
    /// The first and the last event.
    span: Option<(Instant, Instant)>,
}

pub fn serve(ttft_ms: f64) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    println!("{}", listener.local_addr().unwrap().port());
    listener.set_nonblocking(true).unwrap();
    let poll = epoll::create(epoll::CreateFlags::CLOEXEC).unwrap();
    let add = |n, stream: &TcpStream| {
        let data = epoll::EventData::new_u64(n);
        epoll::add(&poll, stream, data, epoll::EventFlags::IN).unwrap();
    };
    let listening = epoll::EventData::new_u64(LISTENER);
    epoll::add(&poll, &listener, listening, epoll::EventFlags::IN).unwrap();
    let input = epoll::EventData::new_u64(STDIN);
    epoll::add(&poll, io::stdin(), input, epoll::EventFlags::IN).unwrap();
    let mut connections: Vec<Option<Connection>> = Vec::new();
    let mut due: BinaryHeap<Reverse<(Instant, usize)>> = BinaryHeap::new();
    let mut seen = Seen::default();
    let mut ready = Vec::with_capacity(1024);
    let mut read = vec![0; 1 << 16];
    let event = event();
    loop {
        let wait = due.peek().map(|Reverse((at, _))| {
            let left = at.saturating_duration_since(Instant::now());
            Timespec {
                tv_sec: left.as_secs() as i64,
                tv_nsec: i64::from(left.subsec_nanos()),
            }
        });
        ready.clear();
        epoll::wait(
            &poll,
            rustix::buffer::spare_capacity(&mut ready),
            wait.as_ref(),
        )
        .unwrap();
        for one in &ready {
            match one.data.u64() {
                STDIN => return tell(seen),
                LISTENER => {
                    while let Ok((stream, _)) = listener.accept() {
                        stream.set_nonblocking(true).unwrap();
                        stream.set_nodelay(true).unwrap();
                        let now = Instant::now();
                        let connection = Connection {
                            stream,
                            input: Vec::new(),
                            received: now,
                            tokens: 0,
                            sent: 0,
                            last: now,
                        };
                        add(connections.len() as u64, &connection.stream);
                        connections.push(Some(connection));
                    }
                }
                n => {
                    let slot = &mut connections[n as usize];
                    let Some(connection) = slot else { continue };
                    match connection.stream.read(&mut read) {
                        Ok(n) if n > 0 => connection.input.extend_from_slice(&read[..n]),
                        Err(error) if error.kind() == ErrorKind::WouldBlock => continue,
                        _ => {
                            *slot = None;
                            continue;
                        }
                    }
                    if let Some(reply) = take_question(&mut connection.input) {
                        let _ = connection.stream.write_all(reply.as_bytes());
                    }
                    if let Some(tokens) = take_request(&mut connection.input) {
                        connection.received = Instant::now();
                        connection.tokens = tokens;
                        connection.sent = 0;
                        seen.open += 1;
                        seen.most_open = seen.most_open.max(seen.open);
                        let first = connection.received + Duration::from_secs_f64(ttft_ms / 1e3);
                        due.push(Reverse((first, n as usize)));
                    }
                }
            }
        }
        while let Some(Reverse((at, n))) = due.peek().copied() {
            if at > Instant::now() {
                break;
            }
            due.pop();
            let Some(connection) = &mut connections[n] else {
                continue;
            };
            if let Some(next) = send(connection, &event, at, &mut seen) {
                due.push(Reverse((next, n)));
            }
        }
    }
}

/// The answer to a complete GET, which is taken out of `input`: the one model that is here, and nothing else.
fn take_question(input: &mut Vec<u8>) -> Option<String> {
    if !input.starts_with(b"GET ") {
        return None;
    }
    let head = memmem::find(input, b"\r\n\r\n")? + 4;
    let (status, body) = match input.starts_with(b"GET /v1/models ") {
        true => (
            "200 OK",
            r#"{"object":"list","data":[{"id":"m","object":"model"}]}"#,
        ),
        false => ("404 Not Found", "{}"),
    };
    input.drain(..head);
    Some(format!(
        "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    ))
}

/// The output tokens that a complete request asks for; it is taken out of `input`.
fn take_request(input: &mut Vec<u8>) -> Option<u64> {
    let head = memmem::find(input, b"\r\n\r\n")? + 4;
    let text = String::from_utf8_lossy(&input[..head]).to_ascii_lowercase();
    let length: usize = number_after(&text, "content-length:")? as usize;
    if input.len() < head + length {
        return None;
    }
    let body = String::from_utf8_lossy(&input[head..head + length]).into_owned();
    input.drain(..head + length);
    number_after(&body, "\"max_tokens\":")
}

fn number_after(text: &str, key: &str) -> Option<u64> {
    let rest = text.split_once(key)?.1.trim_start();
    let end = rest
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(rest.len());
    rest[..end].parse().ok()
}

fn framed(data: &str) -> String {
    let body = format!("data: {data}\n\n");
    format!("{:x}\r\n{body}\r\n", body.len())
}

fn event() -> Vec<u8> {
    framed(
        r#"{"id":"chatcmpl-0123456789abcdef","object":"chat.completion.chunk","created":1700000000,"model":"m","choices":[{"index":0,"delta":{"content":" token"},"logprobs":null,"finish_reason":null}]}"#,
    )
    .into_bytes()
}

/// Sends the event that is due; gives the time of the next one.
fn send(
    connection: &mut Connection,
    event: &[u8],
    due: Instant,
    seen: &mut Seen,
) -> Option<Instant> {
    if connection.sent == 0 {
        let role = framed(r#"{"choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}"#);
        let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
        let _ = connection
            .stream
            .write_all(format!("{head}{role}").as_bytes());
    }
    // A client that has gone away is noticed when it is read from.
    let _ = connection.stream.write_all(event);
    let now = Instant::now();
    let counts = connection.tokens >= LEARNING;
    let since = if connection.sent == 0 {
        connection.received
    } else {
        connection.last
    };
    let ms = (now - since).as_secs_f64() * 1e3;
    match connection.sent {
        _ if !counts => {}
        0 => seen.ttft.push(ms),
        _ => seen.gaps.push(ms),
    }
    connection.last = now;
    if counts {
        seen.span = Some((seen.span.map_or(now, |(first, _)| first), now));
    }
    connection.sent += 1;
    if connection.sent < connection.tokens {
        return Some(due + Duration::from_secs_f64(ITL_MS / 1e3));
    }
    seen.open -= 1;
    let end = framed(r#"{"choices":[{"index":0,"delta":{},"finish_reason":"length"}]}"#);
    let tokens = connection.tokens;
    let usage = framed(&format!(
        r#"{{"choices":[],"usage":{{"prompt_tokens":32,"completion_tokens":{tokens}}}}}"#
    ));
    let done = framed("[DONE]");
    let _ = connection
        .stream
        .write_all(format!("{end}{usage}{done}0\r\n\r\n").as_bytes());
    None
}

fn tell(mut seen: Seen) {
    let events = seen.ttft.len() + seen.gaps.len();
    let seconds = seen.span.map_or(0.0, |(a, b)| (b - a).as_secs_f64());
    let truth = Truth {
        events: events as u64,
        events_s: events as f64 / seconds.max(1e-9),
        ttft_mean: mean(&seen.ttft),
        ttft_p99: quantile(&mut seen.ttft, 0.99),
        gap_p99: quantile(&mut seen.gaps, 0.99),
        most_open: seen.most_open,
    };
    println!("{}", serde_json::to_string(&truth).unwrap());
}
