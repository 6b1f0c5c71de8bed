//! PostgreSQL: a private server of an installed version, and a client for it.
//!
//! ```text
//! start ─► initdb once ─► postgres ─► connect ─► tables, COPY ─► keep as a template
//!                           ▲                                       │ restore: a new copy
//!                           └── restart with other settings ◄───────┘
//! ```
//!
//! Only making the directory is done without flushing to disk (`initdb --no-sync`): a crash of the
//! machine in that second costs a directory that nothing is in yet. The server itself is as durable
//! as its settings say, and PostgreSQL's own are the safe ones.

mod connection;
mod connector;
mod copy;
mod encryption;
mod explain;
mod login;
mod refusal;
mod scram;
pub(crate) mod single_backend;
mod statement;
mod wire;

pub use connection::{Canceller, Connection};
pub use copy::Copy;
pub(crate) use single_backend::SingleBackend;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use workahead_machine::scheduling::Policy;
use workahead_study::engine::Stop;
use workahead_workloads::session::{Session, SessionError};

use crate::address::{Address, Place};
use crate::attach::{Software, Target};
use crate::server::{
    Error, Home, Launch, Options, Probe, Process, Product, Program, Settings, check, remove,
    run_to_end,
};
use crate::tls::Tls;

pub(crate) const PRODUCT: Product = Product {
    name: "PostgreSQL",
    program: "postgres",
    oldest: ("15", [15, 0]),
    install: "`apt-get install postgresql`, or your distribution's package of the server",
    folders: &[
        "/usr/lib/postgresql/*/bin",
        "/usr/pgsql-*/bin",
        "/usr/local/pgsql/bin",
        "/usr/lib64/pgsql/bin",
    ],
    users: &["postgres"],
    // The longest that it can be.
    socket: ".s.PGSQL.65535",
    // "Fast shutdown": clients are cut off, everything is written.
    fast: Signal::INT,
};

/// The default port.
pub const PORT: u16 = 5432;

/// The name of its socket, which has the port in it.
#[must_use]
pub fn socket_name(port: u16) -> String {
    format!(".s.PGSQL.{port}")
}

/// The superuser of a private server.
pub const USER: &str = "workahead";
/// The owner of its databases, and the user of studies' clients: no statement of theirs runs
/// programs, or touches files other than the server's own.
pub(crate) const CLIENT: &str = "workahead_client";
/// The database that always exists and stays empty.
const MAINTENANCE: &str = "postgres";

/// Bytes of a name: the server cuts off the rest, with which it may be another's
/// (PostgreSQL 15, section 4.1.1).
pub(crate) const NAME_BYTES_MAX: usize = 63;

/// A private server; dropping it stops it.
#[derive(Debug)]
pub struct Server {
    // Stops before the lock of its home goes.
    pub(crate) process: Process,
    home: Home,
    program: Program,
    port: u16,
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
        let port = port(&options.settings)?;
        let process = launch(&home, &program, options, stop)?;
        let server = Server { process, home, program, port };
        server.admit().map_err(|error| Error::session("let clients in", error))?;
        Ok(server)
    }

    /// Makes the clients' role, which the data keeps, without what an earlier study set for it.
    fn admit(&self) -> Result<(), SessionError> {
        let mut connection = self.connect(MAINTENANCE)?;
        let known = format!("SELECT rolname::text FROM pg_roles WHERE rolname = '{CLIENT}'");
        if connection.texts(&known)?.is_empty() {
            connection.run(&format!("CREATE ROLE {CLIENT} LOGIN"))?;
        }
        connection.run(&format!("ALTER ROLE {CLIENT} RESET ALL"))
    }

    /// Stops it and starts it again with other settings and CPUs, on the same data.
    ///
    /// # Errors
    /// When it does not start with them; it then stays stopped.
    pub fn restart(&mut self, options: &Options, stop: &Stop) -> Result<(), Error> {
        self.port = port(&options.settings)?;
        self.process.stop();
        self.process = launch(&self.home, &self.program, options, stop)?;
        Ok(())
    }

    /// Its version, as `15.18`.
    pub fn version(&self) -> &str {
        &self.program.version
    }

    /// Another program of the same installation, as `pgbench`.
    ///
    /// # Errors
    /// When it is not there.
    pub fn companion(&self, name: &str) -> Result<std::path::PathBuf, Error> {
        self.program.companion(&PRODUCT, name)
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

    /// Kills all its processes at once, without another write; the next start recovers acknowledged
    /// transactions.
    pub fn kill(&mut self) {
        self.process.kill();
    }

    /// The address of a database for its superuser.
    pub fn address(&self, database: &str) -> Address {
        address(&self.home, self.port, database)
    }

    /// A database of it as a target of clients.
    pub fn target(&self, database: &str) -> Target {
        Target::ours(Software::Postgres, self.address(database))
    }

    /// A database of it as a target of a study's clients, who are not superusers.
    pub(crate) fn client(&self, database: &str) -> Target {
        let address = Address { user: CLIENT.to_owned(), ..self.address(database) };
        Target::ours(Software::Postgres, address)
    }

    /// Connects to a database.
    ///
    /// # Errors
    /// See [`Connection::open`].
    pub fn connect(&self, database: &str) -> Result<Connection, SessionError> {
        Connection::open(&self.address(database))
    }

    /// Makes an empty database, in place of one of the same name.
    ///
    /// # Errors
    /// When the name has more than 63 bytes, or the server refuses.
    pub fn create_database(&self, name: &str) -> Result<(), Error> {
        self.replace(name, "template0").map_err(|error| Error::session("create a database", error))
    }

    /// Makes `name` a copy of the database `template`, replacing one of the same name. Returns the
    /// time taken. Clients of either are disconnected.
    ///
    /// # Errors
    /// When a name has more than 63 bytes, or the server refuses.
    pub fn restore(&self, name: &str, template: &str) -> Result<Duration, Error> {
        let begun = Instant::now();
        self.replace(name, template)
            .map_err(|error| Error::session("restore a database", error))?;
        Ok(begun.elapsed())
    }

    fn replace(&self, name: &str, template: &str) -> Result<(), SessionError> {
        if let Some(long) = [name, template].into_iter().find(|name| name.len() > NAME_BYTES_MAX) {
            let says = format!(
                "`{long}` can't be a database: its name has {} bytes, and PostgreSQL cuts off what \
                 is beyond {NAME_BYTES_MAX}",
                long.len()
            );
            return Err(SessionError::Failed(says));
        }
        let mut connection = self.connect(MAINTENANCE)?;
        // Its owner, a study's client, may have made it a template, which can't be dropped. One
        // that a killed run began to drop is not a template, and can't be altered.
        let template_of_that_name = format!(
            "SELECT datname::text FROM pg_database WHERE datistemplate AND datname = {}",
            literal(name)
        );
        let (name, template_name) = (identifier(name), identifier(template));
        if !connection.texts(&template_of_that_name)?.is_empty() {
            connection.run(&format!("ALTER DATABASE {name} IS_TEMPLATE false"))?;
        }
        connection.run(&format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)"))?;
        disconnect(&mut connection, template)?;
        // Files are copied as they are. The other way, through the log of changes, is for small
        // templates only: it writes everything twice.
        connection.run(&format!(
            "CREATE DATABASE {name} OWNER {CLIENT} TEMPLATE {template_name} STRATEGY FILE_COPY"
        ))
    }
}

/// Ends every process of a database, and waits for its end.
pub(crate) fn disconnect(connection: &mut Connection, database: &str) -> Result<(), SessionError> {
    let ended = connection.texts(&format!(
        "SELECT pg_terminate_backend(pid, 10000)::text FROM pg_stat_activity WHERE datname = {}",
        literal(database)
    ));
    ended.map(drop)
}

/// A private server listens at no port, unless its settings say so; one names its socket anyway.
fn port(settings: &Settings) -> Result<u16, Error> {
    let Some(port) = settings.get("port") else { return Ok(PORT) };
    let says =
        || Error::Setting(format!("`port = {port}` is not a port: give a number up to 65535"));
    port.parse().ok().filter(|port| *port != 0).ok_or_else(says)
}

fn address(home: &Home, port: u16, database: &str) -> Address {
    Address {
        place: Place::Socket(home.run().join(socket_name(port))),
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

/// Makes the server's data under another name first, so that a directory half made by `initdb` is
/// not taken for data.
fn initialise(home: &Home, program: &Program, stop: &Stop) -> Result<(), Error> {
    let data = home.data();
    if data.exists() {
        return Ok(());
    }
    let half = data.with_extension("workahead-tmp");
    remove(&half)?;
    home.make_private(&half)?;
    let mut arguments = vec!["--pgdata".into(), half.clone().into_os_string()];
    arguments.extend(["--username", USER, "--auth=trust", "--encoding=UTF8"].map(Into::into));
    arguments.extend(["--no-locale", "--no-sync", "--no-instructions"].map(Into::into));
    let program = program.companion(&PRODUCT, "initdb")?;
    let launch = Launch { program, arguments, cpus: None, policy: Policy::Other };
    run_to_end(home, "initdb", &launch, stop)?;
    std::fs::rename(&half, &data).map_err(|source| Error::system("rename", &half, source))
}

/// The message of a postmaster that finds processes of a killed one, which end once they notice.
const STILL_THERE: &str = "pre-existing shared memory block";
/// They notice within a second, or when the statement they run ends.
const STILL_THERE_LIMIT: Duration = Duration::from_secs(30);

fn launch(
    home: &Home,
    program: &Program,
    options: &Options,
    stop: &Stop,
) -> Result<Process, Error> {
    let begun = Instant::now();
    loop {
        home.make_run()?;
        home.write(&home.settings(), &settings_file(home, &options.settings)?)?;
        let mut arguments = vec!["-D".into(), home.data().into_os_string(), "-c".into()];
        arguments.push(format!("config_file={}", home.settings().display()).into());
        let cpus = options.cpus.as_ref();
        let (program, policy) = (program.path.clone(), options.policy);
        let launch = Launch { program, arguments, cpus, policy };
        let mut process = Process::start(home, &PRODUCT, &launch)?;
        let address = address(home, port(&options.settings)?, MAINTENANCE);
        let ready = process.wait_ready(|| probe(&address), stop);
        match ready {
            Ok(()) => return Ok(process),
            Err(_) if process.says(STILL_THERE) && begun.elapsed() < STILL_THERE_LIMIT => {
                std::thread::sleep(Duration::from_millis(50));
            }
            Err(error) => return Err(error),
        }
    }
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
    let mut all: BTreeMap<&str, String> = BTreeMap::from([
        ("listen_addresses", String::new()),
        ("unix_socket_directories", home.run().display().to_string()),
        ("port", PORT.to_string()),
        ("log_destination", "stderr".to_owned()),
        ("logging_collector", "off".to_owned()),
        ("max_connections", "200".to_owned()),
    ]);
    check(settings, PRODUCT.name)?;
    all.extend(settings.iter().map(|(name, value)| (name.as_str(), value.clone())));
    let line = |(name, value): (&&str, &String)| {
        format!("{name} = '{}'\n", value.replace('\\', "\\\\").replace('\'', "''"))
    };
    Ok(all.iter().map(line).collect())
}

/// A name as a quoted SQL identifier.
pub fn identifier(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// A text as an SQL literal.
pub fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}
