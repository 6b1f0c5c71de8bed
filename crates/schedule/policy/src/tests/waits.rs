//! Bounded waiting: a core with a clock, threads that sleep and wake up, and how long each was
//! passed over.

use proptest::prelude::*;

use super::OWN;
use crate::*;

/// The habit of a thread: runs, then sleeps (or, by 0, only makes way), all the time.
#[derive(Clone, Copy, Debug)]
struct Habit {
    group: u64,
    runs: u64,
    sleeps: u64,
    weight: u32,
}

/// A thread that waits.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    who: usize,
    vruntime: u64,
    since: u64,
    /// For how long it may be passed over, if it woke up, and for how long it was.
    slack: Option<u64>,
    passed: u64,
}

/// How a core is run.
#[derive(Clone, Copy, Debug)]
struct Rules {
    bonus: u64,
    /// None: the paper's.
    bound: Option<u64>,
    slice: u64,
    /// How often the core looks whether a turn is over.
    tick: u64,
}

/// The outcome.
#[derive(Debug, Default)]
struct Outcome {
    /// The most that a thread was passed over beyond its slack, and beyond the bound.
    beyond_slack: u64,
    beyond_bound: u64,
    /// The longest wait, and the longest of those who woke up.
    longest: u64,
    longest_woken: u64,
    aggregated: u32,
}

struct Core {
    rules: Rules,
    habits: Vec<Habit>,
    now: u64,
    least: u64,
    own: Option<Group>,
    queue: Vec<Waiting>,
    /// Who sleeps, until when, with which vruntime.
    asleep: Vec<(usize, u64, u64)>,
    outcome: Outcome,
}

impl Core {
    fn new(rules: Rules, habits: &[Habit]) -> Self {
        let new = |who| Waiting { who, vruntime: 0, since: 0, slack: None, passed: 0 };
        let queue = (0..habits.len()).map(new).collect();
        let (habits, outcome) = (habits.to_vec(), Outcome::default());
        Self { rules, habits, now: 0, least: 0, own: None, queue, asleep: Vec::new(), outcome }
    }

    fn wake(&mut self) {
        let woken: Vec<_> =
            self.asleep.extract_if(.., |(_, until, _)| *until <= self.now).collect();
        for (who, until, vruntime) in woken {
            let habit = self.habits[who];
            let vruntime = vruntime.max(self.least.saturating_sub(self.rules.slice / 2));
            let slack = self.rules.bound.map(|bound| {
                let turn = habit.runs.min(self.rules.slice);
                let slack = slack_ns(bound, habit.weight, self.rules.slice / 2, turn);
                u64::try_from(slack).expect("no thread wakes up late")
            });
            self.queue.push(Waiting { who, vruntime, since: until, slack, passed: 0 });
        }
    }

    /// Who runs next and for how long at most.
    fn choose(&mut self) -> (usize, u64) {
        self.queue.sort_by_key(|waiting| waiting.vruntime);
        let bonus_ns = self.rules.bonus.min(self.rules.bound.unwrap_or(BONUS_MAX));
        let by = Tunables { bonus_ns, ..Tunables::default() };
        let mut scan = Scan::new(self.own, None);
        let (mut head, mut member) = (0, 0);
        for (position, waiting) in self.queue.iter().enumerate() {
            let habit = self.habits[waiting.who];
            let left = |slack| slack as i64 - waiting.passed as i64;
            let slack_ns = waiting.slack.map_or(UNHURRIED as i64, left);
            let wait = Wait { slack_ns, turn_ns: habit.runs.min(self.rules.slice) };
            let group = Group::new(habit.group);
            let seen = scan.see_within(Thread { vruntime_ns: waiting.vruntime, group }, wait, &by);
            head = if seen.head { position } else { head };
            member = if seen.member { position } else { member };
            if seen.enough {
                break;
            }
        }
        let choice = scan.choose(Role::Alone, 0, &by);
        match choice.pick {
            Pick::Member => (member, choice.turn_ns),
            _ => (head, choice.turn_ns),
        }
    }

    fn turn(&mut self) {
        self.wake();
        if self.queue.is_empty() {
            self.now = self.asleep.iter().map(|(_, until, _)| *until).min().expect("somebody");
            return;
        }
        let (position, most) = self.choose();
        let chosen = self.queue.remove(position);
        let habit = self.habits[chosen.who];
        let most = most.min(self.rules.slice).div_ceil(self.rules.tick) * self.rules.tick;
        // A thread that sleeps may run longer than it is expected to.
        let ran = (habit.runs * if habit.sleeps > 0 { 2 } else { 1 }).min(most);
        self.least = self.least.max(
            self.queue.first().map_or(chosen.vruntime, |first| first.vruntime.min(chosen.vruntime)),
        );
        self.outcome.longest = self.outcome.longest.max(self.now - chosen.since);
        // At first nobody has slept.
        if habit.sleeps > 0 && chosen.since > 0 {
            self.outcome.longest_woken = self.outcome.longest_woken.max(self.now - chosen.since);
        }
        self.outcome.aggregated += u32::from(position > 0);
        for waiting in &mut self.queue[..position] {
            waiting.passed += ran;
            if let (Some(slack), Some(bound)) = (waiting.slack, self.rules.bound) {
                let beyond = |most: u64| waiting.passed.saturating_sub(most);
                self.outcome.beyond_slack = self.outcome.beyond_slack.max(beyond(slack));
                self.outcome.beyond_bound = self.outcome.beyond_bound.max(beyond(bound));
            }
        }
        self.now += ran;
        self.own = Group::new(habit.group);
        let vruntime = chosen.vruntime + ran * 100 / u64::from(habit.weight);
        match habit.sleeps {
            0 => self.queue.push(Waiting { vruntime, since: self.now, slack: None, ..chosen }),
            sleeps => self.asleep.push((chosen.who, self.now + sleeps, vruntime)),
        }
    }
}

fn outcome(rules: Rules, habits: &[Habit], turns: u32) -> Outcome {
    let mut core = Core::new(rules, habits);
    for _ in 0..turns {
        core.turn();
    }
    core.outcome
}

fn hog(group: u64) -> Habit {
    Habit { group, runs: 4_000, sleeps: 0, weight: 100 }
}

#[test]
fn a_brief_thread_is_passed_over_within_the_bound() {
    // Microseconds: six threads of a group that yield each 500, and one that wakes up each 10 000
    // for 100, as one that answers requests.
    let group = Habit { runs: 500, ..hog(1) };
    let brief = Habit { group: 2, runs: 100, sleeps: 10_000, weight: 100 };
    let habits = [vec![group; 6], vec![brief], vec![Habit { group: 3, ..group }; 6]].concat();
    let rules = |bound| Rules { bonus: 50_000, bound, slice: 4_000, tick: 100 };
    let (paper, bounded) =
        (outcome(rules(None), &habits, 5_000), outcome(rules(Some(20_000)), &habits, 5_000));
    assert_eq!((bounded.beyond_slack, bounded.beyond_bound), (0, 0), "{bounded:?}");
    assert!(paper.longest_woken > 30_000, "by the bonus: {paper:?}");
    assert!(bounded.longest_woken < 25_000, "{bounded:?}");
    assert!(bounded.aggregated > 2_000, "{bounded:?}");
}

#[test]
fn the_head_runs_where_it_has_no_slack_and_a_member_no_longer_than_that() {
    let by = Tunables::default();
    let choice = |slack_ns, turn_ns| {
        let mut scan = Scan::new(Some(OWN), None);
        for (vruntime_ns, group) in [(0, None), (1, Some(OWN))] {
            scan.see_within(Thread { vruntime_ns, group }, Wait { slack_ns, turn_ns }, &by);
        }
        let choice = scan.choose(Role::Master, 0, &by);
        (choice.pick, choice.publish, choice.turn_ns)
    };
    assert_eq!(choice(5, 5), (Pick::Member, Publish::Own, 5));
    assert_eq!(choice(5, 6), (Pick::Head, Publish::Withdraw, UNHURRIED));
    assert_eq!(choice(0, 0), (Pick::Head, Publish::Withdraw, UNHURRIED));
    assert_eq!(choice(-1, 0).0, Pick::Head);
}

#[test]
fn slack_is_by_credit_turn_and_weight() {
    let (bound, credit, brief) = (20_000_000, 2_000_000, 100_000);
    assert_eq!(slack_ns(bound, 100, credit, brief), 2_000_000);
    assert_eq!(slack_ns(bound, 100, credit, 1_000_000), 4_000_000, "it runs for longer");
    assert_eq!(slack_ns(bound, 100, credit, 9_000_000), bound as i64, "never more than the bound");
    assert_eq!(slack_ns(1_000_000, 100, credit, brief), 1_000_000, "nor by the credit");
    assert_eq!(slack_ns(bound, 400, credit, brief), 500_000, "four times the weight");
    assert_eq!(slack_ns(bound, 10, credit, brief), 2_000_000, "not more for less");
    assert_eq!(slack_ns(bound, 0, credit, brief), 2_000_000, "no weight is the usual");
    assert_eq!(slack_ns(0, 100, credit, brief), 0);
    assert_eq!(slack_ns(u64::MAX, 1, u64::MAX, u64::MAX), i64::MAX);
    assert_eq!(slack_ns(u64::MAX, 10_000, 0, u64::MAX), i64::MAX / 100);
}

fn habits() -> impl Strategy<Value = Vec<Habit>> {
    let habit = (0..4_u64, 1..5_000_u64, prop_oneof![Just(0), 1..30_000_u64], 20..400_u32);
    let habit =
        habit.prop_map(|(group, runs, sleeps, weight)| Habit { group, runs, sleeps, weight });
    prop::collection::vec(habit, 2..12)
}

proptest! {
    /// Nobody who wakes up is passed over for longer than its slack, and so than the bound, but for
    /// the tick that a turn may last beyond its end.
    #[test]
    fn aggregation_spends_slack_only(
        habits in habits(),
        bonus in prop_oneof![Just(50_000), 0..200_000_u64],
        bound in 0..60_000_u64,
        tick in 1..4_000_u64,
    ) {
        let rules = Rules { bonus, bound: Some(bound), slice: 4_000, tick };
        let outcome = outcome(rules, &habits, 400);
        prop_assert!(outcome.beyond_slack <= tick, "{outcome:?}");
        prop_assert!(outcome.beyond_bound <= tick, "{outcome:?}");
    }

    /// A thread that ran ahead of its share pays for it to each of the others: they catch up with
    /// it, may get as far ahead, and have their turns.
    #[test]
    fn running_ahead_is_paid_within_the_bound(
        groups in prop::collection::vec(0..3_u64, 2..10),
        bound in 0..100_000_u64,
    ) {
        let rules = Rules { bonus: 500_000, bound: Some(bound), slice: 4_000, tick: 1 };
        let habits: Vec<Habit> = groups.iter().map(|&group| hog(group)).collect();
        let others = groups.len() as u64 - 1;
        let outcome = outcome(rules, &habits, 600);
        prop_assert!(outcome.longest <= 2 * (bound + 4_000) * others, "{outcome:?}");
    }

    /// Stopping at ENOUGH changes nothing where threads have bounds either.
    #[test]
    fn looking_beyond_a_thread_that_is_due_changes_nothing(
        threads in prop::collection::vec((0..40_u64, 0..3_u64, -1..20_i64, 0..20_u64), 0..12),
        bonus in 0..20_u64,
        slave: bool,
    ) {
        let by = Tunables { bonus_ns: bonus, ..Tunables::default() };
        let mut threads = threads;
        threads.sort_by_key(|(vruntime_ns, ..)| *vruntime_ns);
        let role = if slave { Role::Slave } else { Role::Master };
        let shared = if slave { Group::new(2) } else { None };
        let (mut early, mut late) = (Scan::new(Some(OWN), shared), Scan::new(Some(OWN), shared));
        let mut enough = false;
        for (vruntime_ns, group, slack_ns, turn_ns) in threads {
            let thread = Thread { vruntime_ns, group: Group::new(group) };
            let wait = Wait { slack_ns, turn_ns };
            late.see_within(thread, wait, &by);
            enough = enough || early.see_within(thread, wait, &by).enough;
        }
        prop_assert_eq!(early.choose(role, 0, &by), late.choose(role, 0, &by));
    }
}
