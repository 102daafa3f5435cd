//! Streams under TLS, against a server that speaks it.

use super::tests::{DONE, END, HEAD, TOKEN, kind, pause, request, send, take_request};
use super::{Access, Client, Target};
use crate::bench::point::FailureKind;
use crate::engine::Endpoint;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore, ServerConfig, ServerConnection, StreamOwned};
use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;
use tokio_rustls::TlsConnector;

type Stream = StreamOwned<ServerConnection, TcpStream>;

fn fixture(name: &str) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/tls");
    std::fs::read(folder.join(name)).unwrap()
}

/// A server that gives each connection to `serve`, and a client that trusts it.
fn server(serve: impl Fn(Stream) + Send + 'static) -> Client {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = Endpoint {
        url: format!("https://{}", listener.local_addr().unwrap()),
        model: None,
        key: None,
        kind: None,
    };
    let certificate = CertificateDer::from(fixture("server.cert.der"));
    let key = PrivateKeyDer::try_from(fixture("server.key.der")).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.clone()], key)
        .unwrap();
    let config = Arc::new(config);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let session = ServerConnection::new(config.clone()).unwrap();
            let stream = stream.unwrap();
            stream.set_nodelay(true).unwrap();
            serve(StreamOwned::new(session, stream));
        }
    });
    let mut roots = RootCertStore::empty();
    roots.add(certificate).unwrap();
    let trusting = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    Client::new(Access {
        target: Target::new(&endpoint).unwrap(),
        tls: Some(TlsConnector::from(Arc::new(trusting))),
    })
}

#[test]
fn streams_come_through_are_stamped_under_it_and_keep_their_connection() {
    let body = [TOKEN, TOKEN, END, DONE].concat();
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    let client = server(move |mut stream| {
        while take_request(&mut stream) {
            stream.write_all(head.as_bytes()).unwrap();
            stream.write_all(TOKEN).unwrap();
            pause(60);
            // One byte in a record of its own.
            for byte in body.get(TOKEN.len()..).unwrap() {
                stream.write_all(&[*byte]).unwrap();
            }
        }
    });
    let one = request(&client, 5000);
    // The first read after the stamps were switched on may lack one; a busy machine makes two reads of an answer.
    let exchanges = send(&client, &vec![one; 12]);
    for exchange in &exchanges {
        assert_eq!(exchange.result, Ok(()));
        let answer = &exchange.answer;
        assert_eq!((answer.chunks, answer.text.as_str()), (2, "aa"));
        let gap_ms = exchange.ms_to(answer.last_token_ns.unwrap())
            - exchange.ms_to(answer.first_token_ns.unwrap());
        assert!((55.0..500.0).contains(&gap_ms), "{gap_ms}");
    }
    let (stamped, reads) = (client.meter.stamped.get(), client.meter.reads.get());
    assert!(stamped * 10 > reads * 9, "{stamped} of {reads}");
}

#[test]
fn long_requests_go_through_and_an_end_without_a_word_is_no_end() {
    let client = server(|mut stream| {
        assert!(take_request(&mut stream));
        stream.write_all(&[HEAD, TOKEN].concat()).unwrap();
        stream.flush().unwrap();
        // Closed under TLS: the other side never said that there is no more.
    });
    let mut long = request(&client, 5000);
    let body = [vec![b' '; 1 << 20], b"\r\n\r\n{}".to_vec()].concat();
    long.bytes = client.target().post("/v1/completions", &body);
    let exchange = send(&client, &[long]).remove(0);
    assert_eq!(kind(&exchange), FailureKind::CutOff);
    assert_eq!(exchange.answer.chunks, 1);
}

#[test]
fn a_certificate_that_nobody_vouches_for_is_refused() {
    let mut client = server(|mut stream| assert!(!take_request(&mut stream)));
    client.access.tls = Some(super::transport::tls().unwrap());
    let one = request(&client, 5000);
    let exchange = send(&client, &[one]).remove(0);
    assert_eq!(kind(&exchange), FailureKind::Refused);
    let message = exchange.result.unwrap_err().message;
    assert!(message.contains("certificate"), "{message}");
}
