//! The paper's hash join (Zhou et al., §6.2) under every technique, against one thread in turn and
//! against a loop written by hand, in cache and out of it.

mod measure;

use std::sync::Mutex;

use measure::{Arguments, Case, Report, Run, in_turns};
use serde_json::json;
use workahead_machine::clock::Moment;
use workahead_machine::cpus::CpuSet;
use workahead_machine::pages::{PageBuffer, Pages};
use workahead_machine::{Machine, pin};
use workahead_walks::chained::{Chains, HashJoin, Lists, Materialise};
use workahead_walks::hash::hash_u32;
use workahead_walks::isa::Portable;
use workahead_walks::materialise::pair_checksum;
use workahead_walks::random::Random;
use workahead_walks::record::{JoinedRecord, Record, Unclustered};
use workahead_walks::technique::{self, Driver, Technique};
use workahead_walks::threads::{Shares, Split, together};
use workahead_walks::work_ahead::Placement;
use workahead_walks::{Row, Rows};

/// Both sides, the table, and the row ids that probe it.
struct Join {
    build: PageBuffer<Record>,
    probe: PageBuffer<Record>,
    chains: Chains,
    rids: PageBuffer<u32>,
}

impl Join {
    /// `rows` rows a side with keys drawn at random (so that some match twice and some never), and
    /// `probes` row ids: all rows in random order, over and over.
    fn new(rows: usize, probes: usize) -> Self {
        let pages = Pages::Huge;
        let mut random = Random::of(1);
        let mut side = || {
            let mut side = PageBuffer::<Record>::zeroed(rows, pages).expect("memory for a side");
            for (row, record) in side.iter_mut().enumerate() {
                record.key = random.below(rows as u32);
                record.row = row as u32;
            }
            side
        };
        let (build, probe) = (side(), side());
        let chains =
            Chains::build(build.iter().map(|r| r.key), pages).expect("memory for the table");
        let mut rids = PageBuffer::<u32>::zeroed(probes, pages).expect("memory for row ids");
        for (rid, drawn) in rids.iter_mut().zip(random.permutation(probes as u32)) {
            *rid = drawn % rows as u32;
        }
        Self { build, probe, chains, rids }
    }

    fn walk(&self) -> HashJoin<'_, Unclustered<'_>> {
        let probes = Unclustered { records: &self.probe, rids: &self.rids, row_stage: true };
        HashJoin::new(&self.chains, &self.build, probes)
    }

    fn rows(&self) -> Rows {
        Rows::range(0..self.rids.len() as Row)
    }
}

/// A programmer's own loop: the same work, result and checksum, and no schedule.
#[inline(never)]
fn by_hand(join: &Join, out: &mut [JoinedRecord]) -> (usize, u64) {
    let (build, probes, rids) = (&join.build[..], &join.probe[..], &join.rids[..]);
    let lists = Lists::of(&join.chains);
    let (mut written, mut at, mut checksum) = (0, 0, 0_u64);
    for &rid in rids {
        let probe = &probes[rid as usize];
        let hash = hash_u32(probe.key);
        let mut handle = *lists.head(hash);
        while let Some(cell) = lists.cell(handle) {
            if cell.hash == hash {
                let build = &build[cell.row as usize];
                if build.key == probe.key {
                    if at == out.len() {
                        at = 0;
                    }
                    out[at].probe = *probe;
                    out[at].build = *build;
                    checksum = checksum.wrapping_add(pair_checksum(probe.row, build.row));
                    at += 1;
                    written += 1;
                }
            }
            handle = cell.next;
        }
    }
    (written, checksum)
}

fn timed(run: impl FnOnce() -> (usize, u64)) -> Run {
    let start = Moment::now();
    let answer = Some(run());
    Run { seconds: start.elapsed().cpu_s, answer }
}

/// A technique of one thread, or of one and its helper: the time is the main thread's.
fn one<'a>(join: &'a Join, text: &str, placement: Placement<'a>) -> Case<'a, [JoinedRecord]> {
    let technique: Technique = text.parse().expect("a technique");
    Case::new(text, move |out: &mut [JoinedRecord]| {
        timed(|| {
            let mut sink = Materialise::new(out);
            let (mut walk, mut rows) = (join.walk(), join.rows());
            technique::run(technique, Portable, &mut walk, &mut rows, placement, &mut sink)
                .expect("an allowed CPU");
            (sink.written(), sink.checksum())
        })
    })
}

/// A technique on two threads that share the rows: the time is the slower one's.
fn two<'a>(
    join: &'a Join,
    (text, split): (&str, Split),
    cpus: [usize; 2],
    allowed: &'a CpuSet,
) -> Case<'a, [JoinedRecord]> {
    let technique: Technique = text.parse().expect("a technique");
    Case::new(format!("two threads, {text}, {split:?}"), move |out: &mut [JoinedRecord]| {
        let (first, second) = out.split_at_mut(out.len() / 2);
        let outs = [Mutex::new(first), Mutex::new(second)];
        let shares = Shares::new(split, join.rids.len() as Row, 2);
        let ran = together(&cpus, allowed, |thread| {
            let mut out = outs[thread].lock().expect("nobody else holds it");
            let mut sink = Materialise::new(&mut out);
            let mut driver = Driver::of(technique).expect("a technique of one thread");
            let mut walk = join.walk();
            for mut rows in shares.of(thread as u32) {
                driver.drive(Portable, &mut walk, &mut rows, &mut sink);
            }
            (sink.written(), sink.checksum())
        })
        .expect("allowed CPUs");
        Run {
            seconds: ran.iter().map(|ran| ran.elapsed.cpu_s).fold(0.0, f64::max),
            answer: Some(ran.iter().fold((0, 0), |(written, checksum), ran| {
                (written + ran.result.0, ran.result.1.wrapping_add(checksum))
            })),
        }
    })
}

/// Techniques of one thread.
const ALONE: [&str; 12] = [
    "sequential",
    "staged:width=128",
    "group:width=64",
    "amac:width=8",
    "amac:width=16",
    "amac:width=32",
    "amac:width=64",
    "amac:width=32,hint=l2",
    "rounds:width=1024,hint=none",
    "rounds:width=1024,hint=l1",
    "distance:rows=32",
    "work-ahead:size=128,helper=off",
];

/// The set's variants, with a helper on the other CPU.
fn helped() -> Vec<String> {
    let mut all = vec!["direct-helper:size=128".to_owned()];
    for size in [32, 64, 128, 256, 512, 1024, 4096] {
        for direction in ["forward", "backward"] {
            for wait in ["none", "spin", "spin,pauses=8"] {
                all.push(format!("work-ahead:size={size},direction={direction},wait={wait}"));
            }
        }
    }
    all
}

fn cases<'a>(join: &'a Join, cpus: &[usize], allowed: &'a CpuSet) -> Vec<Case<'a, [JoinedRecord]>> {
    let mut cases =
        vec![Case::new("by hand", |out: &mut [JoinedRecord]| timed(|| by_hand(join, out)))];
    let placement = Placement { helper_cpu: *cpus.last().expect("a CPU"), allowed };
    cases.extend(ALONE.map(|text| one(join, text, placement)));
    if let &[first, second] = cpus {
        let morsels = Split::Morsels { rows: 16384 };
        let shared = [
            ("sequential", morsels),
            ("amac:width=32", Split::Strided),
            ("amac:width=32", morsels),
            ("amac:width=32,hint=l2", morsels),
        ];
        cases.extend(shared.map(|case| two(join, case, [first, second], allowed)));
        cases.extend(helped().iter().map(|text| one(join, text, placement)));
    }
    cases
}

fn main() {
    let arguments = Arguments::read();
    let machine = Machine::here();
    let allowed = machine.allowed_cpus();
    let cpus = (machine.cpus_for(2)).or_else(|_| machine.cpus_for(1)).expect("a CPU");
    let _pinned = pin::to(cpus[0], allowed).expect("an allowed CPU");
    let mut report = Report::new(&arguments, "Hash join of 64-byte rows, unclustered probes");
    let sizes = match (arguments.small, arguments.number("--rows")) {
        (true, _) => vec![("small", 1_000, 5_000, 512)],
        (false, Some(rows)) => vec![("given", rows, rows, rows + rows / 8)],
        (false, None) => {
            let far = ("out of cache", 2_000_000, 2_000_000, 2_250_000);
            vec![("in L2", 1_000, 2_000_000, 512), far]
        }
    };
    for (place, rows, probes, out_rows) in sizes {
        let join = Join::new(rows, probes);
        let mut out = PageBuffer::<JoinedRecord>::zeroed(out_rows, Pages::Huge).expect("memory");
        out.fill(bytemuck::Zeroable::zeroed());
        let times =
            in_turns(&arguments, arguments.rounds(7), &cases(&join, &cpus, allowed), &mut out[..]);
        let base = times.iter().find(|timed| timed.name == "sequential");
        let base = base.unwrap_or(&times[0]);
        for timed in &times {
            report.row(&[
                ("case", json!(timed.name)),
                ("size", json!(place)),
                ("mtuples_per_s", json!(probes as f64 / timed.seconds() / 1e6)),
                ("speedup", json!(timed.times_as_fast_as(base))),
            ]);
        }
    }
    report.finish(&[
        "Speed-ups are against `sequential`. CPU time of the slowest thread; a helper's own time \
         is not counted.",
    ]);
}
