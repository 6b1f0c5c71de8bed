//! Ten million lookups in a CSB+-tree of ten million keys, under every technique that counts.
//!
//! ```text
//! for each tenth of the probes:  for each case:  run, check the answer, note the time
//! ```
//!
//! so that whatever else the machine does hits all cases alike. What is compared is CPU time; of
//! two threads, the slower one's. `cargo bench -p workahead-walks --bench tree` measures and
//! prints ratios (`--json`: one object); under `cargo test`, or with `--small`, a small tree is
//! checked.

use std::sync::Mutex;

use serde_json::{Value, json};
use workahead_machine::cpus::CpuSet;
use workahead_machine::pages::{PageBuffer, Pages};
use workahead_machine::pin;
use workahead_walks::isa::{Detected, Isa, Portable};
use workahead_walks::materialise::{Materialise, pair_checksum};
use workahead_walks::random::Random;
use workahead_walks::technique::{self, Technique};
use workahead_walks::threads::together;
use workahead_walks::tree::{
    Binary, Fill, KeyedRecord, Lookup, Node, Node64, Node128, Search, Tree, Unclustered, Vector,
};
use workahead_walks::work_ahead::Placement;
use workahead_walks::{Row, Rows};

/// Parts of the probes, and so repetitions of every case.
const PARTS: usize = 10;

/// Levels walked at once: half of the smallest second-level cache there is on a server.
const AT_ONCE_BYTES: usize = 256 << 10;

/// (search, technique, upper levels, threads), for both node sizes; the first two are baselines.
const CASES: [(&str, &str, &str, usize); 16] = [
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

fn main() {
    let given = |word: &str| std::env::args().any(|given| given == word);
    // Cargo names `--bench` when it measures.
    let small = !given("--bench") || given("--small");
    let keys = if small { 20_000 } else { 10_000_000 };
    let allowed = pin::affinity().expect("the CPUs this process may use");
    let cpus: Vec<usize> = allowed.iter().take(2).collect();
    let data = Data::of(keys);
    let mut outputs = [Output::for_rows(keys as usize), Output::for_rows(keys as usize)];
    let mut cases: Vec<Case> = [64, 128].into_iter().flat_map(Case::all).collect();
    cases.retain(|case| case.cpus() <= cpus.len());
    for part in 0..PARTS {
        let rids = part_of(&data.rids, part, PARTS);
        let expected = data.expected(rids);
        for case in &mut cases {
            let run = Run { data: &data, rids, cpus: &cpus, allowed: &allowed };
            let (cpu_s, answer) = run.of(case, &mut outputs);
            assert_eq!(answer, expected, "{} with {} B nodes", case.name(), case.node_bytes);
            case.mtuples_per_s.push(rids.len() as f64 / cpu_s / 1e6);
        }
    }
    let result = json!({
        "title": format!("CSB+-tree: {keys} keys, {keys} unclustered probes"),
        "rows": cases.iter().map(|case| case.row(&cases)).collect::<Vec<_>>(),
        "notes": notes(&cases, &data),
    });
    if given("--json") { println!("{result:#}") } else { print(&result) }
}

fn part_of<T>(whole: &[T], part: usize, parts: usize) -> &[T] {
    &whole[part * whole.len() / parts..(part + 1) * whole.len() / parts]
}

/// Trees, and the outer table that is looked up in them.
struct Data {
    narrow: Tree<Node64>,
    wide: Tree<Node128>,
    records: PageBuffer<KeyedRecord>,
    rids: PageBuffer<u32>,
    /// RID of key `i + 1`.
    inner: Vec<u32>,
}

impl Data {
    /// Keys `1..=keys`, each once; outer records with random keys, probing in random order.
    fn of(keys: u32) -> Self {
        let random = &mut Random::of(2005);
        let inner = random.permutation(keys);
        let pairs: Vec<(f32, u32)> = (1..=keys).map(|key| key as f32).zip(inner.clone()).collect();
        let mut records = PageBuffer::<KeyedRecord>::zeroed(keys as usize, Pages::Huge).unwrap();
        for record in records.iter_mut() {
            *record = KeyedRecord { key: (random.below(keys) + 1) as f32, payload: [7; 15] };
        }
        let rids = PageBuffer::copied(&random.permutation(keys), Pages::Huge).unwrap();
        let narrow = Tree::bulk_load(&pairs, Fill::PAPER, Pages::Huge).unwrap();
        let wide = Tree::bulk_load(&pairs, Fill::PAPER, Pages::Huge).unwrap();
        Self { narrow, wide, records, rids, inner }
    }

    fn expected(&self, rids: &[u32]) -> Answer {
        let inner = |rid: &u32| self.inner[self.records[*rid as usize].key as usize - 1];
        let sum = rids.iter().map(|rid| pair_checksum(*rid, inner(rid)));
        (rids.len(), sum.fold(0, u64::wrapping_add))
    }
}

/// Hits and checksum.
type Answer = (usize, u64);

/// The result of one thread.
struct Output(Mutex<PageBuffer<[u32; 2]>>);

impl Output {
    fn for_rows(keys: usize) -> Self {
        let rows = (keys / PARTS + 1).max(1);
        let mut buffer = PageBuffer::<[u32; 2]>::zeroed(rows, Pages::Huge).unwrap();
        buffer.fill([1; 2]);
        Self(Mutex::new(buffer))
    }
}

struct Case {
    node_bytes: usize,
    search: &'static str,
    written: &'static str,
    technique: Technique,
    upper_levels: &'static str,
    threads: usize,
    mtuples_per_s: Vec<f64>,
}

impl Case {
    fn all(node_bytes: usize) -> impl Iterator<Item = Self> {
        CASES.into_iter().map(move |(search, written, upper_levels, threads)| Self {
            node_bytes,
            search,
            written,
            technique: written.parse().expect("a technique by its name"),
            upper_levels,
            threads,
            mtuples_per_s: Vec::new(),
        })
    }

    fn cpus(&self) -> usize {
        self.threads + usize::from(self.technique.has_helper())
    }

    fn name(&self) -> String {
        let Self { search, written, upper_levels, threads, .. } = self;
        format!("{written} ({search}, {upper_levels}, {threads} T)")
    }

    fn is_baseline(&self, search: &str) -> bool {
        let alone = self.threads == 1 && self.technique == Technique::Sequential;
        alone && self.search == search
    }

    /// The median of the ratios to another case, each taken within one part.
    fn times(&self, base: &Case) -> f64 {
        let pairs = self.mtuples_per_s.iter().zip(&base.mtuples_per_s);
        median(pairs.map(|(own, base)| own / base).collect())
    }

    fn times_baseline(&self, cases: &[Case], search: &str) -> f64 {
        let same = |base: &&Case| base.node_bytes == self.node_bytes && base.is_baseline(search);
        cases.iter().find(same).map_or(f64::NAN, |base| self.times(base))
    }

    fn row(&self, cases: &[Case]) -> Value {
        json!({
            "node_bytes": self.node_bytes,
            "case": self.name(),
            "mtuples_per_s": median(self.mtuples_per_s.clone()),
            "x_scalar": self.times_baseline(cases, "scalar"),
            "x_simd": self.times_baseline(cases, "simd"),
        })
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    if values.len() % 2 == 1 { values[middle] } else { (values[middle - 1] + values[middle]) / 2.0 }
}

/// One part of the probes.
struct Run<'a> {
    data: &'a Data,
    rids: &'a [u32],
    cpus: &'a [usize],
    allowed: &'a CpuSet,
}

impl Run<'_> {
    /// CPU seconds of the slowest thread, and the answer of all.
    fn of(&self, case: &Case, outputs: &mut [Output]) -> (f64, Answer) {
        match case.node_bytes {
            64 => self.in_tree(&self.data.narrow, case, outputs),
            _ => self.in_tree(&self.data.wide, case, outputs),
        }
    }

    fn in_tree<N: Node>(&self, tree: &Tree<N>, case: &Case, outputs: &[Output]) -> (f64, Answer) {
        if case.search == "scalar" {
            return self.by(tree, (Portable, Binary), case, outputs);
        }
        match Detected::best() {
            Detected::Portable(isa) => self.by(tree, (isa, Vector(isa)), case, outputs),
            Detected::Avx2(isa) => self.by(tree, (isa, Vector(isa)), case, outputs),
            Detected::Avx512(isa) => self.by(tree, (isa, Vector(isa)), case, outputs),
        }
    }

    fn by<N: Node, S: Search + Send + Sync, I: Isa>(
        &self,
        tree: &Tree<N>,
        (isa, search): (I, S),
        case: &Case,
        outputs: &[Output],
    ) -> (f64, Answer) {
        let at_once_bytes = if case.upper_levels == "at-once" { AT_ONCE_BYTES } else { 0 };
        let helper_cpu = self.cpus[self.cpus.len() - 1];
        let placement = Placement { helper_cpu, allowed: self.allowed };
        let ran = together(&self.cpus[..case.threads], self.allowed, |thread| {
            let rids = part_of(self.rids, thread, case.threads);
            let outer = Unclustered { rids, records: &self.data.records, row_stage: true };
            let lookup = Lookup::new(tree, outer, search);
            let mut lookup = lookup.upper_levels_within(at_once_bytes);
            let rows = &mut Rows::range(0..rids.len() as Row);
            let mut own = outputs[thread].0.lock().unwrap();
            let mut sink = Materialise::new(&mut own);
            let served =
                technique::run(case.technique, isa, &mut lookup, rows, placement, &mut sink);
            served.unwrap();
            (sink.written(), sink.checksum())
        })
        .unwrap();
        let cpu_s = ran.iter().map(|ran| ran.elapsed.cpu_s).fold(0.0, f64::max);
        let add = |sum: Answer, one: Answer| (sum.0 + one.0, sum.1.wrapping_add(one.1));
        (cpu_s, ran.iter().map(|ran| ran.result).fold((0, 0), add))
    }
}

fn notes(cases: &[Case], data: &Data) -> Vec<String> {
    let best = |threads: usize, search: &str| {
        let of =
            cases.iter().filter(|case| case.threads == threads && !case.technique.has_helper());
        of.map(|case| case.times_baseline(cases, search)).fold(0.0, f64::max)
    };
    let (narrow, wide) = (&data.narrow, &data.wide);
    vec![
        format!(
            "Best on one thread: {:.2} times scalar nodes in turn (wanted: 8), {:.2} times SIMD \
             nodes in turn (wanted: 3). Best on two threads: {:.2} times scalar (wanted: 15).",
            best(1, "scalar"),
            best(1, "simd"),
            best(2, "scalar"),
        ),
        format!(
            "64 B nodes: {} levels, {} MiB, {} at once; 128 B: {} levels, {} MiB, {} at once.",
            narrow.height(),
            narrow.bytes() >> 20,
            narrow.levels_within(AT_ONCE_BYTES),
            wide.height(),
            wide.bytes() >> 20,
            wide.levels_within(AT_ONCE_BYTES),
        ),
        format!("SIMD nodes by {}; huge pages; every answer checked.", Detected::best().name()),
    ]
}

fn print(result: &Value) {
    println!("{}", result["title"].as_str().unwrap_or_default());
    println!("{:>5} {:52} {:>6} {:>8} {:>6}", "node", "case", "M/s", "x scalar", "x simd");
    for row in result["rows"].as_array().into_iter().flatten() {
        let number = |key: &str| row[key].as_f64().unwrap_or(f64::NAN);
        let case = row["case"].as_str().unwrap_or_default();
        let (speed, scalar, simd) = (number("mtuples_per_s"), number("x_scalar"), number("x_simd"));
        println!("{:>5} {case:52} {speed:6.1} {scalar:8.2} {simd:6.2}", row["node_bytes"]);
    }
    for note in result["notes"].as_array().into_iter().flatten() {
        println!("{}", note.as_str().unwrap_or_default());
    }
}
