//! Just enough HTTP to ask a server how it is.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

/// A port of this machine that nobody uses now.
pub fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port()
}

/// The status and body of `GET path`; `None` if nothing answers.
pub fn get(port: u16, path: &str) -> Option<(u16, String)> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    stream
        .set_read_timeout(Some(Duration::from_secs(20)))
        .ok()?;
    let head = format!("GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).ok()?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).ok()?;
    let answer = String::from_utf8_lossy(&answer).into_owned();
    let (head, body) = answer.split_once("\r\n\r\n")?;
    let status = head.split(' ').nth(1)?.parse().ok()?;
    Some((status, body.to_string()))
}

/// The JSON of `GET path`.
pub fn json(port: u16, path: &str) -> Option<serde_json::Value> {
    let (status, body) = get(port, path)?;
    (status == 200)
        .then(|| serde_json::from_str(&body).ok())
        .flatten()
}

/// A server on a port of its own that gives every request the same `answer`, as it stands, for as long as the test lives.
pub fn always(answer: &'static str) -> u16 {
    answering(move |_| answer.to_string())
}

/// A server on a port of its own whose `answer` depends on the request's path, for as long as the test lives.
pub fn answering<A: Into<Vec<u8>>>(answer: impl Fn(&str) -> A + Send + Clone + 'static) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let answer = answer.clone();
            std::thread::spawn(move || answer_one(stream, answer));
        }
    });
    port
}

/// Reads one request whole and answers it; the connection ends with the answer.
fn answer_one<A: Into<Vec<u8>>>(mut stream: TcpStream, answer: impl Fn(&str) -> A) -> Option<()> {
    let mut request: Vec<u8> = Vec::new();
    let mut buffer = [0_u8; 4096];
    let head = loop {
        let read = stream.read(&mut buffer).ok().filter(|read| *read > 0)?;
        request.extend(&buffer[..read]);
        if let Some(at) = request.windows(4).position(|w| w == b"\r\n\r\n") {
            break at + 4;
        }
    };
    let text = String::from_utf8_lossy(&request[..head]).to_lowercase();
    let length: usize = text
        .lines()
        .find_map(|line| line.strip_prefix("content-length:")?.trim().parse().ok())
        .unwrap_or(0);
    while request.len() < head + length {
        let read = stream.read(&mut buffer).ok().filter(|read| *read > 0)?;
        request.extend(&buffer[..read]);
    }
    let path = text.split(' ').nth(1)?;
    let answer = answer(path).into();
    let Ok(text) = std::str::from_utf8(&answer) else {
        return stream.write_all(&answer).ok();
    };
    // Events come one after the other, as a model makes them.
    for part in text.split_inclusive("\n\n") {
        if part.starts_with("data:") {
            std::thread::sleep(Duration::from_millis(20));
        }
        stream.write_all(part.as_bytes()).ok()?;
    }
    Some(())
}
