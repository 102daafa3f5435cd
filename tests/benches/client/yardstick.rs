//! The yardstick: about the least that a client can do and still know when each token came. One thread, one wait for all connections,
//! one read and one stamp for each event, a parse that borrows. It understands just what the server beside it sends.

use crate::{Report, TOKENS, mean, own_cost, quantile};
use memchr::memmem;
use rustix::event::epoll;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Instant;

#[derive(serde::Deserialize)]
struct Chunk<'a> {
    #[serde(borrow)]
    choices: Vec<Choice<'a>>,
}

#[derive(serde::Deserialize)]
struct Choice<'a> {
    #[serde(borrow)]
    delta: Option<Delta<'a>>,
}

#[derive(serde::Deserialize)]
struct Delta<'a> {
    content: Option<&'a str>,
}

struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
    sent: Instant,
    last: Option<Instant>,
}

pub fn run(port: u16, concurrency: u64, requests: u64) -> Report {
    let body = format!(
        "{{\"model\":\"m\",\"messages\":[{{\"role\":\"user\",\"content\":\"hi\"}}],\"max_tokens\":{TOKENS},\"stream\":true}}"
    );
    let request = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let poll = epoll::create(epoll::CreateFlags::CLOEXEC).unwrap();
    let mut connections = Vec::new();
    let mut started = 0;
    for n in 0..concurrency.min(requests) {
        let stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        stream.set_nodelay(true).unwrap();
        stream.set_nonblocking(true).unwrap();
        let data = epoll::EventData::new_u64(n);
        epoll::add(&poll, &stream, data, epoll::EventFlags::IN).unwrap();
        connections.push(Connection {
            stream,
            buffer: Vec::new(),
            sent: Instant::now(),
            last: None,
        });
    }
    // Connecting is in no figure.
    for connection in &mut connections {
        connection.sent = Instant::now();
        connection.stream.write_all(request.as_bytes()).unwrap();
        started += 1;
    }
    let (mut ttft, mut gaps) = (Vec::new(), Vec::new());
    let (mut done, mut events) = (0, 0);
    let mut ready = Vec::with_capacity(1024);
    let mut read = vec![0; 1 << 16];
    while done < requests {
        ready.clear();
        epoll::wait(&poll, rustix::buffer::spare_capacity(&mut ready), None).unwrap();
        for event in &ready {
            let connection = &mut connections[event.data.u64() as usize];
            let n = connection.stream.read(&mut read).unwrap();
            let now = Instant::now();
            assert!(n > 0, "the server closed");
            connection.buffer.extend_from_slice(&read[..n]);
            let mut at = 0;
            let mut ended = false;
            while let Some(length) = memmem::find(&connection.buffer[at..], b"\n\n") {
                let event = &connection.buffer[at..at + length];
                at += length + 2;
                let Some(start) = memmem::find(event, b"data: ") else {
                    continue;
                };
                let data = &event[start + 6..];
                if data == b"[DONE]" {
                    ended = true;
                    continue;
                }
                let chunk: Chunk<'_> = serde_json::from_slice(data).unwrap();
                let delta = chunk.choices.first().and_then(|c| c.delta.as_ref());
                if delta.is_none_or(|d| d.content.is_none_or(|text| text.is_empty())) {
                    continue;
                }
                events += 1;
                let since = connection.last.replace(now).unwrap_or(connection.sent);
                let ms = (now - since).as_secs_f64() * 1e3;
                if connection.sent == since {
                    ttft.push(ms);
                } else {
                    gaps.push(ms);
                }
            }
            connection.buffer.drain(..at);
            if !ended {
                continue;
            }
            done += 1;
            if started < requests {
                started += 1;
                connection.buffer.clear();
                connection.last = None;
                connection.sent = Instant::now();
                connection.stream.write_all(request.as_bytes()).unwrap();
            }
        }
    }
    let (cpu_s, peak_mib) = own_cost();
    Report {
        events,
        ttft_mean: mean(&ttft),
        ttft_p99: quantile(&mut ttft, 0.99),
        gap_p99: quantile(&mut gaps, 0.99),
        cpu_s,
        peak_mib,
    }
}
