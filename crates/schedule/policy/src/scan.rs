//! IP1: scans the queue of a core for B, C and H, and chooses among them.

use std::num::NonZeroU64;

use crate::ffi::{self, COMPANION, ENOUGH, HEAD, MEMBER, OVERDUE, View};
use crate::{Choice, Pick, Reading, Role, Tunables};

/// An aggregation group: an address space in the paper, a cgroup, or the processes of one parent.
/// Only compared, never dereferenced.
pub type Group = NonZeroU64;

/// A runnable thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Thread {
    /// Virtual run time, nanoseconds; wraps around.
    pub vruntime_ns: u64,
    /// Its group; kernel threads have none.
    pub group: Option<Group>,
}

/// The candidates that a shown thread has become.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// The head so far (B, F).
    pub head: bool,
    /// The member of the own group so far (C, G).
    pub member: bool,
    /// The companion so far (H).
    pub companion: bool,
    /// Threads after it in ascending vruntime can't be chosen: the scan may stop, unless the
    /// reading is literal.
    pub enough: bool,
}

/// One scan of a queue.
///
/// ```
/// use workahead_policy::{Group, Pick, Role, Scan, Thread, Tunables};
/// let group = Group::new(7);
/// let tunables = Tunables::default();
/// let mut scan = Scan::new(group, None);
/// assert!(scan.see(Thread { vruntime_ns: 10, group: None }, &tunables).head);
/// assert!(scan.see(Thread { vruntime_ns: 16, group }, &tunables).member);
/// assert_eq!(scan.choose(Role::Alone, 0, &tunables).pick, Pick::Member);
/// ```
#[derive(Clone, Debug)]
pub struct Scan {
    view: View,
}

impl Scan {
    /// A scan by a core on which `own` ran last, while `shared` is published to it.
    #[must_use]
    pub fn new(own: Option<Group>, shared: Option<Group>) -> Self {
        let number = |group: Option<Group>| group.map_or(0, Group::get);
        Self { view: View { own: number(own), shared: number(shared), ..View::default() } }
    }

    /// Shows a thread of the queue. Threads may come in any order; in ascending vruntime the look
    /// can stop early.
    pub fn see(&mut self, thread: Thread, tunables: &Tunables) -> Seen {
        let group = thread.group.map_or(0, Group::get);
        seen(ffi::see(&mut self.view, thread.vruntime_ns, group, tunables.reach_ns()))
    }

    /// Shows the thread that ran last, where it could go on: no sibling of its own. Shown last, it
    /// loses to the head of the queue at equal vruntime, as when CFS queues it again.
    pub fn see_current(&mut self, thread: Thread, tunables: &Tunables) -> Seen {
        let group = thread.group.map_or(0, Group::get);
        seen(ffi::see_current(&mut self.view, thread.vruntime_ns, group, tunables.reach_ns()))
    }

    /// Marks that a thread waits longer than the scheduler promises: the head is chosen, and in its
    /// place the caller may run the thread that has waited longest.
    pub fn overdue(&mut self) {
        self.view.have |= OVERDUE;
    }

    /// Whether there was a chance to aggregate: a member or a companion was seen.
    #[must_use]
    pub fn is_chance(&self) -> bool {
        self.view.have & (MEMBER | COMPANION) != 0
    }

    /// Decides. `count` is `agg_count` of the group that ran last, on this core.
    #[must_use]
    pub fn choose(&self, role: Role, count: u32, tunables: &Tunables) -> Choice {
        ffi::choose(&self.view, role, count, tunables).into()
    }
}

fn seen(bits: u32) -> Seen {
    let has = |bit| bits & bit != 0;
    Seen { head: has(HEAD), member: has(MEMBER), companion: has(COMPANION), enough: has(ENOUGH) }
}

/// A core that decides.
#[derive(Clone, Copy, Debug, Default)]
pub struct Core {
    /// Its role.
    pub role: Role,
    /// The group of the thread that ran last on it.
    pub own: Option<Group>,
    /// The group published by its master; `None` if it is not a slave.
    pub shared: Option<Group>,
    /// `agg_count` of its own group on it.
    pub count: u32,
    /// The thread that ran last, if it can continue.
    pub current: Option<Thread>,
}

/// The decision, with the position in the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScanResult {
    /// The decision.
    pub choice: Choice,
    /// Position in the queue; `None` if the thread that ran last continues, or no thread can run.
    pub position: Option<usize>,
    /// Number of threads examined.
    pub looked_at: usize,
}

/// Decides over a queue in ascending vruntime, without [`Scan::overdue`].
pub fn choose(core: &Core, queue: impl IntoIterator<Item = Thread>, by: &Tunables) -> ScanResult {
    let mut scan = Scan::new(core.own, core.shared);
    let (mut head, mut member, mut companion) = (None, None, None);
    let mut looked_at = 0;
    for (position, thread) in queue.into_iter().enumerate() {
        let seen = scan.see(thread, by);
        looked_at += 1;
        for (found, place) in
            [(seen.head, &mut head), (seen.member, &mut member), (seen.companion, &mut companion)]
        {
            if found {
                *place = Some(position);
            }
        }
        // In the literal reading, a candidate out of reach differs from none (IP6, count).
        if seen.enough && by.reading == Reading::Corrected {
            break;
        }
    }
    if let Some(current) = core.current {
        let seen = scan.see_current(current, by);
        for (found, place) in [(seen.head, &mut head), (seen.companion, &mut companion)] {
            if found {
                *place = None;
            }
        }
    }
    let choice = scan.choose(core.role, core.count, by);
    let position = match choice.pick {
        Pick::Nobody => None,
        Pick::Head => head,
        Pick::Member => member,
        Pick::Companion => companion,
    };
    ScanResult { choice, position, looked_at }
}
