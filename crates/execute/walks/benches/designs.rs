//! Designs of a table beside each other: when a filter before the buckets pays, and when integers
//! are better looked up directly.
//!
//! Tables from the second-level cache to memory, probes of which 1 to 100 % hit; vectors of 8192
//! keys as joins look them up, and what is found summed up. Building is timed as well. With
//! `--bytes N`, only tables of that size.

mod measure;

use std::sync::atomic::{AtomicUsize, Ordering};

use measure::{Arguments, Case, Report, Run, Timing, in_turns};
use serde_json::json;
use workahead_machine::clock::{Moment, thread_cpu_s};
use workahead_machine::pages::{Pages, Pool, Supply};
use workahead_walks::bloom::{Bits, Filter, Survivors, filter_keys};
use workahead_walks::bucket::{self, First, Load, Probe, select};
use workahead_walks::isa::Detected;
use workahead_walks::memory::{Direct, Prefetching, ToL1};
use workahead_walks::perfect_hash::shared::Share;
use workahead_walks::random::Random;
use workahead_walks::selection::BLOCK;
use workahead_walks::technique::{Driver, Technique};
use workahead_walks::walk::Row;
use workahead_walks::{Pause, Rows, perfect_hash, selection, with_isa};

/// Keys looked up at a time.
const VECTOR: usize = 8192;

/// The result of some vectors.
#[derive(Default)]
struct HitSum {
    hits: usize,
    sum: u64,
}

impl HitSum {
    /// A hit: its row, and its value.
    #[inline(always)]
    fn add(&mut self, row: u64, value: u64) {
        self.hits += 1;
        self.sum = self.sum.wrapping_add(value.wrapping_mul(3) ^ row);
    }

    /// Bits and values of a vector.
    #[inline(always)]
    fn add_each(&mut self, bits: &[u64], values: &[u64], row: impl Fn(usize) -> u64) {
        for (block, mut bits) in bits.iter().copied().enumerate() {
            while bits != 0 {
                let at = block * BLOCK + bits.trailing_zeros() as usize;
                self.add(row(at), values[at]);
                bits &= bits - 1;
            }
        }
    }
}

/// Runs something over each vector of the probes and times it.
fn over(probes: &[u64], mut look: impl FnMut(u64, &[u64], &mut HitSum)) -> Run {
    let (start, mut found) = (thread_cpu_s(), HitSum::default());
    for (number, keys) in probes.chunks(VECTOR).enumerate() {
        look((number * VECTOR) as u64, keys, &mut found);
    }
    let seconds = thread_cpu_s() - start;
    Run { seconds, answer: Some((found.hits, found.sum)) }
}

fn vectors(table: &bucket::Table, probes: &[u64]) -> Run {
    let (mut memory, mut selection) =
        (Prefetching::<ToL1>::default(), select::SelectionVector::default());
    over(probes, |first, keys, found| {
        with_isa!(Detected::best(), isa => {
            select::look_up(table, isa, keys, &mut memory, &mut selection);
            found.add_each(selection.found(), selection.values(), |at| first + at as u64);
        });
    })
}

fn filtered(table: &bucket::Table, filter: &Filter, probes: &[u64]) -> Run {
    let (mut memory, mut selection) =
        (Prefetching::<ToL1>::default(), select::SelectionVector::default());
    let mut survivors = Survivors::default();
    over(probes, |first, keys, found| {
        with_isa!(Detected::best(), isa => {
            filter_keys(filter, keys, &mut memory, &mut survivors);
            select::look_up(table, isa, survivors.keys(), &mut memory, &mut selection);
            let row = |at: usize| first + u64::from(survivors.rows()[at]);
            found.add_each(selection.found(), selection.values(), row);
        });
    })
}

fn distance(table: &bucket::Table, probes: &[u64]) -> Run {
    let technique: Technique = "distance:rows=32".parse().expect("a technique");
    let mut hits = Vec::with_capacity(VECTOR);
    over(probes, |first, keys, found| {
        hits.clear();
        with_isa!(Detected::best(), isa => {
            let mut probe = Probe::<_, First>::new(table, isa, keys);
            let mut driver = Driver::of(technique).expect("one thread");
            let mut rows = Rows::range(0..keys.len() as u32);
            while driver.drive(isa, &mut probe, &mut rows, &mut hits) == Pause::Full {}
            hits.iter().for_each(|(row, value)| found.add(first + u64::from(*row), *value));
        });
    })
}

fn directly<M: workahead_walks::Memory + Default>(
    table: &perfect_hash::Table,
    probes: &[u64],
) -> Run {
    let (mut memory, mut selection) = (M::default(), selection::SelectionVector::default());
    over(probes, |first, keys, found| {
        with_isa!(Detected::best(), isa => {
            let _proof = isa;
            perfect_hash::look_up(table, keys, &mut memory, &mut selection);
            found.add_each(selection.found(), selection.values(), |at| first + at as u64);
        });
    })
}

/// A table of random keys, filters for it, and what is not in it.
struct Sparse {
    table: bucket::Table,
    filters: [(Bits, Filter); 2],
    entries: usize,
}

fn key(entry: usize) -> u64 {
    Random::of(entry as u64).number()
}

impl Sparse {
    fn new(bytes: usize) -> Self {
        let entries = bytes / 64 * 2;
        let keys: Vec<u64> = (0..entries).map(key).collect();
        let values: Vec<u64> = (0..entries as u64).collect();
        let table = bucket::Table::of(&keys, &values, Load::HALF, Pages::Huge).expect("memory");
        let filters = [Bits::Eight, Bits::Sixteen].map(|bits| {
            let mut filter = Filter::for_keys(entries, bits, Pages::Huge).expect("memory");
            filter.insert(keys.iter().copied());
            (bits, filter)
        });
        Self { table, filters, entries }
    }

    /// Keys of which this percentage is in the table.
    fn probes(&self, count: usize, percent: u32) -> Vec<u64> {
        let mut random = Random::of(u64::from(percent));
        let mut probe = || {
            let entry = random.below(self.entries as u32) as usize;
            let other = if random.below(100) < percent { 0 } else { 1 << 40 };
            key(entry + other)
        };
        (0..count).map(|_| probe()).collect()
    }

    fn cases<'a>(&'a self, probes: &'a [u64]) -> Vec<Case<'a, ()>> {
        let table = &self.table;
        let mut cases = vec![
            Case::new("buckets: vectors", |_: &mut ()| vectors(table, probes)),
            Case::new("buckets: distance", |_: &mut ()| distance(table, probes)),
        ];
        for (bits, filter) in &self.filters {
            let name = format!("{bits:?} bits first").to_lowercase();
            cases.push(Case::new(name, move |_: &mut ()| filtered(table, filter, probes)));
        }
        cases
    }
}

/// Integers of a range, a part of them taken.
struct Dense {
    buckets: bucket::Table,
    direct: perfect_hash::Table,
    keys: Vec<u64>,
    span: u32,
}

impl Dense {
    /// This number of keys, one of every `sparsity` integers.
    fn new(entries: usize, sparsity: u32) -> Self {
        let span = entries as u32 * sparsity;
        let mut random = Random::of(5);
        let mut taken = |entry: u32| u64::from(entry * sparsity + random.below(sparsity));
        let keys: Vec<u64> =
            Random::of(1).permutation(entries as u32).into_iter().map(&mut taken).collect();
        let values: Vec<u64> = (0..entries as u64).collect();
        let buckets = bucket::Table::of(&keys, &values, Load::HALF, Pages::Huge).expect("memory");
        let last = u64::from(span - 1);
        let mut direct = perfect_hash::Table::for_range(0, last, Pages::Huge).expect("memory");
        assert!(direct.shared().put(&keys, values.into_iter()), "keys differ");
        Self { buckets, direct, keys, span }
    }

    fn probes(&self, count: usize, percent: u32) -> Vec<u64> {
        let mut random = Random::of(u64::from(percent));
        let mut probe = || match random.below(100) < percent {
            true => self.keys[random.below(self.keys.len() as u32) as usize],
            // Mostly out of range, as after a selection of the build side's highest keys.
            false => u64::from(self.span) + u64::from(random.below(self.span)),
        };
        (0..count).map(|_| probe()).collect()
    }

    fn cases<'a>(&'a self, probes: &'a [u64]) -> Vec<Case<'a, ()>> {
        vec![
            Case::new("buckets: vectors", |_: &mut ()| vectors(&self.buckets, probes)),
            Case::new("direct", |_: &mut ()| directly::<Prefetching>(&self.direct, probes)),
            Case::new("direct, no prefetch", |_: &mut ()| directly::<Direct>(&self.direct, probes)),
        ]
    }

    /// Building the two tables.
    fn builds(&self) -> Vec<Case<'_, ()>> {
        let timed = |build: &dyn Fn() -> usize| {
            let start = thread_cpu_s();
            let entries = build();
            let seconds = thread_cpu_s() - start;
            Run { seconds, answer: Some((entries, 0)) }
        };
        let keys = &self.keys;
        vec![
            Case::new("buckets: build", move |_: &mut ()| {
                timed(&|| {
                    let table = bucket::Table::for_entries(keys.len(), Load::HALF, Pages::Huge);
                    let table = table.expect("memory").grouped(keys, 0, &mut Vec::new());
                    table.expect("not crowded").len()
                })
            }),
            Case::new("direct: build", move |_: &mut ()| {
                timed(&|| {
                    let last = u64::from(self.span - 1);
                    let table = perfect_hash::Table::for_range(0, last, Pages::Huge);
                    let mut table = table.expect("memory");
                    table.group(keys, 0, &mut Vec::new());
                    table.len()
                })
            }),
        ]
    }

    /// Building the direct table by one and by two threads, on pages that are kept.
    fn builds_by_threads(&self) -> Vec<Case<'_, ()>> {
        let pages = Supply::from(Pages::Huge).with_pool(Pool::keeping(2 << 30));
        let case =
            |name: &str, threads: usize, build: fn(&Self, &mut perfect_hash::Table, usize)| {
                let name = format!("direct: {name}, {threads} on the clock");
                let (pages, range) = (pages.clone(), (0, u64::from(self.span - 1)));
                Case::new(name, move |_: &mut ()| {
                    let start = Moment::now();
                    let table = perfect_hash::Table::for_range_by(threads, range, &pages);
                    let mut table = table.expect("memory");
                    build(self, &mut table, threads);
                    Run { seconds: start.wall_s(), answer: Some((table.len(), 0)) }
                })
            };
        vec![
            case("put", 1, Self::put),
            case("put", 2, Self::put),
            case("group", 1, Self::group),
            case("group", 2, Self::group),
        ]
    }

    /// Puts keys that are known to differ, as far as threads that share them can know.
    fn put(&self, table: &mut perfect_hash::Table, threads: usize) {
        let (shared, next) = (table.shared(), AtomicUsize::new(0));
        by_threads(threads, |_| {
            while let Some(keys) = self.pieces().nth(next.fetch_add(1, Ordering::Relaxed)) {
                assert!(shared.put(keys, keys.iter().copied()), "keys differ");
            }
        });
        assert!(threads == 1 || table.is_unique(threads));
    }

    /// Groups keys, each thread its share of the places.
    fn group(&self, table: &mut perfect_hash::Table, threads: usize) {
        let shared = table.shared();
        by_threads(threads, |thread| {
            let mut grouping = shared.grouping(Share::of(thread, threads));
            let mut repeats: Vec<(Row, Row)> = Vec::new();
            for (number, keys) in self.pieces().enumerate() {
                grouping.add(keys, (number * VECTOR) as Row, &mut repeats);
            }
        });
    }

    fn pieces(&self) -> std::slice::Chunks<'_, u64> {
        self.keys.chunks(VECTOR)
    }
}

/// Does work by several threads, of which this is one.
fn by_threads(threads: usize, work: impl Fn(usize) + Sync) {
    let work = &work;
    std::thread::scope(|scope| {
        (1..threads).for_each(|thread| drop(scope.spawn(move || work(thread))));
        work(0);
    });
}

fn rows(
    report: &mut Report<'_>,
    times: &[Timing],
    of: &[(&'static str, serde_json::Value)],
    keys: usize,
) {
    for timed in times {
        let mut row = vec![("case", json!(timed.name))];
        row.extend(of.iter().cloned());
        row.push(("mkeys_per_s", json!(keys as f64 / timed.seconds() / 1e6)));
        row.push(("of_buckets", json!(timed.times_as_fast_as(&times[0]))));
        report.row(&row);
    }
}

fn main() {
    let arguments = Arguments::read();
    let (sizes, count) = match (arguments.small, arguments.number("--bytes")) {
        (true, _) => (vec![1 << 16], 10_000),
        (false, Some(bytes)) => (vec![bytes], 4_000_000),
        (false, None) => (vec![256 << 10, 8 << 20, 64 << 20, 512 << 20], 4_000_000),
    };
    let mut found =
        Report::new(&arguments, "Designs of a table: filters first, and direct lookups");
    for bytes in sizes {
        let sparse = Sparse::new(bytes);
        for percent in [1, 10, 20, 30, 50, 100] {
            let probes = sparse.probes(count, percent);
            let times = in_turns(&arguments, arguments.rounds(5), &sparse.cases(&probes), &mut ());
            let of = [("bucket_kib", json!(bytes >> 10)), ("hits_percent", json!(percent))];
            rows(&mut found, &times, &of, count);
        }
        let entries = sparse.entries;
        drop(sparse);
        for sparsity in [1, 2, 4, 8] {
            let dense = Dense::new(entries, sparsity);
            let of = |percent: u32| {
                let direct = dense.direct.bytes() >> 10;
                [
                    ("bucket_kib", json!(bytes >> 10)),
                    ("direct_kib", json!(direct)),
                    ("sparsity", json!(sparsity)),
                    ("hits_percent", json!(percent)),
                ]
            };
            for percent in [10, 100] {
                let probes = dense.probes(count, percent);
                let times =
                    in_turns(&arguments, arguments.rounds(5), &dense.cases(&probes), &mut ());
                rows(&mut found, &times, &of(percent), count);
            }
            for builds in [dense.builds(), dense.builds_by_threads()] {
                let times = in_turns(&arguments, arguments.rounds(3), &builds, &mut ());
                rows(&mut found, &times, &of(0), entries);
            }
        }
    }
    found.finish(&[
        "CPU time of one thread, median of interleaved rounds; of builds on the clock wall time, \
         and `of_buckets` is against the first of them. Filters have 8 or 16 bits a key. Direct: \
         one of every `sparsity` integers is a key; what misses is out of their range.",
    ]);
}
