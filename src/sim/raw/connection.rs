//! One connection after another request: streams go to the pacer, everything else to the pages.

use super::http::{self, Bad, Request};
use super::pacer::{self, Job};
use super::{Raw, ask, steady_ns};
use crate::sim::api::Rig;
use crate::sim::api::generate::Ask;
use crate::sim::api::refuse::{bad_request, failure};
use crate::sim::api::shape::Kind;
use axum::Router;
use axum::body::{Body, to_bytes};
use axum::response::{IntoResponse, Response};
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tower_service::Service;

/// Everything that a connection needs.
#[derive(Clone)]
struct Hall {
    rig: Arc<Rig>,
    raw: Arc<Raw>,
    pages: Router,
    pacer: Sender<Job>,
}

/// Serves until the listener fails. Dropping it ends all connections.
pub async fn serve(
    listener: TcpListener,
    rig: Arc<Rig>,
    raw: Arc<Raw>,
    pages: Router,
) -> std::io::Result<()> {
    let hall = Hall {
        rig,
        pacer: pacer::start(raw.clone())?,
        raw,
        pages,
    };
    let mut open = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((socket, _)) => {
                    // A small chunk must not wait for the answer to the one before.
                    let _ = socket.set_nodelay(true);
                    open.spawn(connection(socket, hall.clone()));
                }
                // One that was given up while it waited, or no more files: there may be some again soon.
                Err(_) => tokio::time::sleep(std::time::Duration::from_millis(10)).await,
            },
            Some(_) = open.join_next() => {}
        }
    }
}

async fn connection(socket: TcpStream, hall: Hall) {
    let socket = Arc::new(socket);
    let mut buffer = Vec::new();
    loop {
        let request = match http::read(&socket, &mut buffer).await {
            Ok(request) => request,
            Err(Bad::Closed) => return,
            Err(Bad::Refused(status, words)) => {
                let answer = format!(
                    "HTTP/1.1 {status} \r\nserver: vramp-sim\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{words}",
                    words.len()
                );
                let _ = http::write(&socket, answer.as_bytes()).await;
                return;
            }
        };
        let received_ns = steady_ns();
        let keep = request.keep;
        let served = match stream_kind(&hall.rig, &request) {
            Some(kind) => stream(&socket, &mut buffer, &hall, kind, &request, received_ns).await,
            None => None,
        };
        let done = match served {
            Some(done) => done,
            None => page(&socket, &hall, request).await,
        };
        if done.is_err() || !keep {
            return;
        }
    }
}

/// Which completion is asked for, if it is one and may be answered.
fn stream_kind(rig: &Rig, request: &Request) -> Option<Kind> {
    if request.method != "POST" || !rig.is_ready() {
        return None;
    }
    match request.target.split('?').next()? {
        "/v1/chat/completions" => Some(Kind::Chat),
        "/v1/completions" => Some(Kind::Completion),
        _ => None,
    }
}

/// Sends a stream; `None` if none was asked for.
async fn stream(
    socket: &Arc<TcpStream>,
    buffer: &mut Vec<u8>,
    hall: &Hall,
    kind: Kind,
    request: &Request,
    received_ns: u64,
) -> Option<Result<(), Bad>> {
    let ask: Ask<'_> = serde_json::from_slice(&request.body).ok()?;
    if ask.stream != Some(true) {
        return None;
    }
    let raw = &hall.raw;
    let number = raw.asked.fetch_add(1, Ordering::Relaxed) + 1;
    let script = match ask::script(&hall.rig, raw, kind, ask, number) {
        Ok(script) => script,
        Err(words) => {
            raw.truth.refused();
            return Some(send(socket, bad_request(&words)).await);
        }
    };
    if raw.manner.fail_every > 0 && number.is_multiple_of(raw.manner.fail_every) {
        raw.truth.failed();
        return Some(send(socket, failure("CUDA out of memory (simulated)")).await);
    }
    let gone = Arc::new(AtomicBool::new(false));
    let (done, mut over) = oneshot::channel();
    let job = Job {
        socket: socket.clone(),
        script,
        received_ns,
        gone: gone.clone(),
        done,
    };
    if hall.pacer.send(job).is_err() {
        return Some(Err(Bad::Closed));
    }
    loop {
        tokio::select! {
            _ = &mut over => return Some(Ok(())),
            n = http::more(socket, buffer) => if n == 0 {
                gone.store(true, Ordering::Relaxed);
                return Some(Err(Bad::Closed));
            },
        }
    }
}

/// Answers by the pages that every mode has.
async fn page(socket: &TcpStream, hall: &Hall, request: Request) -> Result<(), Bad> {
    let mut asked = axum::http::Request::builder()
        .method(request.method.as_str())
        .uri(&request.target);
    for (name, value) in &request.headers {
        asked = asked.header(name, value);
    }
    let answer = match asked.body(Body::from(request.body)) {
        // The router fails in no way: its error has no value.
        Ok(asked) => hall.pages.clone().call(asked).await.into_response(),
        Err(_) => bad_request("this is not HTTP/1.1"),
    };
    send(socket, answer).await
}

async fn send(socket: &TcpStream, answer: Response) -> Result<(), Bad> {
    let (parts, body) = answer.into_parts();
    let body = to_bytes(body, usize::MAX).await.map_err(|_| Bad::Closed)?;
    let mut bytes = Vec::with_capacity(body.len() + 256);
    // Writing to a vector cannot fail.
    let _ = write!(bytes, "HTTP/1.1 {}\r\n", parts.status);
    if !parts.headers.contains_key("server") {
        bytes.extend_from_slice(b"server: vramp-sim\r\n");
    }
    for (name, value) in &parts.headers {
        if name != "content-length" {
            let _ = write!(bytes, "{name}: ");
            bytes.extend_from_slice(value.as_bytes());
            bytes.extend_from_slice(b"\r\n");
        }
    }
    let _ = write!(bytes, "content-length: {}\r\n\r\n", body.len());
    bytes.extend_from_slice(&body);
    http::write(socket, &bytes).await
}
