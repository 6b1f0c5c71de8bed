//! How far a server's certificate is verified: nothing, the chain, or the chain and the name.
//!
//! The signatures of the handshake are checked always. They prove that the server has the key of
//! the certificate that it shows, on which channel binding rests even where any certificate will
//! do.

use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::verify_server_name;
use rustls::crypto::{
    CryptoProvider, WebPkiSupportedAlgorithms, verify_tls12_signature,
    verify_tls13_signature_with_raw_key,
};
use rustls::pki_types::{CertificateDer, ServerName, SubjectPublicKeyInfoDer, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use workahead_workloads::session::SessionError;

use super::{Tls, TlsMode, certificate, roots};

/// The verifier of a mode.
#[derive(Debug)]
pub(super) struct Verifier {
    algorithms: WebPkiSupportedAlgorithms,
    /// Of the modes that verify.
    trust: Option<Trust>,
}

#[derive(Debug)]
struct Trust {
    chain: Arc<WebPkiServerVerifier>,
    /// Trusted as they are: a server's own certificate may be in the file (libpq too allows it).
    themselves: Vec<CertificateDer<'static>>,
    /// Whether the name has to be the host's.
    name: bool,
}

impl Verifier {
    pub(super) fn new(tls: &Tls, provider: &Arc<CryptoProvider>) -> Result<Verifier, SessionError> {
        let algorithms = provider.signature_verification_algorithms;
        if tls.mode < TlsMode::VerifyCa {
            return Ok(Verifier { algorithms, trust: None });
        }
        let themselves = roots::read(tls.roots.as_deref())?;
        let mut store = RootCertStore::empty();
        // A system's bundle may have some that are not well-formed.
        store.add_parsable_certificates(themselves.iter().cloned());
        let chain =
            WebPkiServerVerifier::builder_with_provider(Arc::new(store), Arc::clone(provider))
                .build()
                .map_err(|error| {
                    SessionError::Failed(format!(
                        "no root certificate is usable ({error}): name another PEM file, \
                         sslrootcert=FILE"
                    ))
                })?;
        let themselves = tls.roots.as_ref().map_or_else(Vec::new, |_| themselves);
        let name = tls.mode == TlsMode::VerifyFull;
        Ok(Verifier { algorithms, trust: Some(Trust { chain, themselves, name }) })
    }
}

impl Trust {
    fn verify(
        &self,
        server: &CertificateDer<'_>,
        between: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        now: UnixTime,
    ) -> Result<(), Error> {
        let verified = self.chain.verify_server_cert(server, between, name, &[], now);
        if self.themselves.iter().any(|trusted| trusted == server) {
            // One that can be read has its dates looked at before what it lacks as another's child.
            let certificate = ParsedCertificate::try_from(server)?;
            return match verified {
                Err(error) if is_out_of_date(&error) => Err(error),
                _ if self.name => verify_server_name(&certificate, name),
                _ => Ok(()),
            };
        }
        match verified {
            // The name is the last thing to be looked at: all else is as it should be.
            Err(Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) if !self.name => Ok(()),
            // An authority of that name with another key, as one that was made anew.
            Err(Error::InvalidCertificate(CertificateError::BadSignature)) => {
                Err(CertificateError::UnknownIssuer.into())
            }
            verified => verified.map(drop),
        }
    }
}

fn is_out_of_date(error: &Error) -> bool {
    use CertificateError::{Expired, ExpiredContext, NotValidYet, NotValidYetContext};
    let Error::InvalidCertificate(error) = error else { return false };
    matches!(error, Expired | ExpiredContext { .. } | NotValidYet | NotValidYetContext { .. })
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        server: &CertificateDer<'_>,
        between: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if let Some(trust) = &self.trust {
            trust.verify(server, between, name, now)?;
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        server: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, server, signed, &self.algorithms)
    }

    /// By the key alone: certificates of X.509 version 1, which `openssl x509 -req` made for years
    /// and rustls does not parse, are common where none is verified.
    fn verify_tls13_signature(
        &self,
        message: &[u8],
        server: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let key = certificate::key(server)
            .ok_or(Error::InvalidCertificate(CertificateError::BadEncoding))?;
        let key = SubjectPublicKeyInfoDer::from(key);
        verify_tls13_signature_with_raw_key(message, &key, signed, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}
