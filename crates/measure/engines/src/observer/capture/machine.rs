//! The machine of a server that is captured: CPU time, run delay, quota, pressure, other programs.

use std::collections::BTreeMap;

use workahead_machine::process::{Neighbours, throttled_s};
use workahead_machine::tuning;
use workahead_study::capture::Figures;

use crate::observer::machine::{Edge, MachineObserver};

/// Other programs that are kept, by CPU time.
const NEIGHBOURS_MAX: usize = 10;

/// A machine that is observed, and who else worked there when that began.
pub(super) struct Machine {
    observer: MachineObserver,
    neighbours: Neighbours,
}

/// The machine at a moment.
pub(super) struct MachineEdge {
    seen: Edge,
    throttled_s: Option<f64>,
}

impl Machine {
    pub(super) fn of(mut observer: MachineObserver) -> Machine {
        let neighbours = look_around(&mut observer);
        Machine { observer, neighbours }
    }

    /// How the machine is set.
    pub(super) fn tuning(&self) -> BTreeMap<String, String> {
        tuning::of(&self.observer.root, self.observer.pid())
    }

    pub(super) fn edge(&mut self) -> MachineEdge {
        let seen = self.observer.edge();
        let MachineObserver { root, server } = &self.observer;
        let throttled_s = server.as_ref().and_then(|one| throttled_s(root, one.pid));
        MachineEdge { seen, throttled_s }
    }

    /// CPU seconds of other programs since it began.
    pub(super) fn neighbours(&mut self) -> Figures {
        let used = look_around(&mut self.observer).since(&self.neighbours);
        used.into_iter().take(NEIGHBOURS_MAX).collect()
    }
}

/// Everybody but the server's processes.
fn look_around(observer: &mut MachineObserver) -> Neighbours {
    let MachineObserver { root, server } = observer;
    let mut own = server.as_mut().map(|server| server.tree.look(root).pids()).unwrap_or_default();
    // Without the server's processes its own would be among them.
    match own.is_empty() {
        true => Neighbours::default(),
        false => {
            own.push(std::process::id());
            Neighbours::look(root, &own)
        }
    }
}

impl MachineEdge {
    /// The differences to an earlier edge, by name.
    pub(super) fn since(&self, before: &MachineEdge) -> Figures {
        let mut figures = Figures::new();
        let whole = self.seen.whole.since(&before.seen.whole);
        let named = |(name, value): (&'static str, f64)| (name.to_owned(), value);
        figures.extend(whole.measures().into_iter().map(named));
        if let Some((now, then)) = self.seen.server.as_ref().zip(before.seen.server.as_ref()) {
            figures.extend(now.since(then).measures().into_iter().map(named));
        }
        if let Some((now, then)) = self.throttled_s.zip(before.throttled_s) {
            figures.insert("throttled_s".to_owned(), (now - then).max(0.0));
        }
        figures
    }
}
