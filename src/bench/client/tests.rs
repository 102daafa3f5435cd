use super::*;
use crate::bench::point::FailureKind;
use crate::engine::Endpoint;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

/// A server that gives each connection to `serve` after the head of its first request has come.
fn server(serve: impl Fn(usize, &mut TcpStream) + Send + 'static) -> Client {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for (n, stream) in listener.incoming().enumerate() {
            let mut stream = stream.unwrap();
            take_request(&mut stream);
            serve(n, &mut stream);
        }
    });
    client(&url)
}

fn client(url: &str) -> Client {
    let endpoint = Endpoint {
        url: url.to_string(),
        model: None,
        key: None,
        kind: None,
    };
    Client::new(Access::new(&endpoint).unwrap())
}

/// Reads one request; false if the connection was closed.
pub fn take_request(stream: &mut impl Read) -> bool {
    let mut seen = Vec::new();
    let mut byte = [0];
    while !seen.ends_with(b"\r\n\r\n{}") {
        match stream.read(&mut byte) {
            Ok(1) => seen.push(byte[0]),
            _ => return false,
        }
    }
    true
}

fn limits(ms: u64) -> Deadlines {
    let limit = Duration::from_millis(ms);
    Deadlines {
        connect: limit,
        first_token: limit,
        gap: limit,
        total: limit * 10,
    }
}

pub fn request(client: &Client, ms: u64) -> Request {
    Request {
        bytes: client.target().post("/v1/completions", b"{}"),
        output: 4,
        limits: limits(ms),
    }
}

pub fn send(client: &Client, requests: &[Request]) -> Vec<Exchange> {
    Driver::new().unwrap().drive(async {
        let mut exchanges = Vec::new();
        for request in requests {
            exchanges.push(client.send(request, &|_| {}).await);
        }
        exchanges
    })
}

fn one(client: &Client, ms: u64) -> Exchange {
    send(client, &[request(client, ms)]).remove(0)
}

pub const HEAD: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";
pub const TOKEN: &[u8] = b"data: {\"choices\":[{\"text\":\"a\",\"finish_reason\":null}]}\n\n";
pub const END: &[u8] = b"data: {\"choices\":[{\"text\":\"\",\"finish_reason\":\"stop\"}]}\n\n";
pub const DONE: &[u8] = b"data: [DONE]\n\n";

pub fn kind(exchange: &Exchange) -> FailureKind {
    exchange.result.clone().unwrap_err().kind
}

pub fn pause(ms: u64) {
    std::thread::sleep(Duration::from_millis(ms));
}

#[test]
fn each_stage_has_its_deadline() {
    let silent = server(|_, _| pause(3000));
    let exchange = one(&silent, 200);
    assert_eq!(kind(&exchange), FailureKind::TimeoutFirstByte);
    assert!((180.0..600.0).contains(&exchange.ms_to(exchange.end_ns)));

    let headed = server(|_, s| {
        s.write_all(HEAD).unwrap();
        pause(3000);
    });
    assert_eq!(kind(&one(&headed, 200)), FailureKind::TimeoutFirstByte);

    let stalled = server(|_, s| {
        s.write_all(&[HEAD, TOKEN].concat()).unwrap();
        pause(150);
        s.write_all(TOKEN).unwrap();
        pause(3000);
    });
    let exchange = one(&stalled, 300);
    assert_eq!(kind(&exchange), FailureKind::Stalled);
    assert_eq!(exchange.answer.chunks, 2);
    assert!((440.0..900.0).contains(&exchange.ms_to(exchange.end_ns)));

    let endless = server(|_, s| {
        s.write_all(HEAD).unwrap();
        while s.write_all(TOKEN).is_ok() {
            pause(20);
        }
    });
    let exchange = one(&endless, 100);
    assert_eq!(kind(&exchange), FailureKind::TimeoutTotal);
    assert!((980.0..1600.0).contains(&exchange.ms_to(exchange.end_ns)));
}

#[test]
fn pings_keep_a_request_alive_and_are_no_token() {
    let pings = server(|_, s| {
        s.write_all(HEAD).unwrap();
        for _ in 0..5 {
            pause(120);
            s.write_all(b": ping\n\n").unwrap();
        }
        s.write_all(&[TOKEN, END].concat()).unwrap();
    });
    let exchange = one(&pings, 250);
    assert_eq!(exchange.result, Ok(()));
    assert_eq!(exchange.answer.keepalives, 5);
    assert!(exchange.ms_to(exchange.answer.first_token_ns.unwrap()) > 590.0);
}

#[test]
fn an_answer_that_is_whole_does_not_wait_for_the_connection_to_end() {
    // Neither framing nor close ends this one.
    let open = server(|_, s| {
        s.write_all(&[HEAD, TOKEN, END, DONE].concat()).unwrap();
        pause(5000);
    });
    let exchange = one(&open, 2000);
    assert_eq!(exchange.result, Ok(()));
    assert!(exchange.ms_to(exchange.end_ns) < 200.0);
    // No [DONE] either: the reason to end is enough, after a moment for counts.
    let open = server(|_, s| {
        s.write_all(&[HEAD, TOKEN, END].concat()).unwrap();
        pause(5000);
    });
    assert_eq!(one(&open, 300).result, Ok(()));
}

#[test]
fn a_kept_connection_that_was_closed_is_tried_once_more() {
    let body = [TOKEN, END, DONE].concat();
    let whole = [
        format!(
            "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: {}\r\n\r\n",
            body.len()
        )
        .into_bytes(),
        body,
    ]
    .concat();
    // The first connection serves one request and closes on the second; the next one serves.
    let closes = server(move |_, s| s.write_all(&whole).unwrap());
    let requests = [
        request(&closes, 2000),
        request(&closes, 2000),
        request(&closes, 2000),
    ];
    for exchange in send(&closes, &requests) {
        assert_eq!(exchange.result, Ok(()));
    }
    // A fresh connection that closes at once is a failure, and not tried for ever.
    let shut = server(|_, _| {});
    let exchange = one(&shut, 2000);
    assert_eq!(kind(&exchange), FailureKind::CutOff);
}

#[test]
fn a_refusal_before_the_request_was_read_is_read() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        stream
            .write_all(b"HTTP/1.1 413 Too Large\r\ncontent-length: 4\r\n\r\nbig!")
            .unwrap();
        pause(300);
    });
    let client = client(&url);
    let mut long = request(&client, 3000);
    long.bytes = client
        .target()
        .post("/v1/completions", &vec![b' '; 64 << 20]);
    let exchange = send(&client, &[long]).remove(0);
    assert_eq!(exchange.status, Some(413), "{:?}", exchange.result);
    assert_eq!(kind(&exchange), FailureKind::Status(413));
}

#[test]
fn where_nothing_listens_is_said() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let exchange = one(&client(&url), 1000);
    assert_eq!(kind(&exchange), FailureKind::Refused);
    let message = exchange.result.unwrap_err().message;
    assert!(
        message.contains("127.0.0.1:") && message.contains("refused"),
        "{message}"
    );
}

#[test]
fn one_stream_that_floods_does_not_starve_another() {
    let flood = server(|n, s| {
        s.write_all(HEAD).unwrap();
        let many = TOKEN.repeat(if n == 0 { 200_000 } else { 1 });
        let _ = s.write_all(&many);
        let _ = s.write_all(&[END, DONE].concat());
    });
    let both = [request(&flood, 20_000), request(&flood, 20_000)];
    let first = Driver::new().unwrap().drive(async {
        let [long, short] = &both;
        let long = flood.send(long, &|_| {});
        let short = flood.send(short, &|_| {});
        tokio::join!(long, short)
    });
    assert_eq!((&first.0.result, &first.1.result), (&Ok(()), &Ok(())));
    assert_eq!(first.0.answer.chunks + first.1.answer.chunks, 200_001);
}

#[test]
fn tls_can_be_set_up() {
    let client = client("https://127.0.0.1:9");
    assert!(client.access.tls.is_some());
    assert_eq!(kind(&one(&client, 1000)), FailureKind::Refused);
}
