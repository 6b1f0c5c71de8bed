//! The header against the oracle: every branch in both readings, the figures of the paper, and the
//! arithmetic where it wraps.

mod waits;

use std::collections::BTreeSet;

use proptest::prelude::*;

use crate::oracle::{self, State};
use crate::*;

const OWN: Group = Group::new(1).unwrap();
const SHARED: Group = Group::new(2).unwrap();

/// The header's decision in a state whose vruntimes start at `origin`.
fn by_header(state: &State, origin: u64) -> Choice {
    let at = |vruntime: i128| origin.wrapping_add(u64::try_from(vruntime).expect("not negative"));
    let tunables = Tunables {
        bonus_ns: u64::try_from(state.bonus).expect("not negative"),
        companion_bonus_ns: Some(u64::try_from(state.companion_bonus).expect("not negative")),
        limit: state.limit,
        reading: state.reading,
    };
    let shared = (state.role == Role::Slave).then_some(SHARED);
    let mut scan = Scan::new(Some(OWN), shared);
    let threads = [(state.b, None), (state.c, Some(OWN)), (state.h, Some(SHARED))];
    let turn_ns = u64::try_from(state.turn).expect("not negative");
    for (vruntime, group) in threads {
        if let Some(vruntime) = vruntime {
            let slack_ns = if group.is_none() { state.slack } else { i128::from(UNHURRIED) };
            let wait = Wait { slack_ns: i64::try_from(slack_ns).expect("small"), turn_ns };
            scan.see_within(Thread { vruntime_ns: at(vruntime), group }, wait, &tunables);
        }
    }
    if state.overdue {
        scan.overdue();
    }
    scan.choose(state.role, state.count, &tunables)
}

/// Every state of small numbers: presence, order and distance of the three candidates (the head is
/// never behind another), counts around limits, bonuses around distances, roles, readings; and the
/// head's slack around the others' turn.
fn states() -> impl Iterator<Item = State> {
    let mut all = Vec::new();
    for (count, limit) in pairs(0..3_u32) {
        for (bonus, companion_bonus) in pairs(0..4_i128).filter(|(a, b)| a.abs_diff(*b) < 2) {
            for (c, h) in pairs([None, Some(0), Some(1), Some(2), Some(3)].into_iter()) {
                let b = Some(0);
                for (role, reading) in modes() {
                    for (overdue, (slack, turn)) in WAITS {
                        all.push(State {
                            role,
                            reading,
                            b,
                            c,
                            h,
                            overdue,
                            count,
                            limit,
                            bonus,
                            companion_bonus,
                            slack,
                            turn,
                        });
                    }
                }
            }
        }
    }
    let empty: Vec<State> = all
        .iter()
        .filter(|state| state.c.is_none() && state.h.is_none())
        .map(|state| State { b: None, ..*state })
        .collect();
    all.into_iter().chain(empty)
}

/// Whether the head is overdue, its slack and the turn of the others.
const WAITS: [(bool, (i128, i128)); 8] = [
    (false, (PAPER, 0)),
    (true, (PAPER, 0)),
    (false, (2, 1)),
    (false, (2, 2)),
    (false, (2, 3)),
    (false, (0, 0)),
    (false, (-1, 0)),
    (true, (2, 3)),
];
/// The slack of everybody in the paper.
const PAPER: i128 = UNHURRIED as i128;

fn pairs<T: Copy>(values: impl Iterator<Item = T> + Clone) -> impl Iterator<Item = (T, T)> {
    values.clone().flat_map(move |one| values.clone().map(move |other| (one, other)))
}

fn modes() -> impl Iterator<Item = (Role, Reading)> {
    let readings = [Reading::Corrected, Reading::Literal];
    [Role::Alone, Role::Master, Role::Slave]
        .into_iter()
        .flat_map(move |role| readings.map(|reading| (role, reading)))
}

#[test]
fn every_branch_is_as_the_text_has_it() {
    let mut paths = BTreeSet::new();
    for state in states() {
        let (expected, path) = oracle::decide(&state);
        paths.insert((path, format!("{:?}", state.reading)));
        assert_eq!(by_header(&state, 1_000), expected, "{path}: {state:?}");
    }
    let slave = [
        "IP6.1",
        "IP6.1 IP6.2 true",
        "IP6.1 IP6.2 false",
        "IP6.2 true",
        "IP6.2 false",
        "IP6.3 true",
        "IP6.3 false",
        "IP6 neither",
    ];
    let others =
        ["TP1 false", "TP1 TP2 false", "TP1 TP2 TP3", "IP2 IP5", "IP2 IP3 IP4", "IP2 IP3 IP5"];
    for path in slave.into_iter().chain(others) {
        for reading in ["Corrected", "Literal"] {
            // Literal IP6.3 requires a thread that doesn't exist: its true branch is unreachable.
            let reachable = (path, reading) != ("IP6.3 true", "Literal");
            assert_eq!(paths.contains(&(path, reading.to_owned())), reachable, "{path} {reading}");
        }
    }
}

#[test]
fn figure_1_needs_a_bonus_of_seven() {
    // E3.10: "equal to or > 7", strictly read a gap of 6 (S3.9).
    let state = |bonus| State {
        role: Role::Alone,
        reading: Reading::Corrected,
        b: Some(10),
        c: Some(16),
        h: None,
        overdue: false,
        count: 0,
        limit: 100,
        bonus,
        companion_bonus: 0,
        slack: PAPER,
        turn: 0,
    };
    assert_eq!(by_header(&state(7), 0).pick, Pick::Member);
    assert_eq!(by_header(&state(6), 0).pick, Pick::Head);
}

/// A queue of (vruntime, group number), 0 for none.
fn queue(threads: &[(u64, u64)]) -> Vec<Thread> {
    threads.iter().map(|&(vruntime_ns, g)| Thread { vruntime_ns, group: Group::new(g) }).collect()
}

#[test]
fn figure_2_makes_the_slave_follow() {
    // Master: A of group 1 ran, C waits. Slave: E of group 3 ran; F, G (3) and H (1) wait.
    let by = Tunables::default();
    let master = Core { role: Role::Master, own: Group::new(1), ..Core::default() };
    let chosen = choose(&master, queue(&[(5, 2), (9, 1)]), &by);
    assert_eq!((chosen.position, chosen.choice.publish), (Some(1), Publish::Own));
    let slave = Core {
        role: Role::Slave,
        own: Group::new(3),
        shared: Group::new(1),
        count: 4,
        current: None,
    };
    let chosen = choose(&slave, queue(&[(4, 2), (6, 3), (8, 1)]), &by);
    assert_eq!((chosen.position, chosen.choice.pick), (Some(2), Pick::Companion));
    assert_eq!(chosen.choice.count.after(slave.count), 0);
}

#[test]
fn a_head_of_the_group_counts_toward_the_limit() {
    // S3.22, B is C: aggregated while there is a bonus, and braked by the limit all the same.
    let by = Tunables { bonus_ns: 1, limit: 2, ..Tunables::default() };
    let core = |count| Core { own: Some(OWN), count, ..Core::default() };
    let alone = |count| choose(&core(count), queue(&[(5, 1), (6, 1)]), &by);
    assert_eq!((alone(0).position, alone(0).choice.pick), (Some(0), Pick::Member));
    assert_eq!((alone(2).position, alone(2).choice.pick), (Some(0), Pick::Head));
    assert_eq!(alone(2).choice.count.after(2), 0);
}

#[test]
fn a_slave_of_the_published_group_is_not_braked_by_its_own_limit() {
    // S3.22, G is H.
    let by = Tunables { limit: 0, ..Tunables::default() };
    let core =
        Core { role: Role::Slave, own: Some(OWN), shared: Some(OWN), count: 9, current: None };
    let chosen = choose(&core, queue(&[(5, 3), (7, 1)]), &by);
    assert_eq!((chosen.position, chosen.choice.pick), (Some(1), Pick::Companion));
    let unable = Tunables { bonus_ns: 0, ..by };
    assert_eq!(choose(&core, queue(&[(5, 3), (7, 1)]), &unable).position, Some(0));
}

#[test]
fn a_thread_is_no_member_for_itself() {
    let by = Tunables::default();
    let current = Thread { vruntime_ns: 8, group: Some(OWN) };
    let core = Core { own: Some(OWN), current: Some(current), ..Core::default() };
    assert_eq!(choose(&core, queue(&[(7, 0)]), &by).position, Some(0));
    assert_eq!(choose(&core, queue(&[(8, 0)]), &by).position, Some(0), "queued behind its equals");
    let goes_on = choose(&core, queue(&[(9, 0)]), &by);
    assert_eq!((goes_on.position, goes_on.choice.pick), (None, Pick::Head));
    assert_eq!(choose(&core, queue(&[(7, 0), (9, 1)]), &by).position, Some(1), "another member is");
    // But it may be in the published group.
    let slave = Core { role: Role::Slave, shared: Some(OWN), own: None, ..core };
    let follows = choose(&slave, queue(&[(7, 0)]), &by);
    assert_eq!((follows.position, follows.choice.pick), (None, Pick::Companion));
}

#[test]
fn kernel_threads_have_no_group() {
    let by = Tunables::default();
    let chosen = choose(&Core::default(), queue(&[(1, 0), (2, 0)]), &by);
    assert_eq!((chosen.position, chosen.choice.pick), (Some(0), Pick::Head));
}

#[test]
fn looking_ends_where_the_bonus_does() {
    let by = Tunables { bonus_ns: 10, ..Tunables::default() };
    let core = Core { own: Some(OWN), ..Core::default() };
    let far = queue(&[(100, 0), (105, 0), (110, 1), (111, 1), (112, 1)]);
    let chosen = choose(&core, far, &by);
    assert_eq!((chosen.position, chosen.looked_at), (Some(0), 3), "a gap of 10 is out of reach");
}

#[test]
fn a_bonus_in_thousandths_of_a_slice() {
    assert_eq!(bonus_of_slice(4_000_000, 500), 2_000_000);
    assert_eq!(bonus_of_slice(4_000_000, 12_500), 50_000_000);
    assert_eq!(bonus_of_slice(999, 1), 0);
    assert_eq!(bonus_of_slice(1_999, 500), 999);
    assert_eq!(bonus_of_slice(u64::MAX, u32::MAX), BONUS_MAX);
    assert_eq!(bonus_of_slice(u64::MAX, 0), 0);
}

#[test]
fn counts_saturate() {
    assert_eq!(Count::Increment.after(u32::MAX), u32::MAX);
    assert_eq!(Count::Increment.after(6), 7);
    assert_eq!(
        (Count::Keep.after(6), Count::Reset.after(6), Count::RaiseBonus.after(6)),
        (6, 0, 6)
    );
}

/// Runs a core for `steps` over threads that each consume `slice` per turn; returns the groups in
/// the order they ran, and how they were chosen.
fn run(groups: &[u64], slice: u64, by: &Tunables, steps: usize) -> Vec<(u64, Pick)> {
    let mut waiting = queue(&groups.iter().map(|&group| (0, group)).collect::<Vec<_>>());
    let (mut own, mut count) = (None, 0);
    let mut order = Vec::new();
    for _ in 0..steps {
        waiting.sort_by_key(|thread| thread.vruntime_ns);
        let core = Core { own, count, ..Core::default() };
        let chosen = choose(&core, waiting.iter().copied(), by);
        count = chosen.choice.count.after(count);
        let mut thread = waiting.remove(chosen.position.expect("somebody waits"));
        own = thread.group;
        order.push((own.map_or(0, Group::get), chosen.choice.pick));
        thread.vruntime_ns += slice;
        waiting.push(thread);
    }
    order
}

proptest! {
    /// Eq. 2 in integers that don't wrap, for every allowed distance.
    #[test]
    fn equations_hold_over_wrapping_vruntimes(
        rival: u64,
        gap in i64::MIN..=i64::MAX,
        bonus in prop_oneof![Just(0), Just(u64::MAX), Just(BONUS_MAX), any::<u64>()],
    ) {
        let candidate = rival.wrapping_add_signed(gap);
        let capped = i128::from(bonus.min(BONUS_MAX));
        prop_assert_eq!(beats(candidate, rival, bonus), 0 > i128::from(gap) - capped);
        prop_assert_eq!(before(candidate, rival), gap < 0);
    }

    /// The same decision at any origin of vruntimes, extremes included.
    #[test]
    fn decisions_don_t_depend_on_the_origin(
        origin: u64,
        gaps in (0..=u64::from(u32::MAX), 0..=u64::from(u32::MAX)),
        bonus in prop_oneof![Just(0), Just(BONUS_MAX), 0..=u64::from(u32::MAX)],
        counts in (any::<u32>(), prop_oneof![Just(0), Just(u32::MAX), any::<u32>()]),
        slave: bool,
    ) {
        let state = State {
            role: if slave { Role::Slave } else { Role::Master },
            reading: Reading::Corrected,
            b: Some(0),
            c: Some(gaps.0.into()),
            h: Some(gaps.1.into()),
            overdue: false,
            count: counts.0,
            limit: counts.1,
            bonus: bonus.into(),
            companion_bonus: bonus.into(),
            slack: PAPER,
            turn: 0,
        };
        prop_assert_eq!(by_header(&state, origin), oracle::decide(&state).0);
    }

    /// A25: with bonus 0 the order is that of fair queueing.
    #[test]
    fn without_a_bonus_the_head_runs(groups in prop::collection::vec(0..4_u64, 1..9)) {
        let by = Tunables { bonus_ns: 0, ..Tunables::default() };
        let order = run(&groups, 3, &by, 40);
        let fair: Vec<(u64, Pick)> =
            groups.iter().cycle().take(40).map(|&group| (group, Pick::Head)).collect();
        prop_assert_eq!(order, fair);
    }

    /// A25: a limit of L gives at most L aggregations in a row.
    #[test]
    fn the_limit_holds(groups in prop::collection::vec(0..4_u64, 1..9), limit in 0..6_u32) {
        let by = Tunables { limit, ..Tunables::default() };
        let order = run(&groups, 3, &by, 60);
        let mut in_a_row = 0;
        for (_, pick) in order {
            in_a_row = if pick == Pick::Member { in_a_row + 1 } else { 0 };
            prop_assert!(in_a_row <= limit);
        }
    }

    /// No thread falls behind by more than the bonus: vruntimes stay within bonus and one slice.
    #[test]
    fn the_bonus_bounds_unfairness(
        groups in prop::collection::vec(0..3_u64, 2..9),
        bonus in 0..50_u64,
    ) {
        let by = Tunables { bonus_ns: bonus, limit: u32::MAX, ..Tunables::default() };
        let mut turns = [0_u64; 3];
        for (group, _) in run(&groups, 5, &by, 200) {
            turns[usize::try_from(group).expect("below 3")] += 1;
        }
        let threads = |group: u64| groups.iter().filter(|other| **other == group).count() as u64;
        let shares: Vec<u64> = (0..3)
            .filter(|&group| threads(group) > 0)
            .map(|group| 5 * turns[usize::try_from(group).expect("below 3")] / threads(group))
            .collect();
        let (least, most) = (shares.iter().min().unwrap(), shares.iter().max().unwrap());
        prop_assert!(most - least <= bonus + 10, "{shares:?}");
    }

    /// Stopping at ENOUGH changes nothing, whichever other threads wait, the current one included.
    #[test]
    fn looking_further_changes_nothing(
        threads in prop::collection::vec((0..40_u64, 0..3_u64), 0..12),
        current in prop::option::of((0..40_u64, 0..3_u64)),
        bonus in 0..20_u64,
        slave: bool,
    ) {
        let by = Tunables { bonus_ns: bonus, ..Tunables::default() };
        let mut waiting = queue(&threads);
        waiting.sort_by_key(|thread| thread.vruntime_ns);
        let current = current.map(|thread| queue(&[thread])[0]);
        let role = if slave { Role::Slave } else { Role::Alone };
        let shared = slave.then_some(SHARED);
        let core = Core { role, own: Some(OWN), shared, count: 0, current };
        let mut scan = Scan::new(core.own, core.shared);
        for thread in &waiting {
            let _ = scan.see(*thread, &by);
        }
        if let Some(current) = current {
            let _ = scan.see_current(current, &by);
        }
        let early = choose(&core, waiting, &by);
        prop_assert_eq!(early.choice.pick, scan.choose(role, 0, &by).pick);
    }

    /// One count per core is as good as one per group and core (corrected reading).
    #[test]
    fn other_groups_counts_are_zero(groups in prop::collection::vec(1..4_u64, 1..9)) {
        let by = Tunables { limit: 3, ..Tunables::default() };
        let mut waiting = queue(&groups.iter().map(|&group| (0, group)).collect::<Vec<_>>());
        let mut counts = [0_u32; 4];
        let mut own: Option<Group> = None;
        for _ in 0..60 {
            waiting.sort_by_key(|thread| thread.vruntime_ns);
            let ran = own.map_or(0, |group| group.get() as usize);
            let core = Core { own, count: counts[ran], ..Core::default() };
            let chosen = choose(&core, waiting.iter().copied(), &by);
            counts[ran] = chosen.choice.count.after(counts[ran]);
            let mut thread = waiting.remove(chosen.position.expect("somebody waits"));
            own = thread.group;
            thread.vruntime_ns += 2;
            waiting.push(thread);
            let runs = own.map_or(0, |group| group.get() as usize);
            for (group, count) in counts.iter().enumerate() {
                prop_assert!(group == runs || *count == 0, "{counts:?}");
            }
        }
    }
}
