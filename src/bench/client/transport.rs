//! A connection: plain TCP, or TLS over it.

use super::files;
use super::socket::{Received, Socket};
use super::target::Target;
use crate::bench::point::{Failure, FailureKind};
use rustls::pki_types::ServerName;
use rustls_platform_verifier::BuilderVerifierExt as _;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead as _, AsyncWriteExt as _, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// An open connection to the server.
#[derive(Debug)]
pub enum Transport {
    Plain(Socket),
    Tls(Box<TlsStream<TcpStream>>),
}

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

/// Connects within `limit`, TLS included.
pub async fn connect(
    target: &Target,
    tls: Option<&TlsConnector>,
    limit: Duration,
) -> Result<Transport, Failure> {
    let connecting = tokio::time::timeout(limit, open(target, tls));
    connecting.await.unwrap_or_else(|_| {
        Err(Failure {
            kind: FailureKind::TimeoutConnect,
            message: format!(
                "no connection to {} within {:.0} s",
                target.name(),
                limit.as_secs_f64()
            ),
        })
    })
}

async fn open(target: &Target, tls: Option<&TlsConnector>) -> Result<Transport, Failure> {
    let failed = |what: String| Failure {
        kind: FailureKind::Refused,
        message: format!("cannot connect to {}: {what}", target.name()),
    };
    let no_socket = |error: io::Error| failed(files::explain(&error));
    // Tries every address that the name has.
    let stream = TcpStream::connect((target.host.as_str(), target.port))
        .await
        .map_err(no_socket)?;
    stream.set_nodelay(true).map_err(no_socket)?;
    let Some(connector) = tls else {
        return Ok(Transport::Plain(Socket::new(stream)));
    };
    let name = ServerName::try_from(target.host.clone()).map_err(|e| failed(e.to_string()))?;
    let stream = connector
        .connect(name, stream)
        .await
        .map_err(|e| failed(e.to_string()))?;
    Ok(Transport::Tls(Box::new(stream)))
}

impl Transport {
    /// Reads once what is there.
    pub fn poll_receive(
        &mut self,
        cx: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<Received>> {
        match self {
            Transport::Plain(socket) => socket.poll_receive(cx, buffer),
            Transport::Tls(stream) => {
                let mut room = ReadBuf::new(buffer);
                ready!(Pin::new(stream.as_mut()).poll_read(cx, &mut room))?;
                Poll::Ready(Ok(Received {
                    bytes: room.filled().len(),
                    age: None,
                }))
            }
        }
    }

    /// Writes all of `bytes` and sees them off.
    pub async fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Transport::Plain(socket) => socket.write_all(bytes).await,
            Transport::Tls(stream) => {
                stream.write_all(bytes).await?;
                stream.flush().await
            }
        }
    }
}
