//! Directories for servers, and one server of each kind for all tests that leave it intact.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tempfile::TempDir;
use workahead_engines::server::Options;
use workahead_engines::{mariadb, postgres};
use workahead_study::cell::Cell;
use workahead_study::engine::{Engine, EngineContext, EngineError, EngineRegistry, Sample, Stop};
use workahead_study::instrument::Instrumentation;
use workahead_study::protocol::Protocol;
use workahead_study::setting::Setting;

/// A directory that servers can reach when they run as another user.
pub(crate) fn directory() -> TempDir {
    use std::os::unix::fs::PermissionsExt;
    let directory = tempfile::tempdir().unwrap();
    let open = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(directory.path(), open).unwrap();
    directory
}

/// Opens an engine that keeps its data in a directory.
pub(crate) fn engine(
    name: &str,
    directory: &Path,
    instrumentation: Option<Instrumentation>,
) -> Result<Box<dyn Engine>, EngineError> {
    let mut engines = EngineRegistry::default();
    workahead_engines::register(&mut engines);
    let data_dir = directory.to_owned();
    engines.open(name, &EngineContext { data_dir, instrumentation, ..EngineContext::default() })
}

/// Runs a study's cell of SQL.
pub(crate) fn runs(
    engine: &mut dyn Engine,
    settings: &[(&str, &str)],
) -> Result<Sample, EngineError> {
    let usual = [("workload", Setting::from("sql")), ("queries", 4.into())];
    let settings = settings.iter().map(|(key, value)| (*key, Setting::from(*value)));
    let all = usual.into_iter().chain(settings).map(|(key, value)| (key.to_owned(), value));
    let (place, protocol) = (BTreeMap::new(), Protocol::default());
    let cell = Cell { index: 0, block: 0, seed: 7, place, settings: all.collect(), protocol };
    let stop = Stop::new();
    engine.prepare(&cell, &stop).and_then(|()| engine.run(&cell, &stop))
}

/// Runs a study's cell of SQL, which has to fail; in the engine's words.
pub(crate) fn fails(engine: &mut dyn Engine, settings: &[(&str, &str)]) -> String {
    match runs(engine, settings) {
        Err(error) => error.to_string(),
        Ok(_) => panic!("it ran: {settings:?}"),
    }
}

pub(crate) fn options(directory: &Path) -> Options {
    Options { directory: directory.join("server"), ..Options::default() }
}

pub(crate) fn with_settings(directory: &Path, settings: &[(&str, &str)]) -> Options {
    let pairs = settings.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    Options { settings: pairs.collect(), ..options(directory) }
}

/// A server that lives as long as any test uses it; a static one would outlive them all.
pub(crate) struct SharedServer<S> {
    // Stops before its directory goes.
    pub(crate) server: S,
    _directory: TempDir,
}

impl<S> std::ops::Deref for SharedServer<S> {
    type Target = S;
    fn deref(&self) -> &S {
        &self.server
    }
}

type Slot<S> = Mutex<Weak<SharedServer<S>>>;

fn of<S>(slot: &Slot<S>, start: impl FnOnce(&Options) -> S) -> Arc<SharedServer<S>> {
    let mut slot = slot.lock().unwrap_or_else(PoisonError::into_inner);
    slot.upgrade().unwrap_or_else(|| {
        let directory = directory();
        let server = start(&options(directory.path()));
        let shared = Arc::new(SharedServer { server, _directory: directory });
        *slot = Arc::downgrade(&shared);
        shared
    })
}

pub(crate) fn postgres() -> Arc<SharedServer<postgres::Server>> {
    static SLOT: Slot<postgres::Server> = Mutex::new(Weak::new());
    of(&SLOT, |options| {
        postgres::Server::start(options, &Stop::new()).unwrap_or_else(|error| panic!("{error}"))
    })
}

pub(crate) fn mariadb() -> Arc<SharedServer<mariadb::Server>> {
    static SLOT: Slot<mariadb::Server> = Mutex::new(Weak::new());
    of(&SLOT, |options| {
        mariadb::Server::start(options, &Stop::new()).unwrap_or_else(|error| panic!("{error}"))
    })
}

/// A port without a listener.
pub(crate) fn free_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// Whether a process runs and is not a zombie.
pub(crate) fn alive(pid: u32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat"))
        .is_ok_and(|stat| stat.rsplit_once(") ").is_some_and(|(_, state)| !state.starts_with('Z')))
}
