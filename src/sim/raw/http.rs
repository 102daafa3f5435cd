//! Requests of HTTP/1.1 from a socket.

use tokio::net::TcpStream;

/// Bytes of a head.
const MAX_HEAD: usize = 64 << 10;
/// Bytes of a body: the longest context as token ids and some more.
const MAX_BODY: usize = 32 << 20;

/// A request that is read.
#[derive(Debug, PartialEq, Eq)]
pub struct Request {
    pub method: String,
    /// Path and query.
    pub target: String,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
    /// The connection serves another request after this one.
    pub keep: bool,
}

#[derive(Debug, PartialEq, Eq)]
pub enum Bad {
    /// The connection is over.
    Closed,
    /// Status and words for a request that cannot be served.
    Refused(u16, &'static str),
}

/// A head and the bytes that it takes.
#[derive(Debug)]
struct Head {
    request: Request,
    len: usize,
    body: usize,
    expects: bool,
}

/// Reads what is there into `buffer`; 0 at the end of the connection.
pub async fn more(socket: &TcpStream, buffer: &mut Vec<u8>) -> usize {
    loop {
        if socket.readable().await.is_err() {
            return 0;
        }
        buffer.reserve(16 << 10);
        match socket.try_read_buf(buffer) {
            Ok(n) => return n,
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
            Err(_) => return 0,
        }
    }
}

/// The next request; what follows it stays in `buffer`.
pub async fn read(socket: &TcpStream, buffer: &mut Vec<u8>) -> Result<Request, Bad> {
    let head = loop {
        if let Some(head) = head(buffer)? {
            break head;
        }
        if more(socket, buffer).await == 0 {
            return Err(Bad::Closed);
        }
    };
    if head.expects && buffer.len() == head.len {
        write(socket, b"HTTP/1.1 100 Continue\r\n\r\n").await?;
    }
    while buffer.len() < head.len + head.body {
        if more(socket, buffer).await == 0 {
            return Err(Bad::Closed);
        }
    }
    let rest = buffer.split_off(head.len + head.body);
    let mut taken = std::mem::replace(buffer, rest);
    taken.drain(..head.len);
    Ok(Request {
        body: taken,
        ..head.request
    })
}

/// Writes all of `bytes`.
pub async fn write(socket: &TcpStream, bytes: &[u8]) -> Result<(), Bad> {
    let mut rest = bytes;
    while !rest.is_empty() {
        if socket.writable().await.is_err() {
            return Err(Bad::Closed);
        }
        match socket.try_write(rest) {
            Ok(n) => rest = rest.get(n..).unwrap_or_default(),
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
            Err(_) => return Err(Bad::Closed),
        }
    }
    Ok(())
}

fn head(buffer: &[u8]) -> Result<Option<Head>, Bad> {
    let Some(end) = buffer.windows(4).position(|four| four == b"\r\n\r\n") else {
        return if buffer.len() > MAX_HEAD {
            Err(Bad::Refused(431, "the head of the request is too long"))
        } else {
            Ok(None)
        };
    };
    let text = String::from_utf8_lossy(buffer.get(..end).unwrap_or_default());
    let mut lines = text.split("\r\n");
    let mut first = lines.next().unwrap_or_default().split(' ');
    let (Some(method), Some(target), Some(version)) = (first.next(), first.next(), first.next())
    else {
        return Err(Bad::Refused(400, "this is not HTTP/1.1"));
    };
    let headers: Vec<(String, String)> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_string()))
        .collect();
    let value = |wanted: &str| {
        headers
            .iter()
            .find(|(name, _)| name == wanted)
            .map(|(_, v)| v)
    };
    if value("transfer-encoding").is_some() {
        return Err(Bad::Refused(411, "send the length of the body"));
    }
    let body = match value("content-length").map(|v| v.parse::<usize>()) {
        None => 0,
        Some(Ok(length)) if length <= MAX_BODY => length,
        Some(Ok(_)) => return Err(Bad::Refused(413, "the body of the request is too long")),
        Some(Err(_)) => return Err(Bad::Refused(400, "the length of the body is not a number")),
    };
    let closes = value("connection").is_some_and(|v| v.eq_ignore_ascii_case("close"));
    Ok(Some(Head {
        len: end + 4,
        body,
        expects: value("expect").is_some(),
        request: Request {
            method: method.to_string(),
            target: target.to_string(),
            keep: version == "HTTP/1.1" && !closes,
            headers: headers.clone(),
            body: Vec::new(),
        },
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_are_read_or_refused() {
        let text = b"POST /v1/x?a=1 HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabcGET";
        let found = head(text).expect("good").expect("whole");
        assert_eq!(
            (found.len, found.body, found.expects),
            (text.len() - 6, 3, false)
        );
        assert_eq!(found.request.target, "/v1/x?a=1");
        assert!(found.request.keep);
        let close = head(b"GET / HTTP/1.1\r\nconnection: Close\r\n\r\n");
        assert!(!close.expect("good").expect("whole").request.keep);
        assert!(head(b"GET / HTTP/1.1\r\nHost").expect("good").is_none());
        for (bad, status) in [
            (&b"nonsense\r\n\r\n"[..], 400),
            (
                b"POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n",
                411,
            ),
            (
                b"POST / HTTP/1.1\r\ncontent-length: 99999999999\r\n\r\n",
                413,
            ),
            (b"POST / HTTP/1.1\r\ncontent-length: x\r\n\r\n", 400),
        ] {
            match head(bad) {
                Err(Bad::Refused(found, _)) => assert_eq!(found, status),
                other => panic!("{other:?}"),
            }
        }
    }
}
