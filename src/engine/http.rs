//! Control traffic: one client per endpoint, bounded in time and size, with errors in words.

use super::{Endpoint, EngineError, Key};
use crate::units::clean;
use serde_json::Value;
use std::error::Error as _;
use std::time::Duration;

/// A host that is there answers a connection well within this.
const CONNECT: Duration = Duration::from_secs(3);
/// Pages such as `/v1/models` and `/metrics`.
const PAGE: Duration = Duration::from_secs(8);
/// No page of an inference server is larger (SGLang's metrics are 90 KB, its `server_info` 40 KB).
const MAX_BODY: usize = 16 << 20;
/// How much of a foreign message is worth showing.
const MAX_MESSAGE: usize = 400;

/// One endpoint's client.
#[derive(Debug, Clone)]
pub struct Client {
    http: reqwest::Client,
    base: String,
    key: Option<Key>,
}

/// An answer with its body read to the end.
#[derive(Debug, Clone)]
pub struct Answer {
    pub status: u16,
    /// The `server` header, in lower case.
    pub server: String,
    pub body: Vec<u8>,
    url: String,
}

impl Client {
    /// Prepares a client; nothing is sent. Proxies named in the environment are not used for loopback addresses.
    pub fn new(endpoint: &Endpoint) -> Result<Self, EngineError> {
        let unreachable = |what: String| EngineError::Unreachable {
            url: endpoint.url.clone(),
            what,
        };
        let url = url::Url::parse(&endpoint.url)
            .map_err(|e| unreachable(format!("this is no URL: {e}")))?;
        // The provider is process-wide; an error only says that somebody has installed it before.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut builder = reqwest::Client::builder()
            .user_agent(concat!("vramp/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(CONNECT)
            .redirect(reqwest::redirect::Policy::limited(3));
        if is_loopback(&url) {
            builder = builder.no_proxy();
        }
        if url.scheme() == "http" {
            // Reading the system's roots takes time and fails where there are none; a plain connection needs none.
            builder = builder.tls_certs_only([]);
        }
        let http = builder
            .build()
            .map_err(|e| unreachable(format!("cannot prepare a client: {}", root_cause(&e))))?;
        Ok(Client {
            http,
            base: endpoint.url.trim_end_matches('/').to_string(),
            key: endpoint.key.clone(),
        })
    }

    /// GET of a path that begins with `/`. Any status is an answer, except 401 and 403.
    pub async fn get(&self, path: &str) -> Result<Answer, EngineError> {
        let url = format!("{}{path}", self.base);
        self.send(self.http.get(&url), url, PAGE).await
    }

    /// POST of a JSON body. Any status is an answer, except 401 and 403.
    pub async fn post(
        &self,
        path: &str,
        body: &Value,
        limit: Duration,
    ) -> Result<Answer, EngineError> {
        let url = format!("{}{path}", self.base);
        self.send(self.http.post(&url).json(body), url, limit).await
    }

    async fn send(
        &self,
        request: reqwest::RequestBuilder,
        url: String,
        limit: Duration,
    ) -> Result<Answer, EngineError> {
        let request = match &self.key {
            Some(key) => request.bearer_auth(key.reveal()),
            None => request,
        };
        let mut response = request
            .timeout(limit)
            .send()
            .await
            .map_err(|e| classify(&e, &url, limit))?;
        let status = response.status().as_u16();
        let server = response
            .headers()
            .get(reqwest::header::SERVER)
            .and_then(|v| v.to_str().ok())
            .unwrap_or_default()
            .to_ascii_lowercase();
        let mut body = Vec::new();
        while let Some(chunk) = response
            .chunk()
            .await
            .map_err(|e| classify(&e, &url, limit))?
        {
            if body.len() + chunk.len() > MAX_BODY {
                return Err(EngineError::Strange {
                    url,
                    what: format!("its answer is larger than {} MiB", MAX_BODY >> 20),
                });
            }
            body.extend_from_slice(&chunk);
        }
        if matches!(status, 401 | 403) {
            return Err(EngineError::Denied {
                url,
                status,
                message: message(&body),
            });
        }
        Ok(Answer {
            status,
            server,
            body,
            url,
        })
    }
}

impl Answer {
    /// The body as JSON of a success; anything else is an error in words.
    pub fn json(&self) -> Result<Value, EngineError> {
        self.success()?;
        serde_json::from_slice(&self.body).map_err(|_| EngineError::Strange {
            url: self.url.clone(),
            what: describe(&self.body),
        })
    }

    /// The body as JSON of a success, `None` for anything else.
    pub fn json_if_ok(&self) -> Option<Value> {
        self.json().ok()
    }

    /// An error unless the status is 2xx. 503 with no words, or with words about loading, is [`EngineError::Loading`].
    pub fn success(&self) -> Result<(), EngineError> {
        if (200..300).contains(&self.status) {
            return Ok(());
        }
        if self.says_loading() {
            return Err(EngineError::Loading);
        }
        if let Some(refusal) = super::refusal::read(self.status, &self.body) {
            return Err(refusal);
        }
        Err(EngineError::Status {
            url: self.url.clone(),
            status: self.status,
            message: message(&self.body),
        })
    }

    /// llama.cpp says `Loading model` with its 503, SGLang says nothing.
    pub fn says_loading(&self) -> bool {
        self.status == 503
            && (self.body.iter().all(u8::is_ascii_whitespace)
                || message(&self.body).to_ascii_lowercase().contains("loading"))
    }

    /// The whole URL that was asked.
    pub fn url(&self) -> &str {
        &self.url
    }
}

fn is_loopback(url: &url::Url) -> bool {
    match url.host() {
        Some(url::Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        Some(url::Host::Ipv4(ip)) => ip.is_loopback() || ip.is_unspecified(),
        Some(url::Host::Ipv6(ip)) => ip.is_loopback() || ip.is_unspecified(),
        None => false,
    }
}

fn classify(error: &reqwest::Error, url: &str, limit: Duration) -> EngineError {
    let url = url.to_string();
    if error.is_timeout() {
        let after_s = if error.is_connect() { CONNECT } else { limit }.as_secs();
        return EngineError::Timeout { url, after_s };
    }
    let mut source = error.source();
    while let Some(cause) = source {
        let refused = cause
            .downcast_ref::<std::io::Error>()
            .is_some_and(|io| io.kind() == std::io::ErrorKind::ConnectionRefused);
        if refused {
            return EngineError::Refused { url };
        }
        source = cause.source();
    }
    if error.is_decode() {
        return EngineError::Strange {
            url,
            what: format!("its answer cannot be decoded ({})", root_cause(error)),
        };
    }
    EngineError::Unreachable {
        url,
        what: root_cause(error),
    }
}

/// The innermost cause, which names what happened; the outer ones repeat the URL.
fn root_cause(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    clean(&cause.to_string())
}

/// The server's own words in an error body: OpenAI's `error.message`, SGLang's flat `message`, FastAPI's `detail`, or the text.
pub fn message(body: &[u8]) -> String {
    let text = match serde_json::from_slice::<Value>(body) {
        Ok(value) => ["/error/message", "/message", "/error", "/detail"]
            .iter()
            .find_map(|at| value.pointer(at))
            .map_or_else(
                || value.to_string(),
                |found| match found.as_str() {
                    Some(words) => words.to_string(),
                    None => found.to_string(),
                },
            ),
        Err(_) if looks_like_html(body) => describe(body),
        Err(_) => String::from_utf8_lossy(body).into_owned(),
    };
    let text = clean(text.trim());
    if text.is_empty() {
        return "no message".to_string();
    }
    shorten(&text, MAX_MESSAGE)
}

/// Cuts a text at a character limit and marks the cut.
pub fn shorten(text: &str, limit: usize) -> String {
    match text.char_indices().nth(limit) {
        Some((at, _)) => format!("{}…", text.get(..at).unwrap_or_default()),
        None => text.to_string(),
    }
}

fn looks_like_html(body: &[u8]) -> bool {
    let head: Vec<u8> = body
        .iter()
        .skip_while(|b| b.is_ascii_whitespace())
        .take(64)
        .map(u8::to_ascii_lowercase)
        .collect();
    head.starts_with(b"<!doctype html") || head.starts_with(b"<html")
}

/// What a body is that should have been JSON.
fn describe(body: &[u8]) -> String {
    if body.iter().all(u8::is_ascii_whitespace) {
        return "an empty page instead of JSON".to_string();
    }
    let text = String::from_utf8_lossy(body.get(..body.len().min(4096)).unwrap_or_default());
    if looks_like_html(body) {
        let lower = text.to_ascii_lowercase();
        let title = lower
            .find("<title>")
            .and_then(|from| {
                let from = from + "<title>".len();
                let to = lower.get(from..)?.find("</title>")? + from;
                text.get(from..to)
            })
            .map(|title| clean(title.trim()));
        return match title {
            Some(title) if !title.is_empty() => {
                format!("an HTML page ({}) instead of JSON", shorten(&title, 80))
            }
            _ => "an HTML page instead of JSON".to_string(),
        };
    }
    format!(
        "something else than JSON ({})",
        shorten(&clean(text.trim()), 80)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_servers_error_text_is_found() {
        assert_eq!(
            message(br#"{"error":{"message":"Loading model"}}"#),
            "Loading model"
        );
        assert_eq!(
            message(br#"{"object":"error","message":"too long"}"#),
            "too long"
        );
        assert_eq!(message(br#"{"detail":"Not Found"}"#), "Not Found");
        assert_eq!(message(br#"{"error":"invalid key"}"#), "invalid key");
        assert_eq!(message(b"plain \x1b[31mwords\x1b[0m\n"), "plain words");
        assert_eq!(message(b"  "), "no message");
        assert_eq!(
            message(b"<html><title>502 Bad Gateway</title></html>"),
            "an HTML page (502 Bad Gateway) instead of JSON"
        );
        assert_eq!(message("é".repeat(500).as_bytes()).chars().count(), 401);
    }

    #[test]
    fn loading_is_told_apart_from_a_gateway_without_a_server() {
        let answer = |status, body: &[u8]| Answer {
            status,
            server: String::new(),
            body: body.to_vec(),
            url: "http://x/health".into(),
        };
        assert!(answer(503, b"").says_loading());
        assert!(
            answer(
                503,
                br#"{"error":{"message":"Loading model","type":"unavailable_error","code":503}}"#
            )
            .says_loading()
        );
        assert!(!answer(503, b"<html><title>503 Service Unavailable</title>").says_loading());
        assert!(!answer(200, b"").says_loading());
    }
}
