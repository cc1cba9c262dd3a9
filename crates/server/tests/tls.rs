//! TLS on a real server: HTTP/1.1 and gRPC within it, and whoever speaks something else.

mod support;

use std::fs;
use std::future::Future;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream as StdStream};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use http::Uri;
use hyper_util::rt::TokioIo;
use rcgen::generate_simple_self_signed;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use support::{Served, start_changed};
use tempfile::TempDir;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tonic::codegen::Service;
use tonic::transport::Endpoint;
use weft_protocol::grpc::inference::ServerMetadataRequest;
use weft_protocol::grpc::inference::grpc_inference_service_client::GrpcInferenceServiceClient;
use weft_repository::TlsFiles;

/// A server with a certificate of its own.
struct Private {
    served: Served,
    certificate: CertificateDer<'static>,
    _folder: TempDir,
}

fn start(handshake: Duration) -> Private {
    let folder = tempfile::tempdir().expect("there is a place for files");
    let made = generate_simple_self_signed(["localhost".to_string()]).expect("it is a name");
    let files = TlsFiles {
        certificate: folder.path().join("chain.pem"),
        key: folder.path().join("key.pem"),
    };
    fs::write(&files.certificate, made.cert.pem()).expect("it is written");
    fs::write(&files.key, made.signing_key.serialize_pem()).expect("it is written");
    let served = start_changed(None, |options| {
        options.tls = Some(files);
        options.limits.handshake = handshake;
    });
    Private { served, certificate: made.cert.der().clone(), _folder: folder }
}

impl Private {
    /// What a client needs that trusts it and speaks these protocols.
    fn client(&self, protocols: &[&str]) -> ClientConfig {
        let mut roots = RootCertStore::empty();
        roots.add(self.certificate.clone()).expect("it is a certificate");
        client(roots, protocols)
    }

    fn connect(&self, config: ClientConfig) -> StreamOwned<ClientConnection, StdStream> {
        let name = ServerName::try_from("localhost").expect("it is a name");
        let connection = ClientConnection::new(Arc::new(config), name).expect("it is sound");
        StreamOwned::new(connection, self.served.connect())
    }
}

fn client(roots: RootCertStore, protocols: &[&str]) -> ClientConfig {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider);
    let builder = builder.with_safe_default_protocol_versions().expect("there are some");
    let mut config = builder.with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = protocols.iter().map(|protocol| protocol.as_bytes().into()).collect();
    config
}

/// Connects a channel of gRPC through TLS.
#[derive(Clone)]
struct Connector {
    address: SocketAddr,
    config: Arc<ClientConfig>,
}

impl Service<Uri> for Connector {
    type Response = TokioIo<TlsStream<TcpStream>>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Self::Response>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Uri) -> Self::Future {
        let Self { address, config } = self.clone();
        Box::pin(async move {
            let stream = TcpStream::connect(address).await?;
            let name = ServerName::try_from("localhost").expect("it is a name");
            Ok(TokioIo::new(TlsConnector::from(config).connect(name, stream).await?))
        })
    }
}

const GET: &[u8] = b"GET /v2 HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";

#[test]
fn http_is_answered_within_tls() {
    let private = start(Duration::from_secs(10));
    for protocols in [&["http/1.1"][..], &[]] {
        let mut stream = private.connect(private.client(protocols));
        stream.write_all(GET).expect("it is connected");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("it ends as TLS does");
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
        let agreed = stream.conn.alpn_protocol().map(<[u8]>::to_vec);
        assert_eq!(agreed, protocols.first().map(|protocol| protocol.as_bytes().to_vec()));
    }
    let mut both = private.connect(private.client(&["http/1.1", "h2"]));
    both.flush().expect("keys are agreed on");
    assert_eq!(both.conn.alpn_protocol(), Some(&b"h2"[..]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn grpc_is_answered_within_tls_on_both_ports() {
    let private = start(Duration::from_secs(10));
    let server = &private.served.server;
    for address in [server.address(), server.grpc_address().expect("it has one")] {
        let connector = Connector { address, config: Arc::new(private.client(&["h2"])) };
        let endpoint = Endpoint::from_shared(format!("http://{address}")).unwrap();
        let channel = endpoint.connect_with_connector(connector).await.expect("it connects");
        let mut client = GrpcInferenceServiceClient::new(channel);
        let answer = client.server_metadata(ServerMetadataRequest {}).await.unwrap();
        assert_eq!(answer.get_ref().name, "weft");
    }
}

#[test]
fn who_speaks_no_tls_is_not_answered_and_harms_nobody() {
    let private = start(Duration::from_secs(10));
    let mut plain = private.served.connect();
    plain.write_all(GET).expect("it is connected");
    let mut answer = Vec::new();
    plain.read_to_end(&mut answer).expect("it is closed, and not broken");
    assert!(!answer.starts_with(b"HTTP"), "{}", String::from_utf8_lossy(&answer));
    // One that trusts nobody gives up by itself.
    let mut doubtful = private.connect(client(RootCertStore::empty(), &[]));
    assert!(doubtful.write_all(GET).is_err());
    let mut trusting = private.connect(private.client(&["http/1.1"]));
    trusting.write_all(GET).expect("it is connected");
    let mut answer = String::new();
    trusting.read_to_string(&mut answer).expect("it ends as TLS does");
    assert!(answer.starts_with("HTTP/1.1 200"));
}

#[test]
fn who_does_not_agree_on_keys_in_time_is_not_waited_for() {
    let private = start(Duration::from_millis(100));
    // A record of a handshake begins, and nothing follows.
    for first in [&b""[..], b"\x16", b"\x16\x03\x01\x02\x00\x01"] {
        let mut silent = private.served.connect();
        silent.write_all(first).expect("it is connected");
        let mut rest = Vec::new();
        let ended = silent.read_to_end(&mut rest);
        let is_reset = |error: io::Error| error.kind() == io::ErrorKind::ConnectionReset;
        assert!(ended.map_or_else(is_reset, |_| true), "it is closed, whatever was sent");
    }
}
