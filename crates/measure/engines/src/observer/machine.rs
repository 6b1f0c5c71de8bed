//! The machine of a server that is observed, from `/proc`.

use workahead_machine::Sysroot;
use workahead_machine::process::machine_wide::Whole;
use workahead_machine::process::{Allowance, Snapshot, Tree};

use super::UnavailableSource;
use crate::address::Place;
use crate::attach::Target;

/// The machine in a window: CPU seconds per second, and shares of the time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Machine {
    /// CPUs that the server may run on, less what the host of a virtual machine took.
    pub cpus: f64,
    /// Those of them that were busy with anything.
    pub busy: f64,
    /// Those that were busy with the server's processes, where they are visible.
    pub server: Option<f64>,
    /// CPUs that the server's control group may use, where those are fewer.
    pub quota: Option<f64>,
    /// The server's threads that could have run and had no CPU, in the mean.
    pub delayed: Option<f64>,
    /// The share of the time in which a task waited for I/O (PSI).
    pub io_pressure: Option<f64>,
}

/// A machine that is observed.
pub(super) struct MachineObserver {
    pub(super) root: Sysroot,
    pub(super) server: Option<Server>,
}

pub(super) struct Server {
    pub(super) pid: u32,
    pub(super) tree: Tree,
}

/// The machine at a moment.
pub(super) struct Edge {
    pub(super) whole: Whole,
    pub(super) server: Option<Snapshot>,
    quota: Option<f64>,
}

impl MachineObserver {
    /// This machine, if the server is on it: behind a local socket.
    pub(super) fn of(target: &Target) -> Option<Self> {
        let Place::Socket(_) = target.address.place else { return None };
        let server = target.process().map(|pid| Server { pid, tree: Tree::of(pid) });
        Some(Self { root: Sysroot::live(), server })
    }

    /// The server's first process, where it is visible.
    pub(super) fn pid(&self) -> Option<u32> {
        self.server.as_ref().map(|server| server.pid)
    }

    /// The figures that can't be seen of it.
    pub(super) fn unseen(observer: Option<&Self>) -> Option<UnavailableSource> {
        let says = match observer {
            None => "the CPUs of the server's machine (connect there, through the socket)",
            Some(observer) if observer.server.is_none() => {
                "the server's processes and their share of the CPUs (run it where they are \
                 visible, outside of a container)"
            }
            Some(_) => return None,
        };
        Some(UnavailableSource { says: says.to_owned(), hides_waits: false })
    }

    pub(super) fn edge(&mut self) -> Edge {
        let allowance = self.server.as_ref().and_then(|one| Allowance::of(&self.root, one.pid));
        let whole = match &allowance {
            Some(allowance) => Whole::look_on(&self.root, &allowance.cpus),
            None => Whole::look(&self.root),
        };
        let server = self.server.as_mut().map(|server| server.tree.look(&self.root));
        Edge { whole, server, quota: allowance.and_then(|allowance| allowance.quota) }
    }
}

impl Edge {
    /// The difference to an earlier edge, `seconds` ago.
    pub(super) fn since(&self, before: &Edge, seconds: f64) -> Option<Machine> {
        let whole = self.whole.since(&before.whole);
        let steal_s = whole.steal_s.unwrap_or(0.0);
        // By their own sum rather than our clock, so that ticks are of the same time.
        let cpus = whole.total_s? / seconds;
        let used = self.server.as_ref().zip(before.server.as_ref());
        let used = used.map(|(now, then)| now.since(then));
        Some(Machine {
            cpus: cpus - steal_s / seconds,
            busy: (cpus - (whole.idle_s? + steal_s) / seconds).max(0.0),
            server: used.as_ref().map(|used| used.cpu_s / seconds),
            quota: self.quota,
            delayed: used.and_then(|used| Some(used.run_delay_s? / seconds)),
            io_pressure: whole.io_some_s.map(|some_s| some_s / seconds),
        })
    }
}
