//! Certificates of authorities that are trusted: of a file, or the system's.

use std::path::{Path, PathBuf};

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use workahead_workloads::session::SessionError;

/// Where systems keep them in one file: Debian, Fedora, openSUSE, Alpine. They are few, so that
/// no crate is needed to know them.
const SYSTEM: &[&str] = &[
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

/// The certificates of a file, or of the system.
pub(super) fn read(file: Option<&Path>) -> Result<Vec<CertificateDer<'static>>, SessionError> {
    let path = file.map_or_else(system, |file| Ok(file.to_owned()))?;
    let failed = |error: &dyn std::fmt::Display| {
        let path = path.display();
        SessionError::Failed(format!(
            "can't read root certificates of `{path}` ({error}): name a PEM file, sslrootcert=FILE"
        ))
    };
    let all = CertificateDer::pem_file_iter(&path).map_err(|error| failed(&error))?;
    let all = all.collect::<Result<Vec<_>, _>>().map_err(|error| failed(&error))?;
    if all.is_empty() {
        return Err(failed(&"it has none"));
    }
    Ok(all)
}

fn system() -> Result<PathBuf, SessionError> {
    // OpenSSL's variable, which people set for the same purpose.
    let named = std::env::var_os("SSL_CERT_FILE").map(PathBuf::from);
    let usual = SYSTEM.iter().map(PathBuf::from);
    named.into_iter().chain(usual).find(|path| path.exists()).ok_or_else(|| {
        let says = "this system has no root certificates: install ca-certificates, or name a PEM \
                    file, sslrootcert=FILE";
        SessionError::Failed(says.to_owned())
    })
}
