//! A server at work for others, observed: what it finished, what its sessions waited for, what CPUs
//! it took, window by window. Nothing is run for it, and nothing is written.
//!
//! ```text
//! edge ──── look ──── look ──── look ──── edge        a window
//!  │         sessions that wait, a few times a window  │
//!  └─ counters, /proc ─────── differences ─────────────┘
//! ```
//!
//! One connection stays open. A look is one read-only transaction of one or two statements, which
//! are subtracted from what the server counted.

pub mod capture;
mod machine;
mod mariadb;
mod postgres;

use std::time::{Duration, Instant};

use workahead_workloads::session::SessionError;

use crate::attach::{Software, Target};
use crate::connector::Connection;
pub use machine::Machine;
use machine::MachineObserver;

/// Looks at sessions: of a wait of a hundredth of the time, a minute of them sees two or three.
const LOOKS_PER_S: f64 = 4.0;

/// Looks in a window at most.
const LOOKS_MAX: u32 = 8;

/// How often an interruption is looked for.
const STOP_EVERY: Duration = Duration::from_millis(10);

/// A reason for which a session can wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    /// A lock of a row or a table.
    Lock,
    /// The log of changes: to be written, or synced.
    Log,
    /// A short lock on the server's own data.
    Latch,
    /// A file other than the log.
    Disk,
}

/// The work of a server in a window of time.
#[derive(Debug, Clone, PartialEq)]
pub struct Window {
    /// Its length.
    pub seconds: f64,
    /// Transactions (PostgreSQL) or statements (MariaDB, MySQL) that ended, without ours.
    pub ended: f64,
    /// The machine, where the server is on this one.
    pub machine: Option<Machine>,
    /// Sessions that waited at a moment, in the mean; kinds that this server does not show are left
    /// out.
    pub waiting: Vec<(Wait, f64)>,
}

/// A source that could not be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnavailableSource {
    /// In words, with the remedy.
    pub says: String,
    /// Whether sessions may wait there unseen.
    pub hides_waits: bool,
}

/// Why observing ended.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ObserverError {
    /// The connection, or the server.
    #[error("the connection was lost ({0})")]
    Lost(String),
    /// It started anew, by its own account.
    #[error("the server restarted")]
    Restarted,
    /// Its counters are lower than before.
    #[error("the server's counters were set back")]
    Reset,
}

impl From<SessionError> for ObserverError {
    fn from(error: SessionError) -> Self {
        ObserverError::Lost(error.to_string())
    }
}

/// A server's counters at a moment, and its sessions then.
#[derive(Debug, Clone, Default, PartialEq)]
struct Look {
    /// Transactions or statements that ended since it started.
    ended: i64,
    /// When it started, in its own microseconds; up to [`Look::STARTED_WITHIN_US`].
    started_us: i64,
    /// Sessions that wait.
    waiting: Vec<(Wait, f64)>,
    /// Time that sessions waited for row locks since it started, where it counts that.
    row_locks_s: Option<f64>,
    /// Sessions whose state is hidden.
    hidden: i64,
}

impl Look {
    /// MariaDB counts whole seconds since its start, by a clock that may be corrected.
    const STARTED_WITHIN_US: u64 = 3_000_000;

    /// As it is counted on: a negative count of a server is zero.
    fn counted(mut self) -> Look {
        self.ended = self.ended.max(0);
        self.hidden = self.hidden.max(0);
        self.waiting.iter_mut().for_each(|(_, sessions)| *sessions = sessions.max(0.0));
        self.row_locks_s = self.row_locks_s.map(|seconds| seconds.max(0.0));
        self
    }

    fn check(&self, before: &Look) -> Result<(), ObserverError> {
        if self.started_us.abs_diff(before.started_us) > Self::STARTED_WITHIN_US {
            return Err(ObserverError::Restarted);
        }
        let row_locks = self.row_locks_s.zip(before.row_locks_s);
        if self.ended < before.ended || row_locks.is_some_and(|(now, then)| now < then) {
            return Err(ObserverError::Reset);
        }
        Ok(())
    }
}

/// The statements of a product.
trait Reader {
    /// Looks, in a transaction.
    fn look(&self, connection: &mut dyn Connection) -> Result<Look, SessionError>;

    /// The number that each look adds to `ended`.
    fn own(&self) -> i64;

    /// Figures that can't be seen for lack of rights, by a look.
    fn unseen(&self, look: &Look, user: &str) -> Option<UnavailableSource>;
}

/// A server that is observed.
pub struct Observer {
    connection: Box<dyn Connection>,
    reader: Box<dyn Reader>,
    machine: Option<MachineObserver>,
    edge: Edge,
    unseen: Vec<UnavailableSource>,
    counted: &'static str,
}

/// Where a window begins.
struct Edge {
    at: Instant,
    look: Look,
    machine: Option<machine::Edge>,
}

impl Observer {
    /// Connects, and looks for the first time. The user's rights are examined before, by
    /// [`Target::examine`].
    ///
    /// # Errors
    /// When nothing answers, the server rejects the user, or has no such counters.
    pub fn begin(target: &Target) -> Result<Observer, SessionError> {
        let mut connection = target.connect_to_observe()?;
        let (reader, counted): (Box<dyn Reader>, _) = match target.software {
            Software::Postgres => {
                (Box::new(postgres::Statements::prepare(connection.as_mut())?), "transactions")
            }
            Software::MariaDb => {
                (Box::new(mariadb::Statements::prepare(connection.as_mut())?), "statements")
            }
        };
        let mut machine = MachineObserver::of(target);
        let look = reader.look(connection.as_mut())?.counted();
        let mut unseen: Vec<UnavailableSource> =
            reader.unseen(&look, &target.address.user).into_iter().collect();
        unseen.extend(MachineObserver::unseen(machine.as_ref()));
        let edge =
            Edge { at: Instant::now(), look, machine: machine.as_mut().map(MachineObserver::edge) };
        Ok(Observer { connection, reader, machine, edge, unseen, counted })
    }

    /// The unit of [`Window::ended`].
    #[must_use]
    pub fn counted(&self) -> &'static str {
        self.counted
    }

    /// The sources that could not be read so far.
    #[must_use]
    pub fn unseen(&self) -> &[UnavailableSource] {
        &self.unseen
    }

    /// Observes for a while; none when it was interrupted in the middle.
    ///
    /// # Errors
    /// When the connection is lost, or counters from before and after don't belong together.
    pub fn window(
        &mut self,
        length: Duration,
        is_stopped: &dyn Fn() -> bool,
    ) -> Result<Option<Window>, ObserverError> {
        let looks = (length.as_secs_f64() * LOOKS_PER_S) as u32;
        let looks = looks.clamp(1, LOOKS_MAX);
        let mut seen: Vec<Look> = Vec::new();
        for number in 1..=looks {
            let until = self.edge.at + length * number / looks;
            while Instant::now() < until {
                if is_stopped() {
                    return Ok(None);
                }
                let left = until.saturating_duration_since(Instant::now());
                std::thread::sleep(left.min(STOP_EVERY));
            }
            self.connection.limit_answers();
            let look = self.reader.look(self.connection.as_mut())?.counted();
            look.check(seen.last().unwrap_or(&self.edge.look))?;
            seen.push(look);
        }
        Ok(seen.last().cloned().map(|last| self.end(last, &seen)))
    }

    /// Ends a window with a look, and begins the next.
    fn end(&mut self, last: Look, looks: &[Look]) -> Window {
        let at = Instant::now();
        let machine = self.machine.as_mut().map(MachineObserver::edge);
        let before = std::mem::replace(&mut self.edge, Edge { at, look: last, machine });
        let now = &self.edge;
        let seconds = now.at.duration_since(before.at).as_secs_f64();
        let own = self.reader.own() * looks.len() as i64;
        let ended =
            now.look.ended.saturating_sub(before.look.ended).saturating_sub(own).max(0) as f64;
        let mut waiting = waiting(looks);
        if let Some((now, then)) = now.look.row_locks_s.zip(before.look.row_locks_s) {
            let locks = waiting.iter_mut().find(|(wait, _)| *wait == Wait::Lock);
            match locks {
                Some((_, sessions)) => *sessions += (now - then) / seconds,
                None => waiting.push((Wait::Lock, (now - then) / seconds)),
            }
        }
        let machine = now.machine.as_ref().zip(before.machine.as_ref());
        let machine = machine.and_then(|(now, then)| now.since(then, seconds));
        Window { seconds, ended, machine, waiting }
    }
}

/// The mean of looks, of what all of them show.
fn waiting(looks: &[Look]) -> Vec<(Wait, f64)> {
    let kinds = looks.first().map_or(&[][..], |look| &look.waiting[..]);
    let of = |wait: Wait| {
        let each = looks.iter().flat_map(|look| &look.waiting).filter(|(kind, _)| *kind == wait);
        each.map(|(_, sessions)| sessions).sum::<f64>() / looks.len() as f64
    };
    kinds.iter().map(|(wait, _)| (*wait, of(*wait))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(ended: i64, started_us: i64) -> Look {
        Look { ended, started_us, ..Look::default() }
    }

    #[test]
    fn a_restart_is_found_by_the_start_and_by_counters() {
        let before = Look { row_locks_s: Some(2.0), ..look(10, 1_000_000_000) };
        let later = |ended, started_us, row_locks_s| {
            Look { row_locks_s, ..look(ended, started_us) }.check(&before)
        };
        assert_eq!(later(10, 1_001_000_000, Some(2.0)), Ok(()));
        assert_eq!(later(11, 1_000_000_000, None), Ok(()));
        assert_eq!(later(11, 1_009_000_000, Some(3.0)), Err(ObserverError::Restarted));
        assert_eq!(later(9, 1_000_000_000, Some(2.0)), Err(ObserverError::Reset));
        assert_eq!(later(11, 1_000_000_000, Some(1.0)), Err(ObserverError::Reset));
    }

    #[test]
    fn negative_counts_of_a_server_are_zero() {
        let lie = Look {
            ended: i64::MIN,
            hidden: -1,
            waiting: vec![(Wait::Lock, i64::MIN as f64), (Wait::Log, 2.0)],
            row_locks_s: Some(-3.0),
            started_us: -5,
        };
        let counted = Look {
            waiting: vec![(Wait::Lock, 0.0), (Wait::Log, 2.0)],
            row_locks_s: Some(0.0),
            ..look(0, -5)
        };
        assert_eq!(lie.counted(), counted);
    }

    #[test]
    fn waiting_is_the_mean_of_the_looks() {
        let of = |locks, log| Look {
            waiting: vec![(Wait::Lock, locks), (Wait::Log, log)],
            ..Look::default()
        };
        let looks = [of(0.0, 1.0), of(3.0, 1.0)];
        assert_eq!(waiting(&looks), [(Wait::Lock, 1.5), (Wait::Log, 1.0)]);
        assert_eq!(waiting(&[]), []);
    }
}
