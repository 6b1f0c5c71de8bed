//! IP1: scans the queue of a core for B, C and H, and chooses among them.

use std::num::NonZeroU64;

use crate::ffi::{self, COMPANION, ENOUGH, HEAD, MEMBER, OVERDUE, RawThread, View};
use crate::{Choice, Pick, Reading, Role, Tunables, UNHURRIED};

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
pub struct CandidateRoles {
    /// The head so far (B, F).
    pub head: bool,
    /// The member of the own group so far (C, G).
    pub member: bool,
    /// The companion so far (H).
    pub companion: bool,
    /// Threads after it in ascending vruntime can't be chosen, by the bonus, by a thread's slack or
    /// for candidates before them: the scan may stop, unless the reading is literal.
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
        let (own, shared) = (number(own), number(shared));
        Self { view: View { own, shared, slack: UNHURRIED.cast_signed(), ..View::default() } }
    }

    /// Shows a thread of the queue. Threads may come in any order; in ascending vruntime the look
    /// can stop early.
    pub fn see(&mut self, thread: Thread, tunables: &Tunables) -> CandidateRoles {
        self.see_within(thread, Wait::default(), tunables)
    }

    /// Shows a thread with a bound to its wait. Threads come in ascending vruntime: those shown
    /// after it pass over it, and only for as long as its slack lasts.
    ///
    /// ```
    /// use workahead_policy::{Group, Pick, Role, Scan, Thread, Tunables, Wait};
    /// let group = Group::new(7);
    /// let by = Tunables::default();
    /// let pick = |slack_ns| {
    ///     let mut scan = Scan::new(group, None);
    ///     let turn_ns = 1_000_000;
    ///     let wait = Wait { slack_ns, turn_ns };
    ///     scan.see_within(Thread { vruntime_ns: 10, group: None }, wait, &by);
    ///     scan.see_within(Thread { vruntime_ns: 16, group }, wait, &by);
    ///     scan.choose(Role::Alone, 0, &by).pick
    /// };
    /// assert_eq!((pick(1_000_000), pick(999_999)), (Pick::Member, Pick::Head));
    /// ```
    pub fn see_within(
        &mut self,
        thread: Thread,
        wait: Wait,
        tunables: &Tunables,
    ) -> CandidateRoles {
        seen(ffi::see(&mut self.view, &raw(thread, wait), tunables.reach_ns()))
    }

    /// Shows the thread that ran last, where it could go on: it doesn't count as a member. Shown
    /// last, it loses to the head of the queue at equal vruntime, as when CFS queues it again.
    pub fn see_current(&mut self, thread: Thread, tunables: &Tunables) -> CandidateRoles {
        self.see_current_within(thread, Wait::default(), tunables)
    }

    /// The same where threads of the queue have bounds: it goes on before them for as long as their
    /// slack lasts.
    pub fn see_current_within(
        &mut self,
        thread: Thread,
        wait: Wait,
        by: &Tunables,
    ) -> CandidateRoles {
        seen(ffi::see_current(&mut self.view, &raw(thread, wait), by.reach_ns()))
    }

    /// Marks that a thread waits longer than the scheduler promises: the head is chosen, and in its
    /// place the caller may run the thread that has waited longest.
    pub fn overdue(&mut self) {
        self.view.have |= OVERDUE;
    }

    /// Decides. `count` is `agg_count` of the group that ran last, on this core.
    #[must_use]
    pub fn choose(&self, role: Role, count: u32, tunables: &Tunables) -> Choice {
        ffi::choose(&self.view, role, count, tunables).into()
    }
}

/// How long a thread may wait, and will make others wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wait {
    /// Nanoseconds that it may still wait for others' sake ([`crate::slack_ns`] when it wakes up,
    /// less as it waits); 0 or less when it is due.
    pub slack_ns: i64,
    /// Nanoseconds that it is expected to run.
    pub turn_ns: u64,
}

impl Default for Wait {
    /// Without a bound: the paper's.
    fn default() -> Self {
        Self { slack_ns: UNHURRIED.cast_signed(), turn_ns: 0 }
    }
}

fn raw(thread: Thread, wait: Wait) -> RawThread {
    let group = thread.group.map_or(0, Group::get);
    let Wait { slack_ns: slack, turn_ns: turn } = wait;
    RawThread { vruntime: thread.vruntime_ns, group, slack, turn }
}

fn seen(bits: u32) -> CandidateRoles {
    let has = |bit| bits & bit != 0;
    CandidateRoles {
        head: has(HEAD),
        member: has(MEMBER),
        companion: has(COMPANION),
        enough: has(ENOUGH),
    }
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
