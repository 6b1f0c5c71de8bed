//! Look-ups in a CSB+-tree of ten million keys, under every technique that counts: a tenth of ten
//! million probes a round, the same one for all cases.
//!
//! Wanted are 8 times scalar nodes in turn and 3 times SIMD nodes on one thread, and 15 times
//! scalar nodes on two.

mod measure;

use std::cell::Cell;
use std::sync::Mutex;

use measure::{Arguments, Case, Report, Run, in_turns};
use serde_json::json;
use workahead_machine::Machine;
use workahead_machine::cpus::CpuSet;
use workahead_machine::pages::{PageBuffer, Pages};
use workahead_walks::isa::{Detected, Isa, Portable};
use workahead_walks::materialise::{Materialise, pair_checksum};
use workahead_walks::random::Random;
use workahead_walks::technique::{self, Technique};
use workahead_walks::threads::together;
use workahead_walks::tree::{
    Binary, Fill, KeyedRecord, Lookup, Node, Node64, Node128, Search, Tree, Unclustered, Vector,
};
use workahead_walks::work_ahead::Placement;
use workahead_walks::{Row, Rows, with_isa};

/// Parts of the probes: a round is of one.
const PARTS: usize = 10;

/// Levels walked at once: half of the smallest second-level cache there is on a server.
const AT_ONCE_BYTES: usize = 256 << 10;

/// Search, technique, upper levels, threads.
type Written = (&'static str, &'static str, &'static str, usize);

/// For both node sizes; the first two are baselines.
const CASES: [Written; 16] = [
    ("scalar", "sequential", "stepwise", 1),
    ("simd", "sequential", "stepwise", 1),
    ("scalar", "work-ahead:size=128", "stepwise", 1),
    ("simd", "work-ahead:size=128", "stepwise", 1),
    ("simd", "staged:width=128", "stepwise", 1),
    ("simd", "rounds:width=1024,hint=none", "at-once", 1),
    ("simd", "group:width=64", "at-once", 1),
    ("simd", "coroutine:width=32", "at-once", 1),
    ("simd", "amac:width=32", "stepwise", 1),
    ("simd", "amac:width=16", "at-once", 1),
    ("simd", "amac:width=32", "at-once", 1),
    ("simd", "amac:width=64", "at-once", 1),
    ("scalar", "sequential", "stepwise", 2),
    ("simd", "group:width=64", "at-once", 2),
    ("simd", "amac:width=32", "stepwise", 2),
    ("simd", "amac:width=32", "at-once", 2),
];

fn named((search, technique, upper_levels, threads): Written) -> String {
    format!("{technique} ({search}, {upper_levels}, {threads} T)")
}

fn part_of<T>(whole: &[T], part: usize, parts: usize) -> &[T] {
    &whole[part * whole.len() / parts..(part + 1) * whole.len() / parts]
}

/// Hits and checksum.
type Answer = (usize, u64);

/// The result of each thread.
type Outputs = [Mutex<PageBuffer<[u32; 2]>>; 2];

/// The trees' keys, and the outer table that is looked up in them.
struct Data {
    /// Keys `1..`, each once, with their RIDs.
    pairs: Vec<(f32, u32)>,
    records: PageBuffer<KeyedRecord>,
    rids: PageBuffer<u32>,
}

impl Data {
    /// Outer records with random keys, probing in random order.
    fn of(keys: u32) -> Self {
        let random = &mut Random::of(2005);
        let inner = random.permutation(keys);
        let pairs = (1..=keys).map(|key| key as f32).zip(inner).collect();
        let mut records = PageBuffer::<KeyedRecord>::zeroed(keys as usize, Pages::Huge).unwrap();
        for record in records.iter_mut() {
            *record = KeyedRecord { key: (random.below(keys) + 1) as f32, payload: [7; 15] };
        }
        let rids = PageBuffer::copied(&random.permutation(keys), Pages::Huge).unwrap();
        Self { pairs, records, rids }
    }

    /// What each part of the probes finds.
    fn expected(&self) -> [Answer; PARTS] {
        std::array::from_fn(|part| {
            let rids = part_of(&self.rids, part, PARTS);
            let inner = |rid: &u32| self.pairs[self.records[*rid as usize].key as usize - 1].1;
            let sum = rids.iter().map(|rid| pair_checksum(*rid, inner(rid)));
            (rids.len(), sum.fold(0, u64::wrapping_add))
        })
    }

    fn outputs(&self) -> Outputs {
        std::array::from_fn(|_| {
            let rows = self.rids.len() / PARTS + 1;
            let mut buffer = PageBuffer::<[u32; 2]>::zeroed(rows, Pages::Huge).unwrap();
            buffer.fill([1; 2]);
            Mutex::new(buffer)
        })
    }
}

/// Where threads run, and may.
type Cpus<'a> = (&'a [usize], &'a CpuSet);

/// A technique on some threads.
struct Lookups<'a, N> {
    tree: &'a Tree<N>,
    data: &'a Data,
    cpus: Cpus<'a>,
    technique: Technique,
    at_once_bytes: usize,
    threads: usize,
}

impl<N: Node> Lookups<'_, N> {
    /// CPU seconds of the slowest thread, and the answer of all.
    fn run(
        &self,
        (isa, search): (impl Isa, impl Search),
        rids: &[u32],
        outputs: &Outputs,
    ) -> (f64, Answer) {
        let (cpus, allowed) = self.cpus;
        let placement = Placement { helper_cpu: cpus[cpus.len() - 1], allowed };
        let ran = together(&cpus[..self.threads], allowed, |thread| {
            let rids = part_of(rids, thread, self.threads);
            let outer = Unclustered { rids, records: &self.data.records, row_stage: true };
            let lookup = Lookup::new(self.tree, outer, search);
            let mut lookup = lookup.upper_levels_within(self.at_once_bytes);
            let rows = &mut Rows::range(0..rids.len() as Row);
            let mut own = outputs[thread].lock().unwrap();
            let mut sink = Materialise::new(&mut own);
            let served =
                technique::run(self.technique, isa, &mut lookup, rows, placement, &mut sink);
            served.unwrap();
            (sink.written(), sink.checksum())
        })
        .unwrap();
        let cpu_s = ran.iter().map(|ran| ran.elapsed.cpu_s).fold(0.0, f64::max);
        let add = |sum: Answer, one: Answer| (sum.0 + one.0, sum.1.wrapping_add(one.1));
        (cpu_s, ran.iter().map(|ran| ran.result).fold((0, 0), add))
    }
}

/// A case, if there are CPUs for it.
fn case<'a, N: Node>(
    tree: &'a Tree<N>,
    (data, expected): (&'a Data, &'a [Answer; PARTS]),
    cpus: Cpus<'a>,
    written: Written,
) -> Option<Case<'a, Outputs>> {
    let (search, technique, upper_levels, threads) = written;
    let technique: Technique = technique.parse().expect("a technique by its name");
    if threads + usize::from(technique.has_helper()) > cpus.0.len() {
        return None;
    }
    let at_once_bytes = if upper_levels == "at-once" { AT_ONCE_BYTES } else { 0 };
    let lookups = Lookups { tree, data, cpus, technique, at_once_bytes, threads };
    let round = Cell::new(0_usize);
    Some(Case::new(named(written), move |outputs: &mut Outputs| {
        let part = round.replace(round.get() + 1) % PARTS;
        let rids = part_of(&data.rids, part, PARTS);
        let (seconds, answer) = if search == "scalar" {
            lookups.run((Portable, Binary), rids, outputs)
        } else {
            with_isa!(Detected::best(), isa => lookups.run((isa, Vector(isa)), rids, outputs))
        };
        assert_eq!(answer, expected[part], "{} with {} B nodes", named(written), N::BYTES);
        // Another in every round.
        Run { seconds, answer: None }
    }))
}

/// Measures all cases on nodes of one size; what a reader must know of the tree.
fn compare<N: Node>(
    report: &mut Report<'_>,
    arguments: &Arguments,
    (data, expected): (&Data, &[Answer; PARTS]),
    cpus: Cpus<'_>,
) -> String {
    let tree = Tree::<N>::bulk_load(&data.pairs, Fill::PAPER, Pages::Huge).unwrap();
    let cases =
        CASES.into_iter().filter_map(|written| case(&tree, (data, expected), cpus, written));
    let cases: Vec<_> = cases.collect();
    let times = in_turns(arguments, arguments.rounds(9), &cases, &mut data.outputs());
    let [scalar, simd] = [CASES[0], CASES[1]].map(|base| {
        let name = named(base);
        times.iter().find(|timed| timed.name == name)
    });
    let probes = (data.rids.len() / PARTS) as f64;
    for timed in &times {
        report.row(&[
            ("case", json!(timed.name)),
            ("node_bytes", json!(N::BYTES)),
            ("mtuples_per_s", json!(probes / timed.seconds() / 1e6)),
            ("x_scalar", json!(scalar.map(|base| timed.times_as_fast_as(base)))),
            ("x_simd", json!(simd.map(|base| timed.times_as_fast_as(base)))),
        ]);
    }
    let (bytes, height, mib) = (N::BYTES, tree.height(), tree.bytes() >> 20);
    let at_once = tree.levels_within(AT_ONCE_BYTES);
    format!("{bytes} B nodes: {height} levels, {mib} MiB, {at_once} at once.")
}

fn main() {
    let arguments = Arguments::read();
    let machine = Machine::here();
    let cpus = (machine.cpus_for(2)).or_else(|_| machine.cpus_for(1)).expect("a CPU");
    let cpus = (&cpus[..], machine.allowed_cpus());
    let keys = if arguments.small { 20_000 } else { 10_000_000 };
    let data = Data::of(keys);
    let expected = data.expected();
    let mut report = Report::new(&arguments, "CSB+-tree: as many unclustered probes as keys");
    // One after the other: only one of them is in memory.
    let known = (&data, &expected);
    let narrow = compare::<Node64>(&mut report, &arguments, known, cpus);
    let wide = compare::<Node128>(&mut report, &arguments, known, cpus);
    let nodes = format!(
        "{keys} keys. SIMD nodes by {}; huge pages; every answer checked.",
        Detected::best().name()
    );
    report.finish(&[&narrow, &wide, &nodes]);
}
