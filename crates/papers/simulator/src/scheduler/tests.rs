//! Run queues by hand, and invariants.

mod rules;

use std::sync::atomic::Ordering;

use super::*;
use crate::op::{Call, Op};
use crate::preset::tests::small;
use crate::ticks::CYCLE;

/// Computes for `uops` cycles, then makes a call, repeatedly.
pub(super) fn cycle(uops: u32, call: Option<Call>, times: u64) -> impl Iterator<Item = Op> {
    let one = move |_| {
        let work = (0..uops).map(|_| Op::Compute { uops: 1 });
        work.chain(call.map(Op::System))
    };
    (0..times).flat_map(one)
}

pub(super) fn task<'s>(cpu: usize, script: impl Iterator<Item = Op> + 's) -> Task<'s> {
    let thread = Thread { script: Box::new(script), space: 0, attends: true };
    Task { thread, cpu, weight: WEIGHT, group: None, working_set_bytes: 0 }
}

/// A task that the run waits for.
fn counted(task: Task<'_>) -> Task<'_> {
    Task { thread: Thread { attends: false, ..task.thread }, ..task }
}

fn clock(cycles: u32) -> Task<'static> {
    counted(task(3, cycle(cycles, None, 1)))
}

fn of_group(group: u64, task: Task<'_>) -> Task<'_> {
    Task { group: Group::new(group), ..task }
}

/// Slices of 10 cycles at least, of 40 together; 1 GHz.
pub(super) const FAIR: Fair = Fair { latency_ns: 40, granularity_ns: 10, wakeup_ns: 5 };

pub(super) fn by(discipline: Discipline) -> Scheduler {
    Scheduler { fair: FAIR, discipline, switch: 0.0, delay_max_ns: None }
}

fn tas(bonus_ns: u64, limit: u32) -> Discipline {
    let tunables = Tunables { bonus_ns, limit, ..Tunables::default() };
    Discipline::Aggregating { tunables, roles: vec![RoleAssignment::default(); 4] }
}

pub(super) fn ran(tasks: Vec<Task<'_>>, by: &Scheduler) -> (RunResult, Figures) {
    let mut processor = Processor::new(&small()).unwrap();
    run_tasks(&mut processor, tasks, by, &AtomicBool::new(false))
}

/// Tasks of a CPU and the cycles at which they started, without `clock` tasks.
fn order(figures: &Figures, cpu: usize) -> Vec<(u64, Option<usize>)> {
    let turns = figures.dispatches.iter().filter(|turn| turn.cpu == cpu);
    turns.map(|turn| (turn.at / CYCLE, turn.task)).collect()
}

const FOREVER: u64 = u64::MAX;
const YIELD: Option<Call> = Some(Call::Yield);

/// Weights 1, 2, 1 have slices of 10, 20, 10 cycles of 40; each then has the same vruntime, and the
/// first to return is first again.
#[test]
fn slices_go_by_weight() {
    let mut tasks: Vec<_> = (0..3).map(|_| task(0, cycle(1, None, FOREVER))).collect();
    tasks[1].weight = 2 * WEIGHT;
    tasks.push(clock(95));
    let (_, figures) = ran(tasks, &by(Discipline::Fair));
    let expected = [(0, 0), (10, 1), (30, 2), (40, 0), (50, 1), (70, 2), (80, 0), (90, 1)];
    assert_eq!(order(&figures, 0), expected.map(|(at, task)| (at, Some(task))));
    assert_eq!(figures.tasks[1].waited_max, 20 * CYCLE);
}

/// Five threads do not fit the latency: slices of 10 each, and a period of 50.
#[test]
fn slices_have_a_least() {
    let mut tasks: Vec<_> = (0..5).map(|_| task(0, cycle(1, None, FOREVER))).collect();
    tasks.push(clock(55));
    let (_, figures) = ran(tasks, &by(Discipline::Fair));
    let expected = [(0, 0), (10, 1), (20, 2), (30, 3), (40, 4), (50, 0)];
    assert_eq!(order(&figures, 0), expected.map(|(at, task)| (at, Some(task))));
}

/// A thread that slept 100 cycles has a credit of 40, not of 100, and preempts at once.
#[test]
fn sleepers_have_a_credit() {
    let sleeps = Some(Call::Sleep { cycles: 100 });
    let tasks =
        vec![task(0, cycle(1, None, FOREVER)), task(0, cycle(5, sleeps, FOREVER)), clock(300)];
    let (_, figures) = ran(tasks, &by(Discipline::Fair));
    // The first has half of 40; its vruntime is 20, then 120; the sleeper's 120 - 40.
    let expected = [(0, 0), (20, 1), (25, 0), (125, 1), (130, 0), (230, 1), (235, 0)];
    assert_eq!(order(&figures, 0), expected.map(|(at, task)| (at, Some(task))));
    assert_eq!(figures.tasks[1].waited_max, 20 * CYCLE);
}

/// Less than the wake-up granularity behind, it waits for the slice's end.
#[test]
fn a_woken_thread_may_have_to_wait() {
    let sleeps = Some(Call::Sleep { cycles: 4 });
    let tasks =
        vec![task(0, cycle(1, None, FOREVER)), task(0, cycle(18, sleeps, FOREVER)), clock(45)];
    let (_, figures) = ran(tasks, &by(Discipline::Fair));
    // It wakes at 42 with a vruntime of 18; the other has 24, 6 more; at 41 it had been 5.
    assert_eq!(order(&figures, 0), [(0, Some(0)), (20, Some(1)), (38, Some(0)), (42, Some(1))]);
    let patient = Scheduler { fair: Fair { wakeup_ns: 6, ..FAIR }, ..by(Discipline::Fair) };
    let tasks =
        vec![task(0, cycle(1, None, FOREVER)), task(0, cycle(18, sleeps, FOREVER)), clock(61)];
    let (_, figures) = ran(tasks, &patient);
    // Its slice is half of 40 again, from 38 on.
    assert_eq!(order(&figures, 0)[3..], [(58, Some(1))]);
}

/// Figure 1 of the paper: the thread of the same group lies 6 behind the head, and is chosen with a
/// bonus of 7.
#[test]
fn figure_1_needs_a_bonus_of_7() {
    for (bonus, chosen) in [(6, 0), (7, 1)] {
        let tasks = vec![
            task(0, cycle(4, YIELD, FOREVER)),
            of_group(1, task(0, cycle(10, YIELD, FOREVER))),
            of_group(1, task(0, cycle(5, YIELD, FOREVER))),
            clock(20),
        ];
        let (_, figures) = ran(tasks, &by(tas(bonus, 100)));
        let expected = [(0, 0), (4, 1), (14, 2), (19, chosen)];
        assert_eq!(order(&figures, 0), expected.map(|(at, task)| (at, Some(task))));
        assert_eq!((figures.chances, figures.taken), (2, chosen as u64 + 1));
    }
}

/// With any bonus, a group has a turn and up to `limit` aggregations, then the other.
#[test]
fn the_limit_ends_an_aggregation() {
    for limit in [1_usize, 2, 5] {
        let one = |at: u64| of_group(1 + at % 2, task(0, cycle(3, YIELD, FOREVER)));
        let tasks = (0..6).map(one).chain([clock(300)]).collect();
        let (_, figures) = ran(tasks, &by(tas(1_000_000, limit as u32)));
        let groups: Vec<usize> =
            order(&figures, 0).iter().map(|turn| turn.1.unwrap() % 2).collect();
        let rows: Vec<usize> = groups.chunk_by(|one, other| one == other).map(<[_]>::len).collect();
        assert!(rows.len() > 10 && rows[..rows.len() - 1].iter().all(|row| *row == limit + 1));
    }
}

/// The slave follows the published group; with an idle master, fairness alone.
#[test]
fn a_slave_follows_its_master() {
    let tunables = Tunables { bonus_ns: 1000, limit: 2, ..Tunables::default() };
    let assignment = |role| RoleAssignment { role, channel: 0 };
    let roles = vec![
        assignment(Role::Master),
        assignment(Role::Slave),
        assignment(Role::Slave),
        assignment(Role::Slave),
    ];
    let itas = Discipline::Aggregating { tunables, roles };
    let one = |cpu, group| of_group(group, task(cpu, cycle(10, YIELD, FOREVER)));
    // Two of group 1 on the master; the slave has one of group 2, one of 1.
    let tasks = vec![one(0, 1), one(0, 1), one(1, 2), one(1, 1), clock(65)];
    let (_, figures) = ran(tasks, &by(itas.clone()));
    // At 10 the master aggregates and publishes 1; the slave, which decides after it, takes its own
    // of 1, which continues at 20 as H, and at 30 while the master is at its limit and withdraws.
    assert_eq!(order(&figures, 0)[..3], [(0, Some(0)), (10, Some(1)), (20, Some(0))]);
    assert_eq!(order(&figures, 1)[..2], [(0, Some(2)), (10, Some(3))]);
    assert_eq!(order(&figures, 1)[2], (30, Some(2)));
    let tasks = vec![one(1, 2), one(1, 1), clock(65)];
    let (_, alone) = ran(tasks, &by(itas));
    let order: Vec<_> = order(&alone, 1).iter().map(|turn| turn.1.unwrap()).collect();
    assert_eq!(order, [0, 1, 0, 1, 0, 1, 0]);
}

/// Threads of two groups, in a different order on each CPU: gangs always run together.
#[test]
fn a_gang_runs_together() {
    let one = |at: u64| {
        let group = (at / 2 + at % 2) % 2;
        of_group(1 + group, task(at as usize / 2, cycle(1, None, FOREVER)))
    };
    let tasks = || (0..6).map(one).chain([clock(1000)]).collect();
    let (_, gang) = ran(tasks(), &by(Discipline::Gang { slot_ns: 50 }));
    let (_, fair) = ran(tasks(), &by(Discipline::Fair));
    assert!(gang.co_run * 100 >= gang.grouped * 99, "{} {}", gang.co_run, gang.grouped);
    assert!(fair.co_run * 100 <= fair.grouped * 70, "{} {}", fair.co_run, fair.grouped);
    let ran = |figures: &Figures| figures.tasks.iter().map(|task| task.ran / CYCLE).collect();
    let shares: Vec<u64> = ran(&gang);
    assert!(shares[..6].iter().all(|share| share.abs_diff(500) <= 50), "{shares:?}");
}

/// In a cache of 2048 bytes, 1500 fit beside 500 and not beside 1500.
#[test]
fn working_sets_are_fitted() {
    let mut machine = small();
    machine.cache.last_mut().unwrap().cores = 2;
    let one = |cpu, bytes| Task { working_set_bytes: bytes, ..task(cpu, cycle(1, None, FOREVER)) };
    let tasks = vec![one(0, 1500), one(0, 500), one(1, 1500), one(1, 500), clock(400)];
    let mut processor = Processor::new(&machine).unwrap();
    let fitting = by(Discipline::Fitting { reach_ns: 1000 });
    let (_, figures) = run_tasks(&mut processor, tasks, &fitting, &AtomicBool::new(false));
    assert_eq!(order(&figures, 1)[0], (0, Some(3)));
    let mut now = [0; 2];
    for turn in figures.dispatches.iter().filter(|turn| turn.cpu < 2) {
        now[turn.cpu] = [1500, 500, 1500, 500][turn.task.unwrap()];
        assert!(turn.at == 0 || now.iter().sum::<u64>() <= 2048, "{turn:?}");
    }
}

/// A client sends a request, a server on another CPU answers: neither runs while the other does.
#[test]
fn channels_wake() {
    let (ask, answer) = (Op::System(Call::Post { channel: 0 }), Call::Post { channel: 1 });
    let client = (0..3)
        .flat_map(move |_| [Op::Compute { uops: 10 }, ask, Op::System(Call::Wait { channel: 1 })]);
    let server = (0..3).flat_map(move |_| {
        [Op::System(Call::Wait { channel: 0 }), Op::Compute { uops: 7 }, Op::System(answer)]
    });
    let (ran, figures) =
        ran(vec![counted(task(0, client)), task(1, server)], &by(Discipline::Fair));
    assert_eq!(ran.ticks / CYCLE, 3 * 17);
    let expected = [(0, Some(0)), (10, None), (17, Some(0)), (27, None), (34, Some(0))];
    assert_eq!(order(&figures, 0)[..5], expected);
    assert_eq!(figures.tasks[0].waited, 0);
}

/// A switch has its cost, charged to the next thread.
#[test]
fn switches_cost() {
    let tasks = vec![task(0, cycle(1, None, FOREVER)), task(0, cycle(1, None, FOREVER)), clock(70)];
    let (ran, figures) = ran(tasks, &Scheduler { switch: 3.0, ..by(Discipline::Fair) });
    let expected = [(0, Some(0)), (20, Some(1)), (40, Some(0)), (60, Some(1))];
    assert_eq!(order(&figures, 0), expected);
    assert_eq!((figures.switches, ran.threads[0].counts.uops), (3, 2 * 17));
}

/// The operations of a task that sets the flag at its hundredth, far from its end.
fn stopping(stop: &AtomicBool) -> impl Iterator<Item = Op> {
    cycle(1, None, 100_000).enumerate().map(move |(at, op)| {
        if at == 100 {
            stop.store(true, Ordering::Relaxed);
        }
        op
    })
}

/// A single task has a slice without an end; of several, each has its turn.
#[test]
fn a_stopped_run_ends_with_what_it_did() {
    for cpus in [&[0][..], &[0, 1, 2], &[1, 1]] {
        let stop = AtomicBool::new(false);
        let tasks = cpus.iter().map(|cpu| counted(task(*cpu, stopping(&stop)))).collect();
        let mut processor = Processor::new(&small()).unwrap();
        let (ran, figures) = run_tasks(&mut processor, tasks, &by(Discipline::Fair), &stop);
        let uops: u64 = ran.threads.iter().map(|thread| thread.counts.uops).sum();
        assert!((100..1000).contains(&uops), "{cpus:?}: {uops}");
        assert_eq!(figures.tasks.len(), cpus.len());
    }
}
