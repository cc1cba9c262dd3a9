//! TLS: connections that nobody else can read, by certificates that are read again when their files change.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use rustls::ServerConfig;
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::{Error as PemError, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use weft_repository::TlsFiles;

use crate::connection::Protocols;
use crate::error::StartError;

/// The longest file of certificates or of a key that is read.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// How long to wait between two looks at the files.
const LOOK_INTERVAL: Duration = Duration::from_secs(10);

/// How long whoever speaks no TLS has for the last bytes.
const FAREWELL: Duration = Duration::from_secs(1);

const HTTP_1: &[u8] = b"http/1.1";
const HTTP_2: &[u8] = b"h2";

/// How connections are made private.
pub(crate) struct Tls {
    either: TlsAcceptor,
    grpc_only: TlsAcceptor,
    certificates: Arc<Certificates>,
}

impl Tls {
    /// With the certificates of these files.
    pub(crate) fn open(files: &TlsFiles) -> Result<Self, StartError> {
        let provider = Arc::new(ring::default_provider());
        let certificates = Arc::new(Certificates::read(files, provider.clone())?);
        let acceptor = |protocols: &[&[u8]]| {
            let builder = ServerConfig::builder_with_provider(provider.clone());
            let builder = builder.with_safe_default_protocol_versions();
            let builder = builder.map_err(|error| problem(&files.certificate, error))?;
            let builder = builder.with_no_client_auth();
            let mut config = builder.with_cert_resolver(certificates.clone());
            config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
            Ok::<_, StartError>(TlsAcceptor::from(Arc::new(config)))
        };
        let (either, grpc_only) = (acceptor(&[HTTP_2, HTTP_1])?, acceptor(&[HTTP_2])?);
        Ok(Self { either, grpc_only, certificates })
    }

    /// Agrees with a client on keys; `None` where that takes too long or the client speaks something else.
    pub(crate) async fn accept(
        &self,
        stream: TcpStream,
        protocols: Protocols,
        patience: Duration,
    ) -> Option<TlsStream<TcpStream>> {
        let acceptor = match protocols {
            Protocols::HttpAndGrpc => &self.either,
            Protocols::GrpcOnly => &self.grpc_only,
        };
        match timeout(patience, acceptor.accept(stream).into_fallible()).await {
            Ok(Ok(stream)) => Some(stream),
            Ok(Err((_, mut stream))) => {
                let _ = timeout(FAREWELL, stream.shutdown()).await;
                None
            }
            Err(_) => None,
        }
    }

    /// Takes up certificates as they change, forever. What cannot be used changes nothing.
    pub(crate) async fn follow_files(self: Arc<Self>) {
        loop {
            sleep(LOOK_INTERVAL).await;
            let certificates = self.certificates.clone();
            match tokio::task::spawn_blocking(move || certificates.read_again()).await {
                Ok(Ok(true)) => tracing::info!("the certificate is a new one"),
                Ok(Ok(false)) | Err(_) => {}
                Ok(Err(error)) => tracing::warn!(%error, "the certificate stays the one before"),
            }
        }
    }
}

/// A certificate with its key, as its files have it.
#[derive(Debug)]
struct Certificates {
    files: TlsFiles,
    provider: Arc<CryptoProvider>,
    current: ArcSwap<CertifiedKey>,
    /// The texts that were looked at last.
    seen: Mutex<Texts>,
}

/// What the files of certificates and of the key hold.
#[derive(PartialEq, Eq)]
struct Texts {
    certificate: Vec<u8>,
    key: Vec<u8>,
}

impl std::fmt::Debug for Texts {
    /// A key is shown to nobody.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Texts")
    }
}

impl Certificates {
    fn read(files: &TlsFiles, provider: Arc<CryptoProvider>) -> Result<Self, StartError> {
        let texts = read(files)?;
        let current = ArcSwap::from_pointee(certified(files, &texts, &provider)?);
        Ok(Self { files: files.clone(), provider, current, seen: Mutex::new(texts) })
    }

    /// True where the files hold something else than they did, and that is used from now on.
    fn read_again(&self) -> Result<bool, StartError> {
        let texts = read(&self.files)?;
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if *seen == texts {
            return Ok(false);
        }
        let read = certified(&self.files, &texts, &self.provider);
        *seen = texts;
        self.current.store(Arc::new(read?));
        Ok(true)
    }
}

impl ResolvesServerCert for Certificates {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.current.load_full())
    }
}

fn read(files: &TlsFiles) -> Result<Texts, StartError> {
    let text = |file: &Path| read_text(file).map_err(|error| problem(file, error));
    Ok(Texts { certificate: text(&files.certificate)?, key: text(&files.key)? })
}

fn read_text(file: &Path) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    File::open(file)?.take(MAX_FILE_BYTES).read_to_end(&mut text)?;
    Ok(text)
}

fn certified(
    files: &TlsFiles,
    texts: &Texts,
    provider: &CryptoProvider,
) -> Result<CertifiedKey, StartError> {
    let chain: Vec<_> = CertificateDer::pem_slice_iter(&texts.certificate)
        .collect::<Result<_, PemError>>()
        .map_err(|error| problem(&files.certificate, error))?;
    if chain.is_empty() {
        return Err(problem(&files.certificate, "it holds no certificate in PEM"));
    }
    let key = PrivateKeyDer::from_pem_slice(&texts.key).map_err(|error| match error {
        PemError::NoItemsFound => problem(&files.key, "it holds no private key in PEM"),
        error => problem(&files.key, error),
    })?;
    CertifiedKey::from_der(chain, key, provider).map_err(|error| match error {
        rustls::Error::InvalidCertificate(_) => problem(&files.certificate, error),
        rustls::Error::InconsistentKeys(_) => {
            problem(&files.key, format!("it is not the key of {}", files.certificate.display()))
        }
        error => problem(&files.key, error),
    })
}

fn problem(file: &Path, problem: impl ToString) -> StartError {
    StartError::Tls { file: file.to_path_buf(), problem: problem.to_string() }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use rcgen::{CertifiedKey as Generated, KeyPair, generate_simple_self_signed};
    use tempfile::TempDir;

    use super::*;

    fn generated() -> Generated<KeyPair> {
        generate_simple_self_signed(["localhost".to_string()]).unwrap()
    }

    fn put(folder: &TempDir, certificate: &str, key: &str) -> TlsFiles {
        let file = |name| folder.path().join(name);
        let files = TlsFiles { certificate: file("chain.pem"), key: file("key.pem") };
        fs::write(&files.certificate, certificate).unwrap();
        fs::write(&files.key, key).unwrap();
        files
    }

    #[test]
    fn what_is_wrong_is_said_with_its_file() {
        let folder = tempfile::tempdir().unwrap();
        let (one, other) = (generated(), generated());
        let (certificate, key) = (one.cert.pem(), one.signing_key.serialize_pem());
        assert!(Tls::open(&put(&folder, &certificate, &key)).is_ok());
        let torn = &certificate[..certificate.len() / 2];
        let other = other.signing_key.serialize_pem();
        for (certificate, key, file, says) in [
            ("", &*key, "chain.pem", "no certificate"),
            (&*key, &key, "chain.pem", "no certificate"),
            (torn, &key, "chain.pem", ""),
            (&certificate, "", "key.pem", "no private key"),
            (&certificate, &certificate, "key.pem", "no private key"),
            (&certificate, &other, "key.pem", "not the key of"),
        ] {
            let Err(error) = Tls::open(&put(&folder, certificate, key)) else {
                panic!("{file}: {says}")
            };
            let error = error.to_string();
            assert!(error.contains(file) && error.contains(says), "{error}: {file}, {says}");
        }
        fs::remove_file(folder.path().join("key.pem")).unwrap();
        let files = TlsFiles {
            certificate: folder.path().join("chain.pem"),
            key: folder.path().join("key.pem"),
        };
        assert!(Tls::open(&files).is_err());
    }

    #[test]
    fn certificates_are_taken_up_as_their_files_change() {
        let folder = tempfile::tempdir().unwrap();
        let (one, other) = (generated(), generated());
        let files = put(&folder, &one.cert.pem(), &one.signing_key.serialize_pem());
        let certificates = Tls::open(&files).unwrap().certificates;
        let served = || certificates.current.load().cert[0].to_vec();
        assert!(!certificates.read_again().unwrap());
        // Between the two files the pair does not fit.
        put(&folder, &other.cert.pem(), &one.signing_key.serialize_pem());
        assert!(certificates.read_again().is_err());
        assert_eq!(served(), one.cert.der().to_vec());
        put(&folder, &other.cert.pem(), &other.signing_key.serialize_pem());
        assert!(certificates.read_again().unwrap());
        assert_eq!(served(), other.cert.der().to_vec());
    }
}
