//! How many memory accesses a second are modelled, and what cachegrind takes for the same ones.
//!
//! The accesses are those of a hash-join probe: a row of the input in order; a random bucket, a
//! random cell and a random row, each at an address that the one before it gave; a joined row of
//! the output in order. Nothing is left in the modelled caches of the three, so the bench is of
//! what a model takes for misses, the dear part.
//!
//! What limits it is instructions, not memory: the model's tables fit the caches of the machine it
//! runs on. Counted below cachegrind (the bench run small), an access of these takes about a
//! thousand over both machines, of which `run` and the core take 300, snooping 190 and the bus 80;
//! 40 million accesses a second leave room for some 230 at 3 GHz and three a cycle.
//!
//! Under valgrind the bench itself is what runs (`--stream N`): the same accesses, really done.
//! What its cache simulation takes is the time with it less the time without, each less what the
//! start takes.

#[path = "../../operators/benches/measure/mod.rs"]
mod measure;

use std::hint::black_box;
use std::process::{Command, Stdio};

use measure::{Asked, Case, Report, Run, in_turns};
use serde_json::json;
use workahead_machine::Machine;
use workahead_machine::cpus::CpuSet;
use workahead_operators::draws::Draws;
use workahead_operators::threads::together;
use workahead_simulator::core::Processor;
use workahead_simulator::counts::Counts;
use workahead_simulator::op::{After, Op};
use workahead_simulator::preset::Preset;
use workahead_simulator::run::{Slices, Thread, run};

/// One logical CPU with the caches of a Pentium 4, its window on.
const P4: &str = r#"
    name = "p4"
    title = "a CPU like a Pentium 4's"
    ghz = 2.8
    cores = 1
    threads = 1
    page = 4096
    core = { width = 3, window = 126, stores = 24, outstanding = 8, uops-per-instruction = 1.5 }
    cache = [
        { name = "L1D", holds = "data", bytes = 8192, ways = 4, line = 64, latency = 2 },
        { name = "L2", holds = "both", bytes = 524288, ways = 8, line = 128, latency = 18 },
    ]
    tlb = { data = { entries = 64, ways = 0, cost = 30 } }
    clears = { cost = 200, window = 100 }
    origin = { all = "for speed only" }
    [memory]
    latency = 300
    transfer = 20
    message = 4
    dirty-latency = 350
"#;

/// Four CPUs with the caches of a Pentium Pro, on one bus.
const QUAD: &str = r#"
    name = "quad"
    title = "four CPUs like Pentium Pros"
    ghz = 0.2
    cores = 4
    threads = 1
    page = 4096
    core = { width = 3, window = 40, stores = 12, outstanding = 4, uops-per-instruction = 2.0 }
    cache = [
        { name = "L1D", holds = "data", bytes = 8192, ways = 2, line = 32, latency = 3 },
        { name = "L2", holds = "both", bytes = 524288, ways = 4, line = 32, latency = 7 },
    ]
    tlb = { data = { entries = 64, ways = 4, cost = 20 } }
    clears = { cost = 0, window = 0 }
    origin = { all = "for speed only" }
    [memory]
    latency = 58
    transfer = 16
    message = 4
    outstanding = 8
    dirty-latency = 70
"#;

/// Bytes of buckets, cells and rows: each far more than any cache of the models.
const PART: u64 = 16 << 20;
const INPUT: u64 = 1 << 32;
const OUTPUT: u64 = 2 << 32;
const TABLE: u64 = 3 << 32;

/// What one probe does.
const OPS: usize = 7;

/// The accesses of a probe, made as they are asked for.
#[derive(Clone)]
struct Probing {
    draws: Draws,
    probes: u64,
    probe: u64,
    ops: [Op; OPS],
    at: usize,
    /// Every so many probes write the row they find; 0 for never.
    updates: u64,
    /// Where its own input and output begin.
    own: u64,
}

impl Probing {
    fn new(probes: u64, thread: u64, updates: u64) -> Self {
        let ops = [Op::Compute { uops: 1 }; OPS];
        let draws = Draws::of(7 + thread);
        Self { draws, probes, probe: 0, ops, at: OPS, updates, own: thread << 28 }
    }

    fn probe(&mut self) -> [Op; OPS] {
        let mut place = |part: u64, bytes: u64| {
            let at = self.draws.below((PART / bytes) as u32);
            TABLE + part * PART + u64::from(at) * bytes
        };
        let after = After::Load;
        let row = place(2, 32);
        let found = match self.updates > 0 && self.probe.is_multiple_of(self.updates) {
            true => Op::Store { address: row, bytes: 16 },
            false => Op::Load { address: row, bytes: 16, after },
        };
        [
            Op::Load {
                address: INPUT + self.own + self.probe * 16,
                bytes: 16,
                after: After::Nothing,
            },
            Op::Compute { uops: 4 },
            Op::Load { address: place(0, 8), bytes: 8, after },
            Op::Load { address: place(1, 16), bytes: 16, after },
            found,
            Op::Compute { uops: 2 },
            Op::Store { address: OUTPUT + self.own + self.probe * 24, bytes: 24 },
        ]
    }
}

impl Iterator for Probing {
    type Item = Op;

    #[inline]
    fn next(&mut self) -> Option<Op> {
        if self.at == OPS {
            if self.probe == self.probes {
                return None;
            }
            self.ops = self.probe();
            self.probe += 1;
            self.at = 0;
        }
        self.at += 1;
        Some(self.ops[self.at - 1])
    }
}

fn accesses(counts: &Counts) -> u64 {
    counts.loads + counts.stores
}

/// Runs a script of one thread for each CPU; the answer is the accesses and the ticks.
fn modelled<'a>(
    name: &str,
    preset: &'static str,
    scripts: impl Fn() -> Vec<Thread<'a>> + Sync + 'a,
    (cpu, allowed): (&'a [usize], &'a CpuSet),
) -> Case<'a, ()> {
    Case::new(name, move |_: &mut ()| {
        let ran = together(cpu, allowed, |_| {
            let preset: Preset = toml::from_str(preset).expect("a machine");
            let mut processor = Processor::new(&preset).expect("a machine");
            let threads = scripts();
            let places: Vec<usize> = (0..threads.len()).collect();
            let ran = run(&mut processor, threads, &places, Slices::default());
            (ran.cpus.iter().map(accesses).sum::<u64>() as usize, ran.ticks)
        })
        .expect("an allowed CPU");
        Run { seconds: ran[0].elapsed.cpu_s, answer: Some(ran[0].result) }
    })
}

fn thread<'a>(ops: impl Iterator<Item = Op> + 'a) -> Thread<'a> {
    Thread { script: Box::new(ops), space: 0, attends: false }
}

/// The same accesses, really done: what valgrind runs.
fn stream(probes: usize) -> u64 {
    let part = PART as usize;
    let table = [vec![0_u64; part / 8], vec![0_u64; part / 8], vec![0_u64; part / 8]];
    let input = vec![[0_u64; 2]; probes];
    let mut output = vec![[0_u64; 3]; probes];
    let mut draws = Draws::of(7);
    for (row, joined) in input.iter().zip(&mut output) {
        let mut place = |words: usize| draws.below((part / 8 / words) as u32) as usize * words;
        let bucket = black_box(table[0][place(1)] + row[0]) as usize;
        let cell = black_box(table[1][place(2) + bucket]) as usize;
        let found = black_box(table[2][place(4) + cell]);
        *joined = black_box([row[0], row[1], found]);
    }
    output.iter().step_by(1024).map(|joined| joined[2]).sum()
}

/// Seconds of CPU time of the children of this process that have ended, in hundredths.
fn children_s() -> Option<f64> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    // Past the name, which may hold anything: state is the third field, cutime and cstime are the
    // 16th and 17th (proc(5)).
    let fields: Vec<&str> = stat.rsplit_once(") ")?.1.split(' ').collect();
    let ticks = |field: usize| fields.get(field - 3)?.parse::<f64>().ok();
    Some((ticks(16)? + ticks(17)?) / 100.0)
}

/// Seconds that cachegrind takes for so many probes.
fn cachegrind_s(probes: usize, simulation: &str) -> Option<f64> {
    let before = children_s()?;
    let status = Command::new("valgrind")
        .args(["--tool=cachegrind", "--cachegrind-out-file=/dev/null", "--vgdb=no", "-q"])
        .args(["--I1=16384,8,64", "--D1=8192,4,64", "--LL=524288,8,128"])
        .arg(format!("--cache-sim={simulation}"))
        .arg(std::env::current_exe().ok()?)
        .args(["--stream", &probes.to_string()])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    status.ok().filter(|status| status.success())?;
    Some(children_s()? - before)
}

/// Seconds of cachegrind's cache simulation alone, for so many probes.
fn cachegrind_simulation_s(probes: usize) -> Option<f64> {
    let of = |simulation| Some(cachegrind_s(probes, simulation)? - cachegrind_s(0, simulation)?);
    Some(of("yes")? - of("no")?)
}

fn main() {
    let asked = Asked::read();
    if let Some(probes) = asked.number("--stream") {
        black_box(stream(probes));
        return;
    }
    let machine = Machine::here();
    let cpus = machine.cpus_for(1).expect("a CPU");
    let on = (&cpus[..], machine.allowed_cpus());
    let probes: u64 = if asked.small { 2_000 } else { 1_000_000 };
    let ops: Vec<Op> = Probing::new(probes, 0, 0).collect();
    let one = [
        modelled("one CPU, operations made ready", P4, || vec![thread(ops.iter().copied())], on),
        modelled(MADE, P4, || vec![thread(Probing::new(probes, 0, 0))], on),
    ];
    let four = [modelled(
        "four coherent CPUs, operations made as needed",
        QUAD,
        || (0..4).map(|own| thread(Probing::new(probes / 4, own, 4))).collect(),
        on,
    )];
    let mut report = Report::new(&asked, "Memory accesses modelled, a second");
    let mut ours = 0.0;
    for cases in [&one[..], &four[..]] {
        let times = in_turns(&asked, asked.rounds(5), cases, &mut ());
        for timed in &times {
            // A line's end within a row of the output makes two of one.
            let accesses = probes as f64 * (4.0 + 1.25);
            let ns = timed.seconds() * 1e9 / accesses;
            if timed.name == MADE {
                ours = ns;
            }
            report.row(&[
                ("case", json!(timed.name)),
                ("maccesses_per_s", json!(1e3 / ns)),
                ("ns_per_access", json!(ns)),
                ("of_ready", json!(timed.times_as_fast_as(&times[0]))),
            ]);
        }
    }
    match cachegrind_simulation_s(probes as usize) {
        Some(seconds) => {
            let ns = seconds * 1e9 / (probes as f64 * 5.0);
            report.row(&[
                ("case", json!("cachegrind's cache simulation")),
                ("maccesses_per_s", json!(1e3 / ns)),
                ("ns_per_access", json!(ns)),
                ("of_ours", json!(ns / ours)),
            ]);
        }
        None => report.row(&[("case", json!("cachegrind: not measured, no valgrind here"))]),
    }
    report.finish(&[
        "A hash-join probe: two accesses in order and three at random, each of those after the \
         one before it; nothing stays in the caches modelled. Ours counts micro-operations, \
         translations, the window, the store buffer and the bus too; cachegrind's is its time \
         with cache simulation less without, each less its start, and has every instruction \
         fetched. CPU time.",
    ]);
}

const MADE: &str = "one CPU, operations made as needed";
