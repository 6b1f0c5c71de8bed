//! Encryption of connections (TLS 1.2 and 1.3): whether it is used, and how far the server's
//! certificate is verified.
//!
//! ```text
//! mode          without TLS at the server   certificate
//! disable       never encrypted
//! prefer        in clear                    any: protects from listeners only
//! require       refused                     any
//! verify-ca     refused                     signed by an authority that is trusted
//! verify-full   refused                     that, and made for the host's name
//! ```
//!
//! The modes are libpq's, and MySQL's client has the same under other names. Unlike libpq, a
//! handshake that fails is not followed by an attempt in clear: that would hide the failure.

mod certificate;
mod roots;
mod verifier;

use std::path::PathBuf;
use std::sync::Arc;

use rustls::crypto::ring::default_provider;
use rustls::pki_types::ServerName;
use rustls::{CertificateError, ClientConfig, ClientConnection, Error};
use workahead_workloads::session::SessionError;

use crate::address::{Address, Place};
pub(crate) use certificate::end_point;
use verifier::Verifier;

/// How a connection is encrypted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tls {
    /// Whether it is, and what is verified.
    pub mode: TlsMode,
    /// A file of trusted certificates (PEM), in place of the system's.
    pub roots: Option<PathBuf>,
}

/// Whether a connection is encrypted, and what is verified.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum TlsMode {
    /// Never encrypted.
    Disable,
    /// Encrypted if the server can, its certificate not verified.
    #[default]
    Prefer,
    /// Encrypted, the certificate not verified.
    Require,
    /// The certificate is signed by a trusted authority.
    VerifyCa,
    /// It is also made for the name of the host.
    VerifyFull,
}

impl TlsMode {
    /// Parses libpq's words, and those of MySQL's client.
    pub(crate) fn parse(word: &str) -> Option<TlsMode> {
        Some(match word.to_ascii_lowercase().replace('_', "-").as_str() {
            "disable" | "disabled" => TlsMode::Disable,
            // libpq's `allow` tries without first; nothing speaks for that order.
            "allow" | "prefer" | "preferred" => TlsMode::Prefer,
            "require" | "required" => TlsMode::Require,
            "verify-ca" => TlsMode::VerifyCa,
            "verify-full" | "verify-identity" => TlsMode::VerifyFull,
            _ => return None,
        })
    }
}

impl Address {
    /// Whether to request encryption. A local socket is never encrypted: nobody can listen.
    pub(crate) fn wants_tls(&self) -> bool {
        self.tls.mode != TlsMode::Disable && matches!(self.place, Place::Host(..))
    }

    /// Goes on without encryption, if that is allowed.
    pub(crate) fn without_tls(&self) -> Result<(), SessionError> {
        if self.tls.mode <= TlsMode::Prefer || !self.wants_tls() {
            return Ok(());
        }
        let place = &self.place;
        Err(SessionError::Failed(format!(
            "the server at {place} has no TLS: enable it there, or give sslmode=prefer to connect \
             in clear"
        )))
    }
}

/// The client's side of an encrypted connection, before its handshake.
pub(crate) fn client(address: &Address) -> Result<ClientConnection, SessionError> {
    let provider = Arc::new(default_provider());
    let verifier = Verifier::new(&address.tls, &provider)?;
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| refusal(&error, address))?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_no_client_auth();
    ClientConnection::new(Arc::new(config), server_name(address)?)
        .map_err(|error| refusal(&error, address))
}

/// The name for which the certificate has to be made.
fn server_name(address: &Address) -> Result<ServerName<'static>, SessionError> {
    let host = match &address.place {
        Place::Host(host, _) => host.as_str(),
        Place::Socket(_) => "localhost",
    };
    match ServerName::try_from(host.to_owned()) {
        Ok(name) => Ok(name),
        Err(_) if address.tls.mode == TlsMode::VerifyFull => Err(SessionError::Failed(format!(
            "no certificate can be made for the name `{host}`: give sslmode=verify-ca"
        ))),
        // An address is not sent as the name of the host.
        Err(_) => Ok(ServerName::IpAddress(std::net::Ipv4Addr::UNSPECIFIED.into())),
    }
}

/// The refusal of a server whose handshake failed, with the remedy.
pub(crate) fn refusal(error: &Error, address: &Address) -> SessionError {
    use CertificateError::{
        Expired, ExpiredContext, NotValidForName, NotValidForNameContext, UnknownIssuer,
    };
    let place = &address.place;
    // webpki's errors have no type here, but names.
    let is = |name| error.to_string().contains(name);
    SessionError::Failed(match error {
        // A server that is its own authority, too.
        Error::InvalidCertificate(certificate)
            if *certificate == UnknownIssuer || is("CaUsedAsEndEntity") =>
        {
            let trusted = match &address.tls.roots {
                Some(file) => format!("`{}`", file.display()),
                None => "this system's root certificates".to_owned(),
            };
            format!(
                "the server at {place} has a certificate of an authority that is not in \
                 {trusted}: name the file of the right one, sslrootcert=FILE"
            )
        }
        Error::InvalidCertificate(_) if is("UnsupportedCertVersion") => format!(
            "the server at {place} has a certificate of X.509 version 1, which names no host: make \
             one of version 3 with a subjectAltName, or give sslmode=require to connect without \
             verification"
        ),
        Error::InvalidCertificate(NotValidForName) => other_name(address, ""),
        Error::InvalidCertificate(NotValidForNameContext { presented, .. }) => {
            let known = match presented.is_empty() {
                true => " but for no name at all (subjectAltName)".to_owned(),
                false => format!(" but for {}", names(presented)),
            };
            other_name(address, &known)
        }
        Error::InvalidCertificate(Expired | ExpiredContext { .. }) => {
            format!("the server at {place} has a certificate that has expired: renew it there")
        }
        Error::InvalidCertificate(error) => format!(
            "the server at {place} has a certificate that is refused ({error}): replace it there, \
             or give sslmode=require to connect without verification"
        ),
        error => format!(
            "the server at {place} offers TLS, but the handshake failed ({error}): it needs TLS \
             1.2 or later; sslmode=disable connects in clear"
        ),
    })
}

/// Of names such as `DnsName("db.example")`, the part that people know.
fn names(presented: &[String]) -> String {
    let name = |shown: &String| {
        let inner = shown.split_once('(').and_then(|(_, rest)| rest.strip_suffix(')'));
        inner.unwrap_or(shown).trim_matches('"').to_owned()
    };
    presented.iter().map(name).collect::<Vec<_>>().join(", ")
}

fn other_name(address: &Address, names: &str) -> String {
    let (host, place) = match &address.place {
        Place::Host(host, _) => (host.as_str(), &address.place),
        place => ("", place),
    };
    format!(
        "the server at {place} has a certificate that is not for `{host}`{names}: connect by a \
         name that it has, or give sslmode=verify-ca"
    )
}

#[cfg(test)]
pub(crate) mod tests;
