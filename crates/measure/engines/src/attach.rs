//! A server that already runs, by its URL. Nothing of it is started, stopped or set; and nothing is
//! written without permission.
//!
//! ```text
//! postgres://USER[:PASSWORD]@HOST[:PORT]/DATABASE
//! postgres:///DATABASE?host=/run/postgresql
//! mysql://USER[:PASSWORD]@HOST[:PORT]/DATABASE
//! mysql:///DATABASE?socket=/run/mysqld/mysqld.sock
//! …?sslmode=verify-full&sslrootcert=FILE
//! ```
//!
//! Read-only is enforced in depth. Roles that can do more than read are named, superusers refused
//! ([`role`]); every text is a plain query of functions that only compute ([`query`]); the server
//! runs it in a transaction that reads only and is rolled back ([`read_only`]), in a session that
//! reads only by default.

pub mod password;
mod read_only;
mod role;
mod settings;
mod url;

use std::path::{Path, PathBuf};
use std::time::Instant;

use workahead_machine::process::peer;
use workahead_statements::query::{self, Functions};
use workahead_workloads::session::{Dialect, SessionError};

use crate::address::{Address, Place};
use crate::connector::{Connection, Connector};
use crate::server::{Error, own_name};
use crate::stream::{ANSWER_LIMIT, dial_socket};
use crate::tls::{Tls, TlsMode};
use crate::{mariadb, postgres};
use read_only::{Origin, ReadOnly};
pub(crate) use settings::tunes;
use url::Url;

/// The rights of clients on a server that is not ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Reading.
    ReadOnly,
    /// Reading and writing.
    Write,
}

/// The software behind a URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Software {
    /// PostgreSQL.
    Postgres,
    /// MariaDB, or MySQL.
    MariaDb,
}

impl Software {
    /// The dialect that it speaks.
    #[must_use]
    pub fn dialect(self) -> Dialect {
        match self {
            Software::Postgres => Dialect::Postgres,
            Software::MariaDb => Dialect::MariaDb,
        }
    }
}

/// A database of a server that runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// The software.
    pub software: Software,
    /// Where it is, and who connects.
    pub address: Address,
    /// The rights of clients there.
    pub access: Access,
    /// Whether the user may be a superuser.
    pub superuser: bool,
}

impl Target {
    /// Parses a URL. Superusers are refused at first.
    ///
    /// # Errors
    /// When it is not such a URL. The password is never in the error.
    pub fn parse(text: &str, access: Access) -> Result<Target, Error> {
        let mut url = Url::parse(text).map_err(Error::Url)?;
        let software = match url.scheme.as_str() {
            "postgres" | "postgresql" => Software::Postgres,
            "mysql" | "mariadb" => Software::MariaDb,
            other => {
                return Err(Error::Url(format!(
                    "unknown scheme `{other}://`: write postgres:// or mysql://"
                )));
            }
        };
        let mut address = address(&mut url, software).map_err(Error::Url)?;
        address.read_only = access == Access::ReadOnly;
        Ok(Target { software, address, access, superuser: false })
    }

    /// A URL without its password, and the password, decoded; `None` for one without.
    #[must_use]
    pub fn split_password(text: &str) -> Option<(String, String)> {
        url::split_password(text)
    }

    /// Of a server of ours, whose superuser the client is.
    pub(crate) fn ours(software: Software, address: Address) -> Target {
        Target { software, address, access: Access::Write, superuser: true }
    }

    /// Connects; where only reading is allowed, to a session that does nothing else.
    ///
    /// # Errors
    /// When nothing answers, or the server rejects the user.
    pub fn connect(&self) -> Result<Box<dyn Connection>, SessionError> {
        let mut functions = Functions::All;
        let opened = match self.software {
            Software::Postgres => self.open_postgres(),
            Software::MariaDb => mariadb::Connection::open(&self.address).map(|connection| {
                if connection.is_mysql() {
                    functions = Functions::OfMySql;
                }
                boxed(connection)
            }),
        };
        let connection = opened.map_err(|error| advise(error, &self.address))?;
        Ok(match self.access {
            Access::ReadOnly => Box::new(ReadOnly::new(connection, Origin::Outside(functions))),
            Access::Write => connection,
        })
    }

    /// The schemas in which a session of PostgreSQL looks for names.
    pub(crate) fn schemas(&self) -> Result<Vec<String>, SessionError> {
        let mut connection = postgres::Connection::open_briefly(&self.address)?;
        connection.texts("SELECT pg_catalog.unnest(pg_catalog.current_schemas(false))")
    }

    /// A session of PostgreSQL; for one that only reads, its own functions come first. The time
    /// limit of the login lasts until the server has said so.
    fn open_postgres(&self) -> Result<Box<dyn Connection>, SessionError> {
        let mut connection = postgres::Connection::open_briefly(&self.address)?;
        if self.access == Access::ReadOnly
            && let Some(first) = shadows(&connection.texts("SHOW search_path")?.concat())
        {
            let user = &self.address.user;
            return Err(SessionError::Failed(format!(
                "the search_path of `{user}` there has {first} before pg_catalog, whose functions \
                 others can then replace: ALTER ROLE or ALTER DATABASE … RESET search_path"
            )));
        }
        connection.lift_limit();
        Ok(boxed(connection))
    }

    /// Connects for texts of ours, settings and what the server says of itself, with a time limit
    /// for the login and all that follows. Names in them are the server's own.
    pub(crate) fn connect_briefly(&self) -> Result<Box<dyn Connection>, SessionError> {
        let address = Address { own_names: true, ..self.address.clone() };
        let opened = match self.software {
            Software::Postgres => postgres::Connection::open_briefly(&address).map(boxed),
            Software::MariaDb => mariadb::Connection::open_briefly(&address).map(boxed),
        };
        opened.map_err(|error| advise(error, &self.address))
    }

    /// Connects for texts of ours that are sent again and again, each in a transaction that reads
    /// only whatever else is allowed, with a time limit that
    /// [`limit_answers`](Connection::limit_answers) sets anew.
    pub(crate) fn connect_to_observe(&self) -> Result<Box<dyn Connection>, SessionError> {
        Ok(Box::new(ReadOnly::new(self.connect_briefly()?, Origin::Ours)))
    }

    /// The process behind a socket, if visible: the credentials of a connection are those of the
    /// listening process (unix(7), SO_PEERCRED).
    pub(crate) fn process(&self) -> Option<u32> {
        let Place::Socket(path) = &self.address.place else { return None };
        let stream = dial_socket(path, Instant::now() + ANSWER_LIMIT).ok();
        let pid = stream.and_then(|stream| peer::of(&stream));
        pid.filter(|pid| Path::new("/proc").join(pid.to_string()).exists())
    }

    /// Looks at the user's rights; in words what a user who shall only read could write.
    ///
    /// # Errors
    /// When the user is a superuser and must not be, or nothing answers.
    pub fn examine(&self) -> Result<Option<String>, SessionError> {
        role::examine(self)
    }

    /// The statements that create a user who can only read the database.
    #[must_use]
    pub fn read_only_role(&self) -> String {
        role::read_only(self)
    }
}

/// The schema that a search path has before the server's own, which is the first one unless it is
/// named (PostgreSQL manual, 5.9.5).
fn shadows(search_path: &str) -> Option<&str> {
    // In quotes, capitals make another name of it.
    let is_own = |part: &str| match part.trim() {
        quoted if quoted.starts_with('"') => quoted == "\"pg_catalog\"",
        plain => plain.eq_ignore_ascii_case("pg_catalog"),
    };
    let first = search_path.split(',').next()?;
    (search_path.split(',').any(is_own) && !is_own(first)).then(|| first.trim())
}

fn boxed(connection: impl Connection + 'static) -> Box<dyn Connection> {
    Box::new(connection)
}

/// A plain query of built-in functions that only compute, written anew; see [`query`].
pub(crate) fn check_query(text: &str, dialect: Dialect) -> Result<String, String> {
    query::check(text, dialect, Functions::All)
}

/// Adds the remedy to a refusal.
fn advise(error: SessionError, address: &Address) -> SessionError {
    let place = &address.place;
    match error {
        SessionError::Gone(says) => {
            let remedy = "is it running, and are host and port right?";
            SessionError::Gone(format!("{says}: {remedy}"))
        }
        SessionError::Failed(says)
            if says.contains("no encryption") || says.contains("(error 3159)") =>
        {
            SessionError::Failed(format!(
                "the server at {place} lets `{}` in with TLS only, and this connection is without: \
                 enable TLS there and give sslmode=require, or let the user in without",
                address.user
            ))
        }
        SessionError::Failed(says) if says.contains(password::NOT_USED) => {
            SessionError::Failed(format!(
                "{place} refuses: {says}: give the password in {} or ~/.my.cnf",
                password::VARIABLE
            ))
        }
        // Ours, with its own remedy.
        SessionError::Failed(says) if says.starts_with("the server ") => SessionError::Failed(says),
        SessionError::Failed(says) => SessionError::Failed(format!("{place} refuses: {says}")),
        other => other,
    }
}

impl Connector for Target {
    fn open(&self) -> Result<Box<dyn Connection>, SessionError> {
        self.connect()
    }
}

/// Names in URLs that differ between the dialects.
struct UrlDialect {
    port: u16,
    /// The parameter that names a socket.
    socket: &'static str,
    /// The socket's name in the directory that is given, when that is a directory.
    socket_name: Option<fn(u16) -> String>,
    /// Where packages put the socket.
    usual: &'static str,
}

const POSTGRES: UrlDialect = UrlDialect {
    port: postgres::PORT,
    socket: "host",
    socket_name: Some(postgres::socket_name),
    usual: "/run/postgresql/.s.PGSQL.5432",
};

const MARIADB: UrlDialect = UrlDialect {
    port: mariadb::PORT,
    socket: "socket",
    socket_name: None,
    usual: "/run/mysqld/mysqld.sock",
};

fn address(url: &mut Url, software: Software) -> Result<Address, String> {
    let words = match software {
        Software::Postgres => POSTGRES,
        Software::MariaDb => MARIADB,
    };
    let tls = tls(url)?;
    let place = place(url, &words)?;
    if let Some((name, _)) = url.parameters.first() {
        return Err(format!("unknown parameter `{name}` in the URL: leave it out"));
    }
    let user =
        url.user.take().filter(|user| !user.is_empty()).or_else(own_name).ok_or_else(|| {
            let scheme = &url.scheme;
            format!("the URL names no user: write {scheme}://USER@HOST/DATABASE")
        })?;
    let database = std::mem::take(&mut url.path);
    if database.is_empty() {
        return Err(format!("the URL names no database: write {}://…/DATABASE", url.scheme));
    }
    let (password, settings) = (url.password.take(), Vec::new());
    let (read_only, own_names, cleartext) = (false, false, false);
    Ok(Address { place, user, password, database, settings, read_only, own_names, cleartext, tls })
}

/// The parameters of encryption, by libpq's names or those of MySQL's client.
fn tls(url: &mut Url) -> Result<Tls, String> {
    let mode = url.take("sslmode").or_else(|| url.take("ssl-mode"));
    let roots = url.take("sslrootcert").or_else(|| url.take("ssl-ca"));
    let parsed = mode.as_deref().map(|word| {
        TlsMode::parse(word).ok_or_else(|| {
            format!(
                "`sslmode={word}` is unknown: write disable, prefer, require, verify-ca or \
                 verify-full"
            )
        })
    });
    let mode = parsed.transpose()?.unwrap_or_default();
    let Some(file) = roots else { return Ok(Tls { mode, roots: None }) };
    let mode = match mode {
        // libpq's meaning of the two together.
        TlsMode::Require => TlsMode::VerifyCa,
        mode => mode,
    };
    if mode < TlsMode::VerifyCa {
        return Err(format!(
            "`sslrootcert={file}` verifies nothing without a mode that does: add \
             sslmode=verify-full"
        ));
    }
    // libpq's word for the system's.
    let roots = Some(PathBuf::from(file)).filter(|file| file != Path::new("system"));
    Ok(Tls { mode, roots })
}

/// The host, or the socket that a parameter names; the usual ones when neither is given.
fn place(url: &mut Url, words: &UrlDialect) -> Result<Place, String> {
    let parameter = words.socket;
    let port = url.port.unwrap_or(words.port);
    let Some(path) = url.take(parameter) else {
        let usual = Path::new(words.usual);
        return Ok(match url.host.as_str() {
            "" if url.port.is_none() && usual.exists() => Place::Socket(usual.to_owned()),
            "" => Place::Host("localhost".to_owned(), port),
            host => Place::Host(host.to_owned(), port),
        });
    };
    if !path.starts_with('/') {
        return Err(format!("`{parameter}={path}` is not a path: begin it with a slash"));
    }
    let path = PathBuf::from(path);
    // The name has the port in it, and may be given with the directory or without.
    Ok(Place::Socket(match words.socket_name.map(|name| name(port)) {
        Some(name) if path.file_name().is_none_or(|given| given != name.as_str()) => {
            path.join(name)
        }
        _ => path,
    }))
}

#[cfg(test)]
mod tests;
