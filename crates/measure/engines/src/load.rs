//! The generator of load: clients of a workload on a server, one thread and one connection each.
//!
//! ```text
//! connect ─► all there ─► warm-up ─► all there ─► Begin │ measured │ End ◄─ all done
//!                                                       └ count and latency of every transaction
//! ```
//!
//! Closed by default: a client sends its next transaction when the last has been answered, after
//! the workload's own pauses. With a rate it is open: transactions have intended starts, evenly
//! spaced over all clients, and latency counts from those; waiting for a stalled server is in the
//! histogram without later correction (G. Tene, "How NOT to Measure Latency", 2015). The pauses of
//! a workload are then left out: the rate decides.
//!
//! A transaction that was given up in favour of another is tried again at once, with the same
//! input; its latency has all attempts, and attempts are counted separately. The clients' own CPU
//! time is counted, because clients short of CPU time measure themselves.

mod client;
mod gate;
mod tally;

#[cfg(test)]
mod tests;

pub use tally::{End, Kind, LoadResult};

use std::time::{Duration, Instant};

use workahead_machine::CpuSet;
use workahead_study::engine::{EngineError, Stop};
use workahead_workloads::client::Workload;
use workahead_workloads::session::SessionError;

use crate::connector::Connector;
use client::Runner;
use gate::{Gate, Phase};

/// A load on a server.
#[derive(Clone)]
pub struct Load<'a> {
    /// The transactions of its clients.
    pub workload: &'a dyn Workload,
    /// Opens their connections.
    pub connector: &'a dyn Connector,
    /// Number of clients.
    pub clients: u32,
    /// Transactions a second of all clients together; as fast as they can when not given.
    pub rate: Option<f64>,
    /// How long they run before counting starts.
    pub warmup: Duration,
    /// How long or how much they run after that.
    pub until: Until,
    /// The CPUs of the clients; those of this process when not given.
    pub cpus: Option<CpuSet>,
}

/// The end of a load. Transactions in progress are finished and counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Until {
    /// No transaction begins after this time.
    Time(Duration),
    /// This number of transactions, shared evenly among the clients.
    Count(u64),
}

/// A moment at which every client waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Edge {
    /// Right before the measured part.
    Begin,
    /// Right after it.
    End,
}

/// Why a load has no result.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// Its parameters contradict each other.
    #[error("{0}")]
    Wrong(String),
    /// A client could not connect or prepare its statements.
    #[error("client {client} could not begin: {source}")]
    Begin {
        /// Its number.
        client: u32,
        /// The server's error.
        source: SessionError,
    },
    /// A transaction failed, and retrying would not help.
    #[error("client {client}, {kind}: {source}")]
    Failed {
        /// Its number.
        client: u32,
        /// The transaction.
        kind: String,
        /// The server's error, and about which statement.
        source: SessionError,
    },
    /// The system refused a thread or its CPUs.
    #[error("client {client} can't run: {says}")]
    Thread {
        /// Its number.
        client: u32,
        /// The system's error.
        says: String,
    },
}

impl From<LoadError> for EngineError {
    fn from(error: LoadError) -> EngineError {
        EngineError::failed(error)
    }
}

/// How often the conductor checks for a request to stop.
const LOOK_EVERY: Duration = Duration::from_millis(10);
/// Clients in short transactions leave by themselves; after this their statements are cancelled,
/// and again as often, in case they had just begun another.
const CANCEL_EVERY: Duration = Duration::from_millis(200);

/// Of a client's thread, on which an engine in this process plans what somebody else wrote.
const STACK_BYTES: usize = 64 << 20;

impl Load<'_> {
    /// Runs the load. `edge` is called twice, while all clients wait: counters are read there. A
    /// server that dies, or a request to stop, ends it early, with what was done so far; some
    /// clients may still be leaving at the second call.
    ///
    /// # Errors
    /// When a client can't begin, or a statement fails.
    pub fn drive(&self, stop: &Stop, edge: &mut dyn FnMut(Edge)) -> Result<LoadResult, LoadError> {
        self.check()?;
        let gate = Gate::new(self.clients);
        let runners = std::thread::scope(|scope| {
            let mut threads = Vec::new();
            for number in 0..self.clients {
                let runner = Runner::new(self, number, &gate);
                let spawned = std::thread::Builder::new()
                    .name(format!("client-{number}"))
                    .stack_size(STACK_BYTES)
                    .spawn_scoped(scope, move || runner.run());
                match spawned {
                    Ok(thread) => threads.push(thread),
                    Err(error) => {
                        let says = error.to_string();
                        gate.fail(LoadError::Thread { client: number, says });
                        break;
                    }
                }
            }
            self.conduct(threads.len(), &gate, stop, edge);
            threads
                .into_iter()
                .map(|thread| thread.join().unwrap_or_else(|why| std::panic::resume_unwind(why)))
                .collect::<Vec<_>>()
        });
        let end = gate.end()?;
        Ok(LoadResult::merge(&self.workload.kinds(), runners, end))
    }

    fn check(&self) -> Result<(), LoadError> {
        let wrong = |says: String| Err(LoadError::Wrong(says));
        if self.clients == 0 {
            return wrong("a load needs a client: give `clients` from 1".to_owned());
        }
        match self.rate {
            Some(rate) if !(rate.is_finite() && rate > 0.0) => {
                wrong(format!("a rate of {rate} a second can't be kept: give one above 0"))
            }
            _ => Ok(()),
        }
    }

    /// Leads the clients from part to part.
    fn conduct(&self, started: usize, gate: &Gate, stop: &Stop, edge: &mut dyn FnMut(Edge)) {
        let all_there = || gate.gather(started, LOOK_EVERY, || stop.is_requested());
        let goes_on = all_there() && {
            gate.open(Phase::Warming(Instant::now() + self.warmup));
            all_there()
        };
        if goes_on {
            edge(Edge::Begin);
            gate.open(Phase::Measuring(Instant::now()));
            let done = all_there();
            edge(Edge::End);
            if done {
                gate.open(Phase::Over);
            }
        }
        while !gate.all_left(started, CANCEL_EVERY) {
            gate.cancel();
        }
    }
}
