//! Opening connections, plain or under TLS.

use super::exchange::Line;
use super::socket::Socket;
use super::{Access, files};
use crate::bench::point::{Failure, FailureKind};
use rustls::ClientConnection;
use rustls::pki_types::ServerName;
use rustls_platform_verifier::BuilderVerifierExt as _;
use std::io;
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;
use tokio_rustls::TlsConnector;

/// TLS with the system's own trusted roots, offering HTTP/1.1 alone.
pub fn tls() -> Result<TlsConnector, String> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .and_then(|builder| builder.with_platform_verifier())
        .map_err(|e| format!("TLS cannot be set up: {e}"))?
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsConnector::from(Arc::new(config)))
}

/// Connects within `limit`, TLS included. The runtime's own thread does it.
pub async fn connect(access: &Access, limit: Duration) -> Result<Line, Failure> {
    let target = &access.target;
    let opening = open(target.host.clone(), target.port, access.tls.clone());
    let opening = tokio::spawn(tokio::time::timeout(limit, opening));
    let failed = |kind, what: String| Failure {
        kind,
        message: format!("cannot connect to {}: {what}", target.name()),
    };
    let refused = |what| failed(FailureKind::Refused, what);
    let opened = opening.await.map_err(|e| refused(e.to_string()))?;
    let (stream, tls) = match opened {
        Ok(opened) => opened.map_err(refused)?,
        Err(_) => {
            return Err(Failure {
                kind: FailureKind::TimeoutConnect,
                message: format!(
                    "no connection to {} within {:.0} s",
                    target.name(),
                    limit.as_secs_f64()
                ),
            });
        }
    };
    Line::new(Socket::new(stream), tls).map_err(|e| refused(files::explain(&e)))
}

/// An open stream that does not block, and its TLS with the handshake done. Failures are in words.
type Opened = (TcpStream, Option<Box<ClientConnection>>);

async fn open(host: String, port: u16, tls: Option<TlsConnector>) -> Result<Opened, String> {
    let no_socket = |error: io::Error| files::explain(&error);
    // Tries every address that the name has.
    let stream = tokio::net::TcpStream::connect((host.as_str(), port))
        .await
        .map_err(no_socket)?;
    stream.set_nodelay(true).map_err(no_socket)?;
    let Some(connector) = tls else {
        return Ok((stream.into_std().map_err(no_socket)?, None));
    };
    let name = ServerName::try_from(host).map_err(|e| e.to_string())?;
    let stream = connector
        .connect(name, stream)
        .await
        .map_err(|e| e.to_string())?;
    let (stream, mut tls) = stream.into_inner();
    // A request is taken whole, however long it is.
    tls.set_buffer_limit(None);
    Ok((stream.into_std().map_err(no_socket)?, Some(Box::new(tls))))
}
