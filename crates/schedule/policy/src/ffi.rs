//! The header's functions as C compiled them, and its structs as it lays them out.

use crate::{Reading, Role, Tunables};

/// `struct itas_tunables`.
#[repr(C)]
struct RawTunables {
    bonus: u64,
    companion_bonus: u64,
    limit: u32,
    reading: u32,
}

/// `struct itas_thread`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct RawThread {
    pub(crate) vruntime: u64,
    pub(crate) group: u64,
    pub(crate) slack: i64,
    pub(crate) turn: u64,
}

/// `struct itas_view`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct View {
    pub(crate) own: u64,
    pub(crate) shared: u64,
    pub(crate) head: u64,
    pub(crate) member: u64,
    pub(crate) companion: u64,
    pub(crate) slack: i64,
    pub(crate) member_slack: i64,
    pub(crate) companion_slack: i64,
    pub(crate) have: u32,
    pub(crate) reserved: u32,
}

/// `struct itas_choice`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RawChoice {
    pub(crate) pick: u32,
    pub(crate) count: u32,
    pub(crate) whose: u32,
    pub(crate) publish: u32,
    pub(crate) turn: u64,
}

const _: () = {
    assert!(size_of::<RawTunables>() == 24, "as in itas.c");
    assert!(size_of::<RawThread>() == 32, "as in itas.c");
    assert!(size_of::<View>() == 72, "as in itas.c");
    assert!(size_of::<RawChoice>() == 24, "as in itas.c");
};

/// `enum itas_candidate`.
pub(crate) const HEAD: u32 = 1;
pub(crate) const MEMBER: u32 = 2;
pub(crate) const COMPANION: u32 = 4;
pub(crate) const OVERDUE: u32 = 8;
pub(crate) const ENOUGH: u32 = 16;

unsafe extern "C" {
    safe fn workahead_itas_bonus_of_slice(slice: u64, per_mille: u32) -> u64;
    safe fn workahead_itas_before(a: u64, b: u64) -> i32;
    safe fn workahead_itas_beats(candidate: u64, rival: u64, bonus: u64) -> i32;
    safe fn workahead_itas_slack(bound: u64, weight: u32, credit: u64, turn: u64) -> i64;
    safe fn workahead_itas_see(view: &mut View, thread: &RawThread, reach: u64) -> u32;
    safe fn workahead_itas_see_current(view: &mut View, thread: &RawThread, reach: u64) -> u32;
    safe fn workahead_itas_choose(
        view: &View,
        role: u32,
        count: u32,
        tunables: &RawTunables,
        choice: &mut RawChoice,
    );
    safe fn workahead_itas_count_after(count: u32, change: u32) -> u32;
}

/// A bonus in thousandths of a time slice of `slice_ns`, at most [`crate::BONUS_MAX`]: the
/// unit that users understand (vruntime in nanoseconds is "too fine-grained", section on TAS).
#[must_use]
pub fn bonus_of_slice(slice_ns: u64, per_mille: u32) -> u64 {
    workahead_itas_bonus_of_slice(slice_ns, per_mille)
}

/// Whether vruntime `a` comes before `b`, which wrap around.
#[must_use]
pub fn before(a: u64, b: u64) -> bool {
    workahead_itas_before(a, b) != 0
}

/// Eq. 2 to 5: whether `rival > candidate − bonus`, strictly, for vruntimes that wrap around.
#[must_use]
pub fn beats(candidate: u64, rival: u64, bonus_ns: u64) -> bool {
    workahead_itas_beats(candidate, rival, bonus_ns) != 0
}

/// How long a thread that wakes up may be passed over, nanoseconds, beside what it waits by its
/// turn in the fair order: by the `credit_ns` that sleeping has earned it, or four times the
/// `turn_ns` for which it is going to run. It is at most `bound_ns`, and less by its weight (100 is
/// that of nice 0), as a request of EEVDF is due.
///
/// ```
/// use workahead_policy::slack_ns;
/// assert_eq!(slack_ns(10_000_000, 100, 2_000_000, 100_000), 2_000_000);
/// assert_eq!(slack_ns(10_000_000, 100, 2_000_000, 900_000), 3_600_000, "it runs for longer");
/// assert_eq!(slack_ns(10_000_000, 400, 2_000_000, 100_000), 500_000, "four times the weight");
/// ```
#[must_use]
pub fn slack_ns(bound_ns: u64, weight: u32, credit_ns: u64, turn_ns: u64) -> i64 {
    workahead_itas_slack(bound_ns, weight, credit_ns, turn_ns)
}

pub(crate) fn see(view: &mut View, thread: &RawThread, reach: u64) -> u32 {
    workahead_itas_see(view, thread, reach)
}

pub(crate) fn see_current(view: &mut View, thread: &RawThread, reach: u64) -> u32 {
    workahead_itas_see_current(view, thread, reach)
}

pub(crate) fn choose(view: &View, role: Role, count: u32, tunables: &Tunables) -> RawChoice {
    let role = match role {
        Role::Alone => 0,
        Role::Master => 1,
        Role::Slave => 2,
    };
    let reading = match tunables.reading {
        Reading::Corrected => 0,
        Reading::Literal => 1,
    };
    let tunables = RawTunables {
        bonus: tunables.bonus_ns,
        companion_bonus: tunables.companion_bonus_ns.unwrap_or(tunables.bonus_ns),
        limit: tunables.limit,
        reading,
    };
    let mut choice = RawChoice::default();
    workahead_itas_choose(view, role, count, &tunables, &mut choice);
    choice
}

pub(crate) fn count_after(count: u32, change: u32) -> u32 {
    workahead_itas_count_after(count, change)
}
