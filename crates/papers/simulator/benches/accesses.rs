//! Speed of the model in memory accesses per second, compared with cachegrind.
//!
//! ```text
//!   hash join     the operators' probe, recorded and modelled          as studies run it
//!   all missed    each access misses, most wait for the one before     the dear part alone
//!   counted only  the same, by caches that know no time                what cachegrind does
//! ```
//!
//! It is limited by instructions, not memory: the model's tables fit the caches of the machine it
//! runs on, and no single part takes more than a quarter of the time. 40 million accesses per
//! second leave 75 cycles each, some 230 instructions at 3 GHz and three per cycle; with callgrind
//! an access of the hash join takes 1,500, of which beginning its 1.8 operations takes 370, the
//! caches beyond the nearest 400, bus and outstanding lines 230, the script 110.
//!
//! Under valgrind the bench itself runs the same accesses for real (`--missed N`, `--join N`). The
//! time of its cache simulation is the time with it less the time without, each without the
//! start-up.

#[path = "accesses/join.rs"]
mod join;
#[path = "../../../execute/walks/benches/measure/mod.rs"]
mod measure;
#[path = "accesses/probing.rs"]
mod probing;
// Only a part is used here.
#[allow(dead_code, unused_imports)]
#[path = "../tests/cachegrind/trace/mod.rs"]
mod trace;
#[path = "accesses/valgrind.rs"]
mod valgrind;

use std::hint::black_box;
use std::sync::OnceLock;
use std::sync::atomic::AtomicBool;

use measure::{Arguments, Case, Report, Run, in_turns};
use serde_json::json;
use workahead_machine::Machine;
use workahead_machine::clock::{process_cpu_s, thread_cpu_s};
use workahead_simulator::core::Processor;
use workahead_simulator::counts::Counts;
use workahead_simulator::geometry::{Geometry, Sizes};
use workahead_simulator::preset::Preset;
use workahead_simulator::run::{RunResult, Slices, Thread, run};
use workahead_walks::threads::together;

use join::Join;
use probing::Probing;
use trace::{Cachegrind, Record};

/// Options that run a case under valgrind.
const MISSED: &str = "--missed";
const JOIN: &str = "--join";

/// Probes of a recorded list: some 24 MB.
const RECORDED: u64 = 200_000;

/// Accesses and ticks.
type RunTotals = (usize, u64);

fn accesses(counts: &Counts) -> usize {
    (counts.loads + counts.stores) as usize
}

fn done(ran: &RunResult) -> RunTotals {
    (ran.cpus.iter().map(accesses).sum(), ran.ticks)
}

fn machine(name: &str) -> Preset {
    Preset::named(name).expect("a machine of the catalogue")
}

/// All-missing accesses of one thread on each of `threads` CPUs.
fn missed(preset: &Preset, threads: u64, probes: u64) -> RunTotals {
    let mut processor = Processor::new(preset).expect("a machine");
    let updates = if threads > 1 { 4 } else { 0 };
    let all = (0..threads).map(|own| Thread {
        script: Box::new(Probing::new(probes / threads, own, updates)),
        space: 0,
        attends: false,
    });
    let places: Vec<usize> = (0..threads as usize).collect();
    let stop = AtomicBool::new(false);
    done(&run(&mut processor, all.collect(), &places, Slices::default(), &stop))
}

/// All-missing accesses on caches without time; the cost of the stream itself is subtracted, as for
/// cachegrind.
fn counted(records: &[Record]) -> RunTotals {
    let of = |bytes, ways, line| Geometry::of(Sizes { bytes, ways, line }).expect("a cache");
    let mut caches = Cachegrind::new(of(16_384, 8, 64), of(8192, 4, 64), of(524_288, 8, 128));
    records.iter().for_each(|record| caches.touch(record));
    let counts = caches.counts;
    let references = counts.reads.references + counts.writes.references;
    (references as usize, counts.reads.last + counts.writes.last)
}

/// A timed case and its clock.
struct Stream<'a> {
    name: &'static str,
    clock: fn() -> f64,
    run: Box<dyn Fn() -> RunTotals + Sync + 'a>,
    /// Its accesses and ticks, the same in every run.
    done: OnceLock<RunTotals>,
}

impl Stream<'_> {
    /// Accesses of a run.
    fn accesses(&self) -> f64 {
        self.done.get().map_or(f64::NAN, |(accesses, _)| *accesses as f64)
    }

    fn timed(&self) -> f64 {
        let before = (self.clock)();
        let done = (self.run)();
        let seconds = (self.clock)() - before;
        assert_eq!(self.done.get_or_init(|| done), &done, "{}", self.name);
        seconds
    }
}

fn streams<'a>(join: &'a Join, probes: u64) -> Vec<Stream<'a>> {
    let (p4, quad) = (machine("p4-ht-512k"), machine("ppro-quad"));
    let stream = |name, clock, run| Stream { name, clock, run, done: OnceLock::new() };
    let joined = |preset: &Preset, threads| -> Box<dyn Fn() -> RunTotals + Sync + 'a> {
        let preset = preset.clone();
        Box::new(move || done(&join.modelled(&preset, threads).run))
    };
    let (one, four) = (p4.clone(), quad.clone());
    let records: Vec<Record> = probing::records(probes.min(RECORDED)).collect();
    vec![
        stream("hash join", thread_cpu_s, joined(&p4, 1)),
        stream("hash join, with its recording", process_cpu_s, joined(&p4, 1)),
        stream("hash join, four CPUs", thread_cpu_s, joined(&quad, 4)),
        stream("all missed", thread_cpu_s, Box::new(move || missed(&one, 1, probes))),
        stream("all missed, four CPUs", thread_cpu_s, Box::new(move || missed(&four, 4, probes))),
        stream("all missed, counted only", thread_cpu_s, Box::new(move || counted(&records))),
    ]
}

/// Times the cases in turn; nanoseconds per access of each.
fn measured<'s>(
    arguments: &Arguments,
    streams: &'s [Stream<'s>],
    report: &mut Report<'_>,
) -> Vec<(&'s Stream<'s>, f64)> {
    let here = Machine::here();
    let cpus = here.cpus_for(1).expect("a CPU");
    let case = |stream: &'_ Stream<'_>| {
        let ran = together(&cpus, here.allowed_cpus(), |_| stream.timed());
        Run { seconds: ran.expect("an allowed CPU")[0].result, answer: None }
    };
    let cases: Vec<Case<'_, ()>> =
        streams.iter().map(|stream| Case::new(stream.name, move |_| case(stream))).collect();
    let times = in_turns(arguments, arguments.rounds(5), &cases, &mut ());
    let of = |name: &str| streams.iter().find(|stream| stream.name == name);
    let mut all = Vec::new();
    for timed in &times {
        let Some(stream) = of(&timed.name) else { continue };
        let ns = timed.seconds() * 1e9 / stream.accesses();
        let part = stream.accesses() / streams[0].accesses();
        report.row(&[
            ("case", json!(timed.name)),
            ("accesses", json!(stream.accesses())),
            ("maccesses_per_s", json!(1e3 / ns)),
            ("ns_per_access", json!(ns)),
            ("as_fast_as_first", json!(timed.times_as_fast_as(&times[0]) * part)),
        ]);
        all.push((stream, ns));
    }
    all
}

/// The time of cachegrind's simulation for the same accesses, relative to ours.
fn beside(ours: &[(&Stream<'_>, f64)], probes: u64, report: &mut Report<'_>) {
    let accesses = |name: &str| {
        let whole = ours.iter().find(|(stream, _)| stream.name == name);
        whole.map_or(f64::NAN, |(stream, _)| stream.accesses())
    };
    for (option, name) in [(JOIN, "hash join"), (MISSED, "all missed")] {
        let Some(seconds) = valgrind::simulation_s(option, probes) else {
            return report.row(&[("case", json!("cachegrind: not measured, no valgrind here"))]);
        };
        let same = ours.iter().filter(|(stream, _)| {
            stream.name.starts_with(name) && !stream.name.ends_with("four CPUs")
        });
        for (stream, ours) in same {
            let ns = seconds * 1e9 / accesses(name);
            if ns.is_nan() {
                continue;
            }
            report.row(&[
                ("case", json!(format!("cachegrind beside {}", stream.name))),
                ("maccesses_per_s", json!(1e3 / ns)),
                ("ns_per_access", json!(ns)),
                ("times_ours", json!(ns / ours)),
            ]);
        }
    }
}

fn main() {
    let arguments = Arguments::read();
    if let Some(probes) = arguments.number(MISSED) {
        black_box(probing::really(probes));
        return;
    }
    if let Some(probes) = arguments.number(JOIN) {
        black_box(Join::new(probes as u32).really());
        return;
    }
    let probes: u64 = if arguments.small { 2_000 } else { 1_000_000 };
    let join = Join::new(probes as u32);
    let streams = streams(&join, probes);
    let mut report = Report::new(&arguments, "Memory accesses modelled, a second");
    let ours = measured(&arguments, &streams, &mut report);
    beside(&ours, probes, &mut report);
    report.finish(&[
        "CPU time of the thread that models; with its recording, of that which runs the join, too. \
         Modelled are p4-ht-512k and ppro-quad with micro-operations, translations, window, store \
         buffer, prefetcher and bus; lines of memory accessed are counted, not instructions. Of a \
         join of 65,536 rows a side, one probe reads five times and writes once; of what is all \
         missed, it reads and writes in order and reads three times at random, each after the one \
         before it.",
        "Cachegrind's is its time with cache simulation less without, each less its start, and has \
         every instruction fetched; it knows no translations and no time, as what is counted only.",
    ]);
}
