//! A private PostgreSQL to observe, and clients that keep it busy.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tempfile::TempDir;
use workahead_engines::attach::Target;
use workahead_engines::connector::Connector;
use workahead_engines::postgres;
use workahead_engines::server::Options;
use workahead_study::engine::Stop;
use workahead_workloads::session::Session;

use crate::process::{server_directory, wait_until};

pub(crate) fn options(directory: &TempDir) -> Options {
    Options { directory: directory.path().join("server"), ..Options::default() }
}

/// A server with an empty database `shop`, a role `ada` that sees what others do, and a role `bob`
/// that does not.
pub(crate) fn start_postgres() -> (postgres::Server, TempDir) {
    let directory = server_directory();
    let server = postgres::Server::start(&options(&directory), &Stop::new()).unwrap();
    let mut owner = server.connect("postgres").unwrap();
    for text in ["CREATE DATABASE shop", "CREATE ROLE ada LOGIN", "CREATE ROLE bob LOGIN"] {
        owner.run(text).unwrap();
    }
    owner.run("GRANT pg_read_all_stats TO ada").unwrap();
    (server, directory)
}

/// How long a client waits after texts that took so long, so long after it began.
pub(crate) type Pause = fn(begun: Duration, took: Duration) -> Duration;

/// Clients that send texts, again and again, until they are dropped or the server goes.
pub(crate) struct Load {
    is_over: Arc<AtomicBool>,
    sent: Arc<AtomicU64>,
    clients: Vec<JoinHandle<()>>,
}

impl Load {
    /// Begins, and waits for the first client to have sent all texts once.
    pub(crate) fn begin(
        target: &Target,
        clients: usize,
        texts: &'static [&'static str],
        pause: Pause,
    ) -> Self {
        let (is_over, sent) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let client = |_| {
            let (is_over, sent, target) = (is_over.clone(), sent.clone(), target.clone());
            std::thread::spawn(move || {
                let Ok(mut connection) = target.open() else { return };
                let begun = Instant::now();
                while !is_over.load(Ordering::Relaxed) {
                    let round = Instant::now();
                    for text in texts {
                        if connection.run(text).is_err() {
                            return;
                        }
                    }
                    sent.fetch_add(1, Ordering::Relaxed);
                    std::thread::sleep(pause(begun.elapsed(), round.elapsed()));
                }
            })
        };
        let load = Self { clients: (0..clients).map(client).collect(), is_over, sent };
        wait_until("clients", || load.sent() > 0);
        load
    }

    /// How often a client has sent all texts.
    pub(crate) fn sent(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        for client in self.clients.drain(..) {
            let _ = client.join();
        }
    }
}
