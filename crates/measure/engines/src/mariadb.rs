//! MariaDB: a private server of an installed version, and a client for it.
//!
//! ```text
//! start ─► mariadb-install-db once ─► mariadbd ─► connect ─► tables, rows ─► keep as a template
//!                                       ▲                                      │ restore
//!                                       └── the data directory, copied back ◄──┘
//! ```
//!
//! A template is a copy of the whole data directory of a stopped server: InnoDB has no other way to
//! restore a database with its pages in their places.

mod answer;
mod bulk;
mod connection;
mod connector;
mod explain;
mod login;
mod refusal;
mod row;
mod statement;
mod wire;

pub use bulk::Bulk;
pub use connection::{Canceller, Connection};

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use workahead_machine::scheduling::Policy;
use workahead_study::engine::Stop;
use workahead_workloads::session::{Session, SessionError};

use crate::address::{Address, Place};
use crate::attach::{Software, Target};
use crate::bounded_texts::BoundedTexts;
use crate::server::{
    Error, Home, Launch, Options, Probe, Process, Product, Program, Settings, check, remove,
    run_to_end,
};
use crate::tls::Tls;

const PRODUCT: Product = Product {
    name: "MariaDB",
    program: "mariadbd",
    oldest: ("10.11", [10, 11]),
    install: "`apt-get install mariadb-server`, or your distribution's package of the server",
    folders: &["/usr/sbin", "/usr/libexec", "/usr/bin", "/usr/local/sbin", "/usr/local/mysql/bin"],
    users: &["mysql"],
    socket: SOCKET,
    fast: Signal::TERM,
};

/// The name of its socket.
pub const SOCKET: &str = "mariadb.sock";
/// The default port.
pub const PORT: u16 = 3306;
/// The superuser of a private server.
pub const USER: &str = "root";
/// The user of studies' clients: with all rights to their database, and none to files.
pub(crate) const CLIENT: &str = "workahead_client";

/// A private server; dropping it stops it.
#[derive(Debug)]
pub struct Server {
    // Stops before the lock of its home goes.
    pub(crate) process: Process,
    home: Home,
    program: Program,
}

impl Server {
    /// The newest installed version.
    ///
    /// # Errors
    /// When there is none, or it is too old.
    pub fn installed_version() -> Result<String, Error> {
        Program::find(&PRODUCT, None).map(|program| program.version)
    }

    /// Starts a server in its directory; one that a killed run left there is stopped first.
    ///
    /// # Errors
    /// When it is not installed, the directory can't be used, or the server gives up.
    pub fn start(options: &Options, stop: &Stop) -> Result<Server, Error> {
        let program = Program::find(&PRODUCT, options.programs.as_deref())?;
        let home = Home::open(&options.directory, &PRODUCT)?;
        initialise(&home, &program, stop)?;
        let process = launch(&home, &program, options, stop)?;
        Ok(Server { process, home, program })
    }

    /// Stops it and starts it again with other settings and CPUs, on the same data.
    ///
    /// # Errors
    /// When it does not start with them; it then stays stopped.
    pub fn restart(&mut self, options: &Options, stop: &Stop) -> Result<(), Error> {
        self.process.stop();
        self.process = launch(&self.home, &self.program, options, stop)?;
        Ok(())
    }

    /// Its version, as `10.11.19`.
    pub fn version(&self) -> &str {
        &self.program.version
    }

    /// Its directory.
    pub fn directory(&self) -> &std::path::Path {
        self.home.directory()
    }

    /// All its processes now, the first one first.
    pub fn pids(&self) -> Vec<u32> {
        self.process.pids()
    }

    /// Whether it still runs.
    pub fn is_running(&mut self) -> bool {
        self.process.is_running()
    }

    /// The error of a server that ended by itself, with the last lines of its log.
    pub fn last_words(&mut self) -> Error {
        self.process.last_words()
    }

    /// Stops it in good order.
    pub fn stop(mut self) {
        self.process.stop();
    }

    /// Kills it at once, without another write; the next start recovers acknowledged transactions.
    pub fn kill(&mut self) {
        self.process.kill();
    }

    /// The address of a database for its superuser; an empty name opens none.
    pub fn address(&self, database: &str) -> Address {
        address(&self.home, database)
    }

    /// A database of it as a target of clients.
    pub fn target(&self, database: &str) -> Target {
        Target::ours(Software::MariaDb, self.address(database))
    }

    /// Lets a study's clients into a database: they are not superusers.
    pub(crate) fn admit(&self, database: &str) -> Result<(), Error> {
        let name = identifier(database);
        let admit = || -> Result<(), SessionError> {
            let mut connection = self.connect("")?;
            connection.run(&format!("CREATE OR REPLACE USER {CLIENT}@localhost"))?;
            connection.run(&format!("GRANT ALL PRIVILEGES ON {name}.* TO {CLIENT}@localhost"))
        };
        admit().map_err(|error| Error::session("let clients in", error))
    }

    /// A database of it as a target of a study's clients, who have to be [admitted](Self::admit).
    pub(crate) fn client(&self, database: &str) -> Target {
        let address = Address { user: CLIENT.to_owned(), ..self.address(database) };
        Target::ours(Software::MariaDb, address)
    }

    /// Connects to a database.
    ///
    /// # Errors
    /// See [`Connection::open`].
    pub fn connect(&self, database: &str) -> Result<Connection, SessionError> {
        Connection::open(&self.address(database))
    }

    /// Makes an empty database, in place of one of the same name. A client's lock on it is waited
    /// for, a few seconds.
    ///
    /// # Errors
    /// When the server refuses.
    pub fn create_database(&self, name: &str) -> Result<(), Error> {
        self.replace(name).map_err(|error| Error::session("create a database", error))
    }

    /// As [`create_database`](Self::create_database), however long there are locks on the one of
    /// that name: the rollback of a transaction outlasts its client, by as long as it had worked.
    ///
    /// # Errors
    /// When the server refuses; [`Error::Stopped`].
    pub fn create_database_once_free(&self, name: &str, stop: &Stop) -> Result<(), Error> {
        loop {
            match self.replace(name) {
                Err(SessionError::Retry(_)) if stop.is_requested() => return Err(Error::Stopped),
                Err(SessionError::Retry(_)) => {}
                made => return made.map_err(|error| Error::session("create a database", error)),
            }
        }
    }

    fn replace(&self, name: &str) -> Result<(), SessionError> {
        let name = identifier(name);
        let mut connection = self.connect("")?;
        roll_back_prepared(&mut connection)?;
        connection.run(&format!("SET lock_wait_timeout = {LOCK_WAIT_S}"))?;
        connection.run(&format!("SET innodb_lock_wait_timeout = {LOCK_WAIT_S}"))?;
        connection.run(&format!("DROP DATABASE IF EXISTS {name}"))?;
        connection.run(&format!("CREATE DATABASE {name}"))
    }

    /// Keeps a copy of all its data under a name, replacing an older one; the server is restarted.
    /// Returns the time taken.
    ///
    /// # Errors
    /// When there is no room, or it does not start again.
    pub fn keep(
        &mut self,
        template: &str,
        options: &Options,
        stop: &Stop,
    ) -> Result<Duration, Error> {
        let begun = Instant::now();
        let kept = self.template(template)?;
        let ended = self.connect("").and_then(|mut connection| roll_back_prepared(&mut connection));
        ended.map_err(|error| Error::session("end prepared statements of clients", error))?;
        self.process.stop();
        self.home.copy(&self.home.data(), &kept)?;
        self.process = launch(&self.home, &self.program, options, stop)?;
        Ok(begun.elapsed())
    }

    /// Whether data was kept under a name.
    ///
    /// # Errors
    /// When the name is invalid.
    pub fn keeps(&self, template: &str) -> Result<bool, Error> {
        Ok(self.template(template)?.exists())
    }

    /// Restores the data that was kept under a name; the server is restarted, its clients are
    /// disconnected. Returns the time taken.
    ///
    /// # Errors
    /// When there is no such copy, no room, or the server does not start again.
    pub fn restore(
        &mut self,
        template: &str,
        options: &Options,
        stop: &Stop,
    ) -> Result<Duration, Error> {
        let begun = Instant::now();
        let kept = self.template(template)?;
        if !kept.exists() {
            return Err(Error::Setting(format!("no data was kept as `{template}`")));
        }
        self.process.stop();
        self.home.copy(&kept, &self.home.data())?;
        self.process = launch(&self.home, &self.program, options, stop)?;
        Ok(begun.elapsed())
    }

    fn template(&self, name: &str) -> Result<PathBuf, Error> {
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        if name.is_empty() || !name.chars().all(plain) {
            let says = format!("`{}` can't be the name of a copy", name.escape_debug());
            return Err(Error::Setting(says));
        }
        Ok(self.home.directory().join(format!("kept-{name}")))
    }
}

/// Seconds that an administrator waits for a lock, each time: a stop is looked for in between.
const LOCK_WAIT_S: u32 = 5;

/// Attempts to end prepared statements of clients: theirs until the server has noticed their end.
const ROLLBACKS: usize = 20;
/// The pause between two of them.
const ROLLBACK_PAUSE: Duration = Duration::from_millis(100);

/// Ends transactions that a client prepared (`XA PREPARE`): their locks outlast it, and restarts.
fn roll_back_prepared(connection: &mut Connection) -> Result<(), SessionError> {
    let mut left = prepared(connection)?;
    let mut attempts = 0..ROLLBACKS;
    while !left.is_empty() && attempts.next().is_some() {
        for name in &left {
            // One that changed nothing is answered with an error (1402) though it is gone: what is
            // left decides.
            let _ = connection.run(&format!("XA ROLLBACK {name}"));
        }
        left = prepared(connection)?;
        if !left.is_empty() {
            std::thread::sleep(ROLLBACK_PAUSE);
        }
    }
    let Some(first) = left.first() else { return Ok(()) };
    let says = format!("{} prepared transactions can't be rolled back, as {first}", left.len());
    Err(SessionError::Failed(says))
}

/// The names of prepared transactions, as statements have them.
fn prepared(connection: &mut Connection) -> Result<Vec<String>, SessionError> {
    let mut prepared = BoundedTexts::default();
    connection.query_text("XA RECOVER FORMAT='SQL'", &mut |row| prepared.push(row.text(3)?))?;
    Ok(prepared.texts)
}

fn address(home: &Home, database: &str) -> Address {
    Address {
        place: Place::Socket(home.run().join(SOCKET)),
        user: USER.to_owned(),
        password: None,
        database: database.to_owned(),
        settings: Vec::new(),
        read_only: false,
        own_names: false,
        cleartext: false,
        tls: Tls::default(),
    }
}

/// Makes the server's data under another name first, so that a half-made directory is not taken for
/// data.
fn initialise(home: &Home, program: &Program, stop: &Stop) -> Result<(), Error> {
    let data = home.data();
    if data.exists() {
        return Ok(());
    }
    let half = data.with_extension("workahead-tmp");
    remove(&half)?;
    home.make_private(&half)?;
    let mut datadir = std::ffi::OsString::from("--datadir=");
    datadir.push(&half);
    home.make_temporary()?;
    let mut tmpdir = std::ffi::OsString::from("--tmpdir=");
    tmpdir.push(home.temporary());
    let mut arguments = vec!["--no-defaults".into(), datadir, tmpdir];
    arguments
        .extend(["--auth-root-authentication-method=normal", "--skip-test-db"].map(Into::into));
    arguments.push("--skip-name-resolve".into());
    let program = program.companion(&PRODUCT, "mariadb-install-db")?;
    let launch = Launch { program, arguments, cpus: None, policy: Policy::Other };
    run_to_end(home, "mariadb-install-db", &launch, stop)?;
    std::fs::rename(&half, &data).map_err(|source| Error::system("rename", &half, source))
}

fn launch(
    home: &Home,
    program: &Program,
    options: &Options,
    stop: &Stop,
) -> Result<Process, Error> {
    home.make_run()?;
    home.make_temporary()?;
    home.write(&home.settings(), &settings_file(home, &options.settings)?)?;
    let mut settings = std::ffi::OsString::from("--defaults-file=");
    settings.push(home.settings());
    let cpus = options.cpus.as_ref();
    let (program, policy) = (program.path.clone(), options.policy);
    let launch = Launch { program, arguments: vec![settings], cpus, policy };
    let mut process = Process::start(home, &PRODUCT, &launch)?;
    let address = address(home, "");
    process.wait_ready(|| probe(&address), stop)?;
    Ok(process)
}

fn probe(address: &Address) -> Probe {
    match Connection::open(address) {
        Ok(_) => Probe::Ready,
        Err(SessionError::Failed(says)) => {
            let source = SessionError::Failed(says);
            Probe::Failed(Error::session("log in to the server just started", source))
        }
        Err(_) => Probe::NotYet,
    }
}

/// Settings of every private server: no port, its socket, its log as we read it.
fn settings_file(home: &Home, settings: &Settings) -> Result<String, Error> {
    check(settings, PRODUCT.name)?;
    let path = |path: PathBuf| path.display().to_string();
    let mut all: BTreeMap<String, String> = BTreeMap::from(
        [
            ("datadir", path(home.data())),
            ("socket", path(home.run().join(SOCKET))),
            ("tmpdir", path(home.temporary())),
            ("pid_file", path(home.run().join("mariadb.pid"))),
            ("skip_networking", "1".to_owned()),
            ("skip_name_resolve", "1".to_owned()),
            ("skip_log_bin", "1".to_owned()),
            // Users with the right to files have it here only.
            ("secure_file_priv", path(home.temporary())),
            ("symbolic_links", "0".to_owned()),
            ("character_set_server", "utf8mb4".to_owned()),
            ("max_connections", "200".to_owned()),
        ]
        .map(|(name, value)| (name.to_owned(), value)),
    );
    // To the server `innodb-x` and `innodb_x` are one setting, of which the last line counts.
    all.extend(settings.iter().map(|(name, value)| (name.replace('-', "_"), value.clone())));
    let line = |(name, value): (&String, &String)| {
        let value = value.replace('\\', "\\\\").replace('"', "\\\"");
        format!("{name} = \"{value}\"\n")
    };
    Ok(format!("[mariadbd]\n{}", all.iter().map(line).collect::<String>()))
}

/// A name as a quoted SQL identifier.
pub fn identifier(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

/// A text as an SQL literal, under the server's default `sql_mode`.
pub fn literal(text: &str) -> String {
    quoted(text, true)
}

fn quoted(text: &str, backslashes: bool) -> String {
    let text = text.replace('\'', "''");
    format!("'{}'", if backslashes { text.replace('\\', "\\\\") } else { text })
}
