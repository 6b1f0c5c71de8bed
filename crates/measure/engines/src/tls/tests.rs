//! Certificates made on the spot, and handshakes with a server that has them.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::thread::JoinHandle;

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair, PublicKeyData};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{ServerConfig, ServerConnection};
use tempfile::TempDir;

use super::*;
use crate::stream::Stream;

/// An authority, and the file of its certificate.
pub(crate) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    directory: TempDir,
}

/// A server's certificate and key.
pub(crate) struct ServerIdentity {
    pub(crate) certificate: CertificateDer<'static>,
    pub(crate) key_info: Vec<u8>,
    pem: String,
    key: Vec<u8>,
}

impl Authority {
    pub(crate) fn new() -> Authority {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let directory = tempfile::tempdir().unwrap();
        let own = params.self_signed(&key).unwrap();
        std::fs::write(directory.path().join("ca.pem"), own.pem()).unwrap();
        Authority { issuer: Issuer::new(params, key), directory }
    }

    /// Its own certificate, used as a server's.
    fn own(&self) -> ServerIdentity {
        let key = self.issuer.key();
        let pem = std::fs::read_to_string(self.file()).unwrap();
        ServerIdentity {
            certificate: CertificateDer::from_pem_slice(pem.as_bytes()).unwrap(),
            key_info: key.subject_public_key_info(),
            pem,
            key: key.serialize_der(),
        }
    }

    pub(crate) fn file(&self) -> PathBuf {
        self.directory.path().join("ca.pem")
    }

    pub(crate) fn server(&self, name: &str) -> ServerIdentity {
        self.certify(CertificateParams::new(vec![name.to_owned()]).unwrap())
    }

    fn certify(&self, params: CertificateParams) -> ServerIdentity {
        let key = KeyPair::generate().unwrap();
        let signed = params.signed_by(&key, &self.issuer).unwrap();
        ServerIdentity {
            certificate: signed.der().clone(),
            key_info: key.subject_public_key_info(),
            pem: signed.pem(),
            key: key.serialize_der(),
        }
    }
}

impl ServerIdentity {
    /// The server's side of a connection.
    pub(crate) fn accept(&self) -> ServerConnection {
        let key = PrivateKeyDer::try_from(self.key.clone()).unwrap();
        let provider = Arc::new(default_provider());
        let key = provider.key_provider.load_private_key(key).unwrap();
        let shown = CertifiedKey::new(vec![self.certificate.clone()], key);
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_cert_resolver(Arc::new(SingleCertAndKey::from(shown)));
        ServerConnection::new(Arc::new(config)).unwrap()
    }
}

/// A server on a port that serves one client.
pub(crate) fn serve<T: Send + 'static>(
    serve: impl FnOnce(TcpStream) -> T + Send + 'static,
) -> (u16, JoinHandle<T>) {
    serve_at("127.0.0.1", serve)
}

pub(crate) fn serve_at<T: Send + 'static>(
    host: &str,
    serve: impl FnOnce(TcpStream) -> T + Send + 'static,
) -> (u16, JoinHandle<T>) {
    let listener = TcpListener::bind((host, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    (port, std::thread::spawn(move || serve(listener.accept().unwrap().0)))
}

pub(crate) fn address(host: &str, port: u16, tls: Tls) -> Address {
    Address {
        place: Place::Host(host.to_owned(), port),
        user: "ada".to_owned(),
        password: Some("secret".to_owned()),
        database: "shop".to_owned(),
        settings: Vec::new(),
        read_only: false,
        own_names: false,
        cleartext: false,
        tls,
    }
}

/// Sends and receives 1 MB over an encrypted connection to a server with this certificate.
fn exchange(server: ServerIdentity, host: &str, tls: Tls) -> Result<(), SessionError> {
    let (port, served) = serve(move |mut socket| {
        let mut tls = server.accept();
        let mut stream = rustls::Stream::new(&mut tls, &mut socket);
        let mut bytes = vec![0; 1 << 20];
        stream.read_exact(&mut bytes)?;
        stream.write_all(&bytes)
    });
    let address = address(host, port, tls);
    let encrypted = Stream::dial(&address.place).and_then(|mut stream| {
        assert!(!stream.is_encrypted());
        stream.encrypt(&address)?;
        assert!(stream.is_encrypted() && stream.is_confidential() && !stream.is_local());
        let bytes: Vec<u8> = (0..1 << 20).map(|at| (at / 7) as u8).collect();
        stream.send(&bytes)?;
        // In pieces, as messages come.
        for piece in bytes.chunks(300_000) {
            assert!(stream.take(piece.len())? == piece);
        }
        Ok(())
    });
    let served = served.join().unwrap();
    assert_eq!(served.is_ok(), encrypted.is_ok(), "{served:?} {encrypted:?}");
    encrypted
}

fn refused(server: ServerIdentity, host: &str, tls: Tls) -> String {
    let says = exchange(server, host, tls).unwrap_err().to_string();
    assert!(says.starts_with("the server at ") && !says.contains('\n'), "{says}");
    says
}

#[test]
fn each_mode_verifies_what_it_says() {
    let (ours, other) = (Authority::new(), Authority::new());
    let tls = |mode, roots: &Authority| Tls { mode, roots: Some(roots.file()) };
    for mode in [TlsMode::Prefer, TlsMode::Require] {
        exchange(other.server("b.example"), "localhost", Tls { mode, roots: None }).unwrap();
    }
    exchange(ours.server("b.example"), "localhost", tls(TlsMode::VerifyCa, &ours)).unwrap();
    exchange(ours.server("localhost"), "localhost", tls(TlsMode::VerifyFull, &ours)).unwrap();
    exchange(ours.server("127.0.0.1"), "127.0.0.1", tls(TlsMode::VerifyFull, &ours)).unwrap();

    for mode in [TlsMode::VerifyCa, TlsMode::VerifyFull] {
        let says = refused(other.server("localhost"), "localhost", tls(mode, &ours));
        assert!(says.contains("an authority that is not in `"), "{says}");
        assert!(says.ends_with("sslrootcert=FILE"), "{says}");
    }
    let says = refused(ours.server("b.example"), "localhost", tls(TlsMode::VerifyFull, &ours));
    assert!(says.contains("not for `localhost` but for b.example:"), "{says}");
    assert!(says.ends_with("or give sslmode=verify-ca"), "{says}");
}

#[test]
fn version_1_is_good_enough_where_nothing_is_verified() {
    let authority = Authority::new();
    let server = || {
        let mut server = authority.server("localhost");
        server.certificate = certificate::version_1(&server.certificate).into();
        server
    };
    exchange(server(), "localhost", Tls { mode: TlsMode::Require, roots: None }).unwrap();
    let tls = Tls { mode: TlsMode::VerifyCa, roots: Some(authority.file()) };
    let says = refused(server(), "localhost", tls);
    assert!(says.contains("X.509 version 1, which names no host: make one of version 3"), "{says}");
}

#[test]
fn a_servers_own_certificate_may_be_trusted() {
    let authority = Authority::new();
    let server = authority.server("localhost");
    let file = authority.directory.path().join("server.pem");
    std::fs::write(&file, &server.pem).unwrap();
    let tls = |mode| Tls { mode, roots: Some(file.clone()) };
    exchange(server, "localhost", tls(TlsMode::VerifyFull)).unwrap();
    for other in [authority.server("localhost"), authority.own()] {
        let says = refused(other, "localhost", tls(TlsMode::VerifyCa));
        assert!(says.contains("an authority that is not in"), "{says}");
    }
    let mut expired = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    expired.not_after = rcgen::date_time_ymd(2020, 1, 1);
    let expired = authority.certify(expired);
    std::fs::write(&file, &expired.pem).unwrap();
    let says = refused(expired, "localhost", tls(TlsMode::VerifyCa));
    assert!(says.contains("expired"), "{says}");
}

#[test]
fn wrong_root_files_are_one_line() {
    let directory = tempfile::tempdir().unwrap();
    let empty = directory.path().join("empty");
    std::fs::write(&empty, "").unwrap();
    for roots in [empty, directory.path().join("none")] {
        let tls = Tls { mode: TlsMode::VerifyFull, roots: Some(roots) };
        let says = client(&address("localhost", 1, tls)).unwrap_err().to_string();
        assert!(says.starts_with("can't read root certificates of `"), "{says}");
        assert!(says.ends_with("sslrootcert=FILE") && !says.contains('\n'), "{says}");
    }
}

#[test]
fn bytes_ahead_of_the_handshake_are_refused() {
    let (port, served) = serve(|mut socket| socket.write_all(b"Sx"));
    let address = address("localhost", port, Tls::default());
    let mut stream = Stream::dial(&address.place).unwrap();
    served.join().unwrap().unwrap();
    assert_eq!(stream.peek(2).unwrap(), b"Sx");
    stream.take(1).unwrap();
    let says = stream.encrypt(&address).unwrap_err().to_string();
    assert!(says.contains("sent bytes ahead of the TLS handshake"), "{says}");
}

#[test]
fn a_server_without_tls_is_one_line() {
    let (port, served) = serve(|mut socket| socket.write_all(b"HTTP/1.1 400 Bad Request\r\n"));
    let address = address("localhost", port, Tls::default());
    let mut stream = Stream::dial(&address.place).unwrap();
    let says = stream.encrypt(&address).unwrap_err().to_string();
    served.join().unwrap().unwrap();
    assert!(says.contains("but the handshake failed"), "{says}");
}
