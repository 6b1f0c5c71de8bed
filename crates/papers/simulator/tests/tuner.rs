//! The tuner on a modelled load, compared with all settings by hand (A29).

use std::cell::Cell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::atomic::AtomicBool;

use workahead_policy::{Outcome, Tunables, Tuner};
use workahead_simulator::core::Processor;
use workahead_simulator::drivers::drive_by;
use workahead_simulator::drivers::sysbench::{Memory, Scope, background};
use workahead_simulator::op::{Call, Script};
use workahead_simulator::preset::Preset;
use workahead_simulator::run::Thread;
use workahead_simulator::scheduler::{
    Discipline, Fair, Group, Role, RoleAssignment, Scheduler, Task, Tunables as Set, WEIGHT,
};
use workahead_simulator::ticks::cycles;

const PROGRAMS: u64 = 4;
const THREADS: usize = 8;
/// Everything scaled by a sixteenth, so that each thread has many turns: blocks of 1 MB in
/// last-level caches of 4 MB, and a fiftieth of Linux's slices.
const BLOCK: u64 = (1 << 20) / 16;
const L2: u64 = (4 << 20) / 16;
const SCALE: u64 = 50 * 16;
const PASSES: u64 = 384;

/// Four programs whose threads share a block each, and a loop on every core of a Core 2 Quad.
fn tasks() -> Vec<Task<'static>> {
    let left = Rc::new(Cell::new(PASSES));
    let mut tasks = Vec::new();
    let mut add = |script: Box<dyn Script>, space: u64, cpu: usize, is_loop: bool| {
        let thread = Thread { script, space: space as u16, attends: is_loop };
        let group = Group::new(1 + space);
        tasks.push(Task { thread, cpu, weight: WEIGHT, group, working_set_bytes: BLOCK });
    };
    for at in 0..PROGRAMS {
        let program = Memory {
            base: (1 + at) << 32,
            block_bytes: BLOCK,
            element_bytes: 4,
            scope: Scope::Global,
            writes: true,
            then: Some(Call::Yield),
        };
        // Each CPU has the programs in a different order.
        let scripts = program.threads(THREADS, &left).enumerate();
        scripts.for_each(|(thread, script)| add(script, at, (thread + at as usize) % 4, false));
    }
    for cpu in 0..4 {
        let (script, _) = background((100 + cpu) << 32, BLOCK);
        add(script, 100 + cpu, cpu as usize, true);
    }
    tasks
}

fn scheduler(bonus_ns: u64, limit: u32) -> Scheduler {
    let usual = Fair::linux_2_6_24(4);
    let fair = Fair {
        latency_ns: usual.latency_ns / SCALE,
        granularity_ns: usual.granularity_ns / SCALE,
        wakeup_ns: usual.wakeup_ns / SCALE,
    };
    let assignment = |cpu| RoleAssignment {
        role: if cpu == 0 { Role::Master } else { Role::Slave },
        channel: 0,
    };
    let tunables = Set { bonus_ns, limit, ..Set::default() };
    let discipline = Discipline::Aggregating { tunables, roles: (0..4).map(assignment).collect() };
    Scheduler { fair, discipline, switch: 3000.0, delay_max_ns: None }
}

/// Outcomes by bonus and limit.
#[derive(Default)]
struct Load(BTreeMap<(u64, u32), Outcome>);

impl Load {
    /// Passes a second, and the longest wait of a loop.
    fn outcome(&mut self, bonus_ns: u64, limit: u32) -> Outcome {
        *self.0.entry((bonus_ns, limit)).or_insert_with(|| {
            let mut preset = Preset::named("core2quad").unwrap();
            preset.cache.last_mut().unwrap().bytes = L2;
            let mut processor = Processor::new(&preset).unwrap();
            let tasks = tasks();
            let loops = tasks.len() - 4;
            let (by, stop) = (scheduler(bonus_ns, limit), AtomicBool::new(false));
            let (driven, figures) = drive_by(&mut processor, tasks, &by, &stop);
            let ns = |ticks| cycles(ticks) / preset.ghz;
            let waited = figures.tasks[loops..].iter().map(|task| task.waited_max).max();
            Outcome {
                objective: PASSES as f64 * 1e9 / ns(driven.run.ticks),
                delay_ns: ns(waited.unwrap()) as u64,
            }
        })
    }
}

/// The result is within 5 % of the best of the settings that an operator would try, and within the
/// allowed delay.
#[test]
fn it_ends_within_5_percent_of_the_best_by_hand() {
    let slice_ns = Fair::linux_2_6_24(4).granularity_ns / SCALE;
    let mut load = Load::default();
    let bonuses =
        (0..15).step_by(2).map(|power| if power == 0 { 0 } else { (slice_ns / 8) << (power - 1) });
    let by_hand: Vec<(u64, u32)> =
        bonuses.flat_map(|bonus| [1, 16, 256].map(|limit| (bonus, limit))).collect();
    let tried: Vec<Outcome> =
        by_hand.iter().map(|(bonus, limit)| load.outcome(*bonus, *limit)).collect();
    let plain = load.outcome(0, 1);
    for delay_max in [u64::MAX, plain.delay_ns * 7 / 5] {
        let mut tuner = Tuner::new(Tunables::default(), slice_ns, delay_max);
        while let Some(proposal) = tuner.proposal() {
            tuner.learn(load.outcome(proposal.bonus_ns, proposal.limit));
        }
        let (found, outcome) = tuner.best().unwrap();
        let allowed = tried.iter().filter(|outcome| outcome.delay_ns <= delay_max);
        let best = allowed.map(|outcome| outcome.objective).fold(0.0, f64::max);
        println!(
            "bonus {} limit {}: {:.0} passes/s, delay {} us; by hand {best:.0}, plain {:.0}, {} us; \
             {} trials",
            found.bonus_ns,
            found.limit,
            outcome.objective,
            outcome.delay_ns / 1000,
            plain.objective,
            plain.delay_ns / 1000,
            tuner.trials()
        );
        assert!(outcome.objective >= 0.95 * best, "{found:?}: {outcome:?}, by hand {best}");
        assert!(outcome.delay_ns <= delay_max && best > 1.05 * plain.objective, "{outcome:?}");
    }
}
