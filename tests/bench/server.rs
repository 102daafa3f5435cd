//! A small server with an exact schedule, for measuring the client: one thread a connection, HTTP/1.1 by hand.

use serde_json::{Value, json};
use std::collections::HashSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// When the server counts tokens.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Counts {
    WhenAsked,
    Never,
    /// With every event, where that is asked for.
    Continuous,
    /// At the end and with every event, whether asked or not.
    Unasked,
}

/// What the server does.
#[derive(Debug, Clone)]
pub struct Manner {
    pub ttft_ms: u64,
    /// On top of that, for every stream that is open.
    pub ttft_ms_each: u64,
    /// Between writes.
    pub step_ms: u64,
    pub tokens_per_event: u64,
    pub events_per_write: u64,
    /// Output tokens that come as thinking.
    pub thinking: u64,
    /// It stops after so many tokens, whatever was asked.
    pub stops_after: Option<u64>,
    pub counts: Counts,
    /// Every n-th stream is cut in the middle.
    pub cuts_every: u64,
    /// Every n-th stream pauses in the middle.
    pub stalls_every: u64,
    pub stall_ms: u64,
    /// Every request is refused: status and body.
    pub refuses: Option<(u16, &'static str)>,
    pub context: u64,
    pub tokenizer: bool,
    /// Share of every prompt that it says came from its cache.
    pub cached: f64,
    /// It closes the connection after every answer.
    pub closes: bool,
    /// Its first answer has no text.
    pub mute_at_first: bool,
    /// It says this word alone.
    pub only_word: Option<&'static str>,
    /// Tokens of a word in a message, and of the chat template.
    pub tokens_per_word: u64,
    pub template: u64,
    /// It knows the code word it was told.
    pub remembers: bool,
    /// It closes every connection, new ones too, after so many streams.
    pub dies_after: Option<u64>,
    /// Its steps take twice as long after so many streams.
    pub slower_after: Option<u64>,
}

impl Default for Manner {
    fn default() -> Self {
        Manner {
            ttft_ms: 20,
            ttft_ms_each: 0,
            step_ms: 2,
            tokens_per_event: 1,
            events_per_write: 1,
            thinking: 0,
            stops_after: None,
            counts: Counts::WhenAsked,
            cuts_every: 0,
            stalls_every: 0,
            stall_ms: 0,
            refuses: None,
            context: 1 << 20,
            tokenizer: true,
            cached: 0.0,
            closes: false,
            mute_at_first: false,
            only_word: None,
            tokens_per_word: 2,
            template: 17,
            remembers: true,
            dies_after: None,
            slower_after: None,
        }
    }
}

/// What the server saw.
#[derive(Debug, Default)]
pub struct Seen {
    pub connections: AtomicU64,
    pub streams: AtomicU64,
    /// Of them on the chat route.
    pub chats: AtomicU64,
    /// Prompt lengths of all streams, in tokens.
    pub prompts: Mutex<Vec<u64>>,
    /// First sixteen tokens or words of all prompts.
    pub blocks: Mutex<HashSet<String>>,
    /// Streams open now, and at most.
    pub open: AtomicU64,
    pub most_open: AtomicU64,
    /// Streams of which the client went away.
    pub left: AtomicU64,
}

pub struct Server {
    pub address: SocketAddr,
    pub seen: Arc<Seen>,
}

impl Server {
    pub fn start(manner: Manner) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let seen = Arc::new(Seen::default());
        let shared = seen.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                shared.connections.fetch_add(1, Ordering::SeqCst);
                let (manner, seen) = (manner.clone(), shared.clone());
                std::thread::spawn(move || {
                    let _ = serve(stream, &manner, &seen);
                });
            }
        });
        Server { address, seen }
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }
}

fn serve(stream: TcpStream, manner: &Manner, seen: &Seen) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut out = stream.try_clone()?;
    let mut input = BufReader::new(stream);
    loop {
        let mut line = String::new();
        if input.read_line(&mut line)? == 0 {
            return Ok(());
        }
        let streams = seen.streams.load(Ordering::SeqCst);
        if manner.dies_after.is_some_and(|n| streams >= n) {
            return Ok(());
        }
        let path = line.split(' ').nth(1).unwrap_or_default().to_string();
        let mut length = 0;
        loop {
            let mut header = String::new();
            input.read_line(&mut header)?;
            let header = header.trim().to_ascii_lowercase();
            if header.is_empty() {
                break;
            }
            if let Some(n) = header.strip_prefix("content-length:") {
                length = n.trim().parse().unwrap();
            }
        }
        let mut body = vec![0; length];
        input.read_exact(&mut body)?;
        // A page that is only fetched has no body.
        let body: Value = serde_json::from_slice(&body).unwrap_or_default();
        answer(&mut out, &path, &body, manner, seen)?;
        if manner.closes {
            return Ok(());
        }
    }
}

fn whole(out: &mut TcpStream, status: u16, body: &str) -> std::io::Result<()> {
    let n = body.len();
    out.write_all(
        format!("HTTP/1.1 {status} X\r\ncontent-type: application/json\r\ncontent-length: {n}\r\n\r\n{body}").as_bytes(),
    )
}

fn answer(
    out: &mut TcpStream,
    path: &str,
    body: &Value,
    manner: &Manner,
    seen: &Seen,
) -> std::io::Result<()> {
    if path == "/tokenize" && manner.tokenizer {
        let text = body["prompt"]
            .as_str()
            .or(body["content"].as_str())
            .unwrap();
        // A mark of beginning, then a number for each word.
        let ids: Vec<u64> = std::iter::once(1)
            .chain(text.split_whitespace().map(number))
            .collect();
        return whole(
            out,
            200,
            &json!({ "tokens": ids, "count": ids.len() }).to_string(),
        );
    }
    let chat = match path {
        "/v1/chat/completions" => true,
        "/v1/completions" => false,
        _ => return whole(out, 404, r#"{"detail":"Not Found"}"#),
    };
    let text = body["messages"][0]["content"].as_str().unwrap_or_default();
    let (prompt, block) = if chat {
        let words: Vec<&str> = text.split_whitespace().collect();
        let first = words.iter().take(16).copied().collect::<Vec<_>>().join(" ");
        (
            words.len() as u64 * manner.tokens_per_word + manner.template,
            first,
        )
    } else {
        match body["prompt"].as_array() {
            Some(ids) => {
                let first: Vec<String> = ids.iter().take(16).map(Value::to_string).collect();
                (ids.len() as u64, first.join(" "))
            }
            None => {
                let words = body["prompt"].as_str().unwrap().split_whitespace();
                let first: Vec<&str> = words.clone().take(16).collect();
                (
                    words.count() as u64 * manner.tokens_per_word,
                    first.join(" "),
                )
            }
        }
    };
    if let Some((status, body)) = manner.refuses {
        return whole(out, status, body);
    }
    let asked = body["max_tokens"].as_u64().unwrap();
    if prompt + asked > manner.context {
        let message = format!(
            "The input ({prompt} tokens) is longer than the model's context length ({} tokens).",
            manner.context
        );
        let body = json!({"object":"error","message":message,"type":"BadRequestError","code":400});
        return whole(out, 400, &body.to_string());
    }
    seen.prompts.lock().unwrap().push(prompt);
    seen.blocks.lock().unwrap().insert(block);
    let n = seen.streams.fetch_add(1, Ordering::SeqCst) + 1;
    let open = seen.open.fetch_add(1, Ordering::SeqCst) + 1;
    seen.most_open.fetch_max(open, Ordering::SeqCst);
    let usage = json!({
        "prompt_tokens": prompt,
        "completion_tokens": asked.min(manner.stops_after.unwrap_or(asked)),
        "prompt_tokens_details": {"cached_tokens": (prompt as f64 * manner.cached) as u64},
    });
    if chat {
        seen.chats.fetch_add(1, Ordering::SeqCst);
    }
    let mut manner = manner.clone();
    manner.ttft_ms += manner.ttft_ms_each * open;
    if manner.slower_after.is_some_and(|after| n > after) {
        manner.step_ms *= 2;
    }
    let result = stream(out, body, &manner, n, chat, text, &usage);
    seen.open.fetch_sub(1, Ordering::SeqCst);
    if result.is_err() {
        seen.left.fetch_add(1, Ordering::SeqCst);
    }
    result
}

fn number(word: &str) -> u64 {
    word.bytes()
        .fold(7, |n, b| (n * 31 + u64::from(b)) % 60_000)
        + 100
}

/// The n-th word of the server's answers: no loop, no two answers alike.
fn say(manner: &Manner, n: u64, stream: u64) -> String {
    if manner.mute_at_first && stream == 1 {
        return String::new();
    }
    match manner.only_word {
        Some(word) => format!(" {word}"),
        None => {
            let k = (n * 2_654_435_761 + stream * 40_503) % 10_007;
            format!(" w{k}")
        }
    }
}

fn stream(
    out: &mut TcpStream,
    body: &Value,
    manner: &Manner,
    n: u64,
    chat: bool,
    text: &str,
    usage: &Value,
) -> std::io::Result<()> {
    let began = Instant::now();
    let mut due = began + Duration::from_millis(manner.ttft_ms);
    out.write_all(
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n",
    )?;
    if chat {
        write_events(
            out,
            &[json!({"choices":[{"delta":{"role":"assistant","content":""}}]})],
        )?;
    }
    let asked = body["max_tokens"].as_u64().unwrap();
    let total = asked.min(manner.stops_after.unwrap_or(asked));
    let cut = manner.cuts_every > 0 && n.is_multiple_of(manner.cuts_every);
    let mut stall = manner.stalls_every > 0 && n.is_multiple_of(manner.stalls_every);
    let code = text
        .split_once("code word is ")
        .and_then(|(_, rest)| rest.split_once('.'))
        .map(|(code, _)| code)
        .filter(|_| manner.remembers);
    let mut sent = 0;
    while sent < total {
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        due += Duration::from_millis(manner.step_ms);
        if cut && sent * 2 >= total {
            out.shutdown(std::net::Shutdown::Both)?;
            return Ok(());
        }
        if stall && sent * 2 >= total {
            stall = false;
            std::thread::sleep(Duration::from_millis(manner.stall_ms));
            due = Instant::now();
        }
        let mut events = Vec::new();
        for _ in 0..manner.events_per_write {
            let mut words = String::new();
            let thinks = sent < manner.thinking;
            for _ in 0..manner.tokens_per_event.min(total - sent) {
                words.push_str(&say(manner, sent, n));
                sent += 1;
            }
            if let Some(code) = code.filter(|_| sent == total) {
                words.push_str(code);
            }
            let mut event = match (chat, thinks) {
                (true, true) => json!({"choices":[{"delta":{"reasoning_content":words}}]}),
                (true, false) => json!({"choices":[{"delta":{"content":words}}]}),
                (false, _) => json!({"choices":[{"text":words,"finish_reason":null}]}),
            };
            let asked = body["stream_options"]["continuous_usage_stats"] == true;
            if manner.counts == Counts::Unasked || (manner.counts == Counts::Continuous && asked) {
                event["usage"] =
                    json!({"prompt_tokens":usage["prompt_tokens"],"completion_tokens":sent});
            }
            events.push(event);
            if sent == total {
                break;
            }
        }
        write_events(out, &events)?;
    }
    let end = if chat {
        json!({"choices":[{"delta":{},"finish_reason":"length"}]})
    } else {
        json!({"choices":[{"text":"","finish_reason":"length"}]})
    };
    write_events(out, &[end])?;
    let asked = body["stream_options"]["include_usage"] == true;
    if manner.counts == Counts::Unasked || (manner.counts != Counts::Never && asked) {
        write_events(out, &[json!({"choices":[],"usage":usage})])?;
    }
    out.write_all(b"e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n")
}

fn write_events(out: &mut TcpStream, events: &[Value]) -> std::io::Result<()> {
    let mut wire = Vec::new();
    for event in events {
        let body = format!("data: {event}\n\n");
        wire.extend(format!("{:x}\r\n{body}\r\n", body.len()).into_bytes());
    }
    out.write_all(&wire)
}
