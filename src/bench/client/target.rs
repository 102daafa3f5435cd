//! Where requests go, and how their head reads.

use crate::engine::Endpoint;
use std::io::Write;

/// A server address that cannot be used, in words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TargetError {
    #[error("{url:?} is not a URL ({what}); write it like http://127.0.0.1:8000")]
    Url { url: String, what: String },
    #[error("the API key has characters that a header cannot carry; is the right file named?")]
    Key,
}

/// A server address, taken apart once.
#[derive(Debug, Clone)]
pub struct Target {
    pub tls: bool,
    /// Host name or address, an IPv6 address without its brackets.
    pub host: String,
    pub port: u16,
    /// Path before `/v1`, without a trailing slash.
    base: String,
    /// All header lines that every request has, each with its line end. Holds the key, so it is never shown.
    headers: HeaderLines,
}

#[derive(Clone)]
struct HeaderLines(String);

impl std::fmt::Debug for HeaderLines {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("HeaderLines(…)")
    }
}

impl Target {
    pub fn new(endpoint: &Endpoint) -> Result<Target, TargetError> {
        let fail = |what: &str| TargetError::Url {
            url: crate::units::clean(&endpoint.url),
            what: what.to_string(),
        };
        let url = url::Url::parse(&endpoint.url).map_err(|e| fail(&e.to_string()))?;
        let tls = match url.scheme() {
            "http" => false,
            "https" => true,
            _ => return Err(fail("only http and https are spoken")),
        };
        let shown = url.host_str().ok_or_else(|| fail("it names no host"))?;
        let port = url
            .port_or_known_default()
            .ok_or_else(|| fail("it names no port"))?;
        let host = shown.trim_start_matches('[').trim_end_matches(']');
        let mut headers = match url.port() {
            Some(port) => format!("Host: {shown}:{port}\r\n"),
            None => format!("Host: {shown}\r\n"),
        };
        headers.push_str(concat!(
            "User-Agent: vramp/",
            env!("CARGO_PKG_VERSION"),
            "\r\n",
            "Accept: text/event-stream, application/json\r\n",
            "Accept-Encoding: identity\r\n",
            "Content-Type: application/json\r\n",
        ));
        if let Some(key) = &endpoint.key {
            let key = key.reveal();
            if !key.chars().all(|c| c.is_ascii_graphic()) {
                return Err(TargetError::Key);
            }
            headers.push_str("Authorization: Bearer ");
            headers.push_str(key);
            headers.push_str("\r\n");
        }
        Ok(Target {
            tls,
            host: host.to_string(),
            port,
            base: url.path().trim_end_matches('/').to_string(),
            headers: HeaderLines(headers),
        })
    }

    /// `host:port` for messages.
    pub fn name(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }

    /// A POST of JSON to `path`, head and body in one piece, so that one write sends it.
    pub fn post(&self, path: &str, body: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(body.len() + self.headers.0.len() + 128);
        // Writing to a vector cannot fail.
        let _ = write!(
            bytes,
            "POST {}{path} HTTP/1.1\r\n{}Content-Length: {}\r\n\r\n",
            self.base,
            self.headers.0,
            body.len()
        );
        bytes.extend_from_slice(body);
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::Key;

    fn endpoint(url: &str, key: Option<&str>) -> Endpoint {
        Endpoint {
            url: url.to_string(),
            model: None,
            key: key.map(|k| Key::new(k.to_string())),
            kind: None,
        }
    }

    #[test]
    fn urls_of_all_kinds() {
        let target = Target::new(&endpoint("http://[::1]:8000/prefix/", Some("s3cret"))).unwrap();
        assert_eq!(
            (target.host.as_str(), target.port, target.tls),
            ("::1", 8000, false)
        );
        let text = String::from_utf8(target.post("/v1/completions", b"{}")).unwrap();
        assert!(text.starts_with("POST /prefix/v1/completions HTTP/1.1\r\nHost: [::1]:8000\r\n"));
        assert!(text.contains("\r\nAuthorization: Bearer s3cret\r\n"));
        assert!(text.ends_with("Content-Length: 2\r\n\r\n{}"));
        assert!(!format!("{target:?}").contains("s3cret"));
        let target = Target::new(&endpoint("https://api.example.org", None)).unwrap();
        assert_eq!((target.port, target.tls), (443, true));
        for bad in ["", "host:80", "ftp://x", "http://"] {
            assert!(Target::new(&endpoint(bad, None)).is_err(), "{bad}");
        }
        let broken = endpoint("http://x", Some("a\r\nEvil: 1"));
        assert_eq!(Target::new(&broken).unwrap_err(), TargetError::Key);
    }
}
