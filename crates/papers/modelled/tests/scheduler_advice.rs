//! The rule of `workahead scheduler advise`, held against the modelled machine of Yamada and
//! Kusakabe: it must say no where ITAS harms, and not where it helps most. Nothing of the rule is
//! fitted to these outcomes.

use workahead_modelled::ModelledEngine;
use workahead_scheduler::{Advice, CacheLevel, GroupLoad, GroupedLoad};
use workahead_simulator::preset::Preset;
use workahead_study::engine::{Engine, Sample, Stop};
use workahead_study::run_plan::RunPlan;
use workahead_study::spec::Spec;

/// sysbench's memory programs.
#[derive(Debug, Clone, Copy)]
struct Load {
    programs: usize,
    /// Of each program.
    threads: usize,
    block_bytes: u64,
    scope: &'static str,
    between: &'static str,
}

const MACHINE: &str = "core2quad";
/// Bytes that all passes of a load touch.
const TOTAL_BYTES: u64 = 128 << 20;
/// The paper's bonus bounds how long a group goes on.
const BONUS_S: f64 = 0.050;
/// A change of the time that counts.
const HARM: f64 = 0.01;
const HELP: f64 = 0.10;

impl Load {
    fn run(self, scheduler: &str) -> Sample {
        let Load { programs, threads, block_bytes, scope, between } = self;
        let text = format!(
            "title = \"t\"\nquestion = \"q\"\nengine = \"modelled\"\nseed = 7\n[workload]\n\
             machine = \"{MACHINE}\"\nworkload = \"sysbench-memory\"\nprograms = {programs}\n\
             threads = {threads}\nblock_bytes = {block_bytes}\nscope = \"{scope}\"\n\
             between = \"{between}\"\ntotal_bytes = {TOTAL_BYTES}\nscheduler = \"{scheduler}\"\n"
        );
        let spec = Spec::parse("test", &text).expect("a study");
        let cell = &RunPlan::new(&spec).cells[0];
        let mut engine = ModelledEngine::default();
        engine.check(cell).expect("it can be run");
        engine.run(cell, &Stop::new()).expect("it runs")
    }

    /// What an observer sees under fair queueing.
    fn seen(self, fair: &Sample, preset: &Preset) -> GroupedLoad {
        let cpus = f64::from(preset.cpus());
        let queue = self.programs as f64 * (self.threads as f64 / cpus);
        let own = self.threads as f64 / cpus;
        let chance = if own > 1.0 { (queue - own) / (queue - 1.0) } else { 0.0 };
        let shared = if self.scope == "global" { 1 } else { self.threads as u64 };
        let group = GroupLoad {
            cpu_s: fair.wall_s * cpus / self.programs as f64,
            turns: (fair.measures["switches"] / self.programs as f64).max(1.0),
            chance,
            working_set_bytes: Some(self.block_bytes * shared),
        };
        let groups = vec![group; self.programs];
        GroupedLoad { cpus: preset.cpus() as usize, waiting: queue - 1.0, groups }
    }
}

/// The last-level cache, whose lines come as fast as the model's memory gives them.
fn caches(preset: &Preset) -> Vec<CacheLevel> {
    let last = preset.cache.last().expect("it has caches");
    let in_flight = f64::from(preset.core.outstanding);
    let line_ns = (preset.memory.latency / in_flight).max(preset.memory.transfer) / preset.ghz;
    vec![CacheLevel { level: 2, bytes: last.bytes, cpus: last.cores as usize, line_ns }]
}

#[test]
fn it_says_no_where_aggregation_harms() {
    let preset = Preset::named(MACHINE).expect("a machine");
    let (mut harmed, mut refused, mut helped, mut found) = (0, 0, 0, 0);
    for load in loads() {
        let [fair, itas] = ["cfs", "itas"].map(|scheduler| load.run(scheduler));
        let won = 1.0 - itas.wall_s / fair.wall_s;
        let advice: Advice = load.seen(&fair, &preset).advice(&caches(&preset), BONUS_S);
        println!("{won:+.3} {:.3} {:?} {load:?}", advice.gain, advice.obstacle);
        harmed += usize::from(won < -HARM);
        refused += usize::from(won < -HARM && advice.obstacle.is_some());
        helped += usize::from(won > HELP);
        found += usize::from(won > HELP && advice.obstacle.is_none());
    }
    println!("harmed {harmed}, refused {refused}; helped {helped}, found {found}");
    assert!(harmed > 0 && 10 * refused >= 9 * harmed, "{refused} of {harmed}");
    assert!(helped > 0 && 10 * found >= 7 * helped, "{found} of {helped}");
}

/// All, or those that differ most.
fn loads() -> Vec<Load> {
    let all = std::env::var_os("WORKAHEAD_CELLS").is_some();
    let mut loads = Vec::new();
    for (programs, threads) in [(10, 16), (2, 16), (10, 4), (1, 16)] {
        for block_kb in [16, 64, 512, 1024, 2048, 8192] {
            for (scope, between) in
                [("global", "yield"), ("local", "yield"), ("global", "go-on"), ("global", "sleep")]
            {
                let differs = matches!(
                    (programs, threads, block_kb, scope, between),
                    (2, 16, 64 | 2048, "global", "sleep")
                        | (2, 16, 512, "local", "yield")
                        | (10, 16, 1024, "global", "yield")
                );
                if all || differs {
                    let block_bytes = block_kb << 10;
                    loads.push(Load { programs, threads, block_bytes, scope, between });
                }
            }
        }
    }
    loads
}
