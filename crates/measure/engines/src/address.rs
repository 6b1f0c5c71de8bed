//! The address of a database: place, user, password, name.

use std::fmt;
use std::path::PathBuf;

use workahead_workloads::session::SessionError;

use crate::tls::Tls;

/// A server, a user and a database.
#[derive(Clone, PartialEq, Eq)]
pub struct Address {
    /// Where it listens.
    pub place: Place,
    /// The user to log in as.
    pub user: String,
    /// The password, where the server requests one.
    pub password: Option<String>,
    /// The database.
    pub database: String,
    /// Settings of every session: names and values.
    pub settings: Vec<(String, String)>,
    /// Whether every session's transactions only read unless they say otherwise.
    pub read_only: bool,
    /// Whether names in texts are the server's own whatever a user, a database or a schema of it
    /// sets: for texts of ours, which a function of the same name would otherwise run in.
    pub own_names: bool,
    /// Whether the password may leave this machine as it is, if the server asks for it.
    pub cleartext: bool,
    /// How the connection is encrypted, unless it is a local socket's.
    pub tls: Tls,
}

/// Where a server listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// A socket in the file system.
    Socket(PathBuf),
    /// A host's name or address, and a port.
    Host(String, u16),
}

/// The refusal to send a password as it is.
pub(crate) fn in_clear(address: &Address) -> SessionError {
    let place = &address.place;
    SessionError::Failed(format!(
        "the server at {place} requests the password in clear, which others on the network could \
         read: enable TLS there (sslmode=require), connect through its socket, or give \
         --allow-cleartext"
    ))
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Socket(path) => write!(f, "{}", path.display()),
            Place::Host(host, port) if host.contains(':') => write!(f, "[{host}]:{port}"),
            Place::Host(host, port) => write!(f, "{host}:{port}"),
        }
    }
}

impl fmt::Debug for Address {
    /// Without the password, which errors must not show.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Address { place, user, database, .. } = self;
        write!(f, "{user} at {place}, database {database}")
    }
}
