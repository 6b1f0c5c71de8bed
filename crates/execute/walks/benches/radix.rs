//! Joins by partitions beside joins by one table: where moving every row pays.
//!
//! Whole joins, build and probe, of 64-bit keys of which each probe row matches one build row; the
//! build side's values are 32-bit rows or 64-bit numbers, probe rows are known by their place. What
//! is found is summed up and no column is gathered: the best that a join by partitions can hope
//! for, as its pairs are in no side's order. Memory comes from a pool; the first round touches it.
//! `--builds N --probes N --threads N --value-bytes 4|8` measure one of all.
//!
//! * *buckets*: the table built part by part, probed in the order of the probe side;
//! * *radix*: both sides scattered, a window for each partition;
//! * *probes by part*: the table of *buckets*, the probe side scattered by its parts, all of it or
//!   an eighth at a time: what a join can do that must not hold its probe side;
//! * *scattered*: both sides scattered as radix does, and no more;
//! * *streamed*: the limit of radix: the same rows through the same code to a single partition, and
//!   read again;
//! * *lines*: the limit of buckets' probes: a random line of the table for each probe row.

mod measure;

use measure::{Arguments, Case, Report, Run, in_turns};
use serde_json::json;
use workahead_machine::Machine;
use workahead_machine::clock::Moment;
use workahead_machine::pages::{Pages, Pool, Supply};
use workahead_walks::answers::{Answers, BLOCK};
use workahead_walks::bucket::{Load, Parts, Table, select};
use workahead_walks::hash::hash_u64;
use workahead_walks::isa::Detected;
use workahead_walks::memory::{Memory, Prefetching, ToL1};
use workahead_walks::radix::{Cut, Histogram, Join, Room, Scatter, Value, scattered};
use workahead_walks::random::Random;
use workahead_walks::walk::Sink;
use workahead_walks::{Intent, Place, Row, with_isa};

/// Keys looked up at a time.
const VECTOR: usize = 8192;

/// What came out.
#[derive(Debug, Default, Clone, Copy)]
struct Found {
    hits: usize,
    sum: u64,
}

impl Sink<u64> for Found {
    #[inline(always)]
    fn emit(&mut self, row: Row, value: u64) {
        self.hits += 1;
        self.sum = self.sum.wrapping_add(value.wrapping_mul(3) ^ u64::from(row));
    }
}

impl Found {
    fn plus(self, other: Self) -> Self {
        Self { hits: self.hits + other.hits, sum: self.sum.wrapping_add(other.sum) }
    }
}

/// Both sides, and how they are joined.
struct Inputs {
    build: Vec<u64>,
    probe: Vec<u64>,
    pages: Supply,
    room: Room,
    threads: usize,
}

/// What one thread does: some rows of a side, from the first on.
fn each_thread<T: Send>(
    threads: usize,
    keys: &[u64],
    task: impl Fn(&[u64], usize) -> T + Sync,
) -> Vec<T> {
    let share = keys.len().div_ceil(threads).max(1);
    let task = &task;
    std::thread::scope(|scope| {
        let mut shares = keys.chunks(share).enumerate();
        let (_, own) = shares.next().expect("keys");
        let others: Vec<_> =
            shares.map(|(at, keys)| scope.spawn(move || task(keys, at * share))).collect();
        let own = task(own, 0);
        let others = others.into_iter().map(|other| other.join().expect("no panic"));
        std::iter::once(own).chain(others).collect()
    })
}

impl Inputs {
    fn new(builds: usize, probes: usize, (pages, room): (&Supply, Room), threads: usize) -> Self {
        let key = |entry: u32| Random::of(u64::from(entry)).number();
        let mut random = Random::of(1);
        let build = random.permutation(builds as u32).into_iter().map(key).collect();
        let probe = (0..probes).map(|_| key(random.below(builds as u32))).collect();
        Self { build, probe, pages: pages.clone(), room, threads }
    }

    /// Parts of the table that are filled in cache.
    fn parts(&self) -> Parts {
        Parts::of(self.build.len(), Load::HALF, self.room.l2_bytes / 4).expect("not too many")
    }

    fn table<V: Value>(&self, value: impl Fn(usize) -> V + Sync) -> Table {
        let scattered = each_thread(self.threads, &self.build, |keys, first| {
            let mut counts = self.parts().counts();
            counts.add(keys);
            let mut scattered = counts.scatter(&self.pages).expect("memory");
            scattered.add(keys, |at| value(first + at).into());
            scattered
        });
        let table = self.parts().unique(&scattered, self.threads, &self.pages);
        table.expect("not crowded").expect("no key repeats")
    }

    fn buckets<V: Value>(&self, value: impl Fn(usize) -> V + Sync) -> Found {
        let table = self.table(value);
        let found = each_thread(self.threads, &self.probe, |keys, start| {
            let (mut found, mut answers) = (Found::default(), Answers::default());
            for (number, keys) in keys.chunks(VECTOR).enumerate() {
                let first = start + number * VECTOR;
                look_up(&table, keys, &mut answers, |at| (first + at) as Row, &mut found);
            }
            found
        });
        found.into_iter().fold(Found::default(), Found::plus)
    }

    fn probes_by_part<V: Value>(
        &self,
        value: impl Fn(usize) -> V + Sync,
        chunk_rows: usize,
    ) -> Found {
        let (table, parts) = (self.table(value), self.parts());
        let found = each_thread(self.threads, &self.probe, |keys, start| {
            let (mut found, mut answers) = (Found::default(), Answers::default());
            for (number, keys) in keys.chunks(chunk_rows / self.threads).enumerate() {
                let first = start + number * (chunk_rows / self.threads);
                let rows = scattered(parts, keys, |at| (first + at) as Row, &self.pages);
                let rows = rows.expect("memory");
                let vectors = rows.keys().chunks(VECTOR).zip(rows.values().chunks(VECTOR));
                for (keys, rows) in vectors {
                    look_up(&table, keys, &mut answers, |at| rows[at], &mut found);
                }
            }
            found
        });
        found.into_iter().fold(Found::default(), Found::plus)
    }

    fn radix<V: Value>(&self, value: impl Fn(usize) -> V + Sync, passes: Option<usize>) -> Found {
        let cut = passes.map_or(self.cut(), |passes| self.cut().with_passes(passes));
        let sinks = vec![Found::default(); self.threads];
        let found = Join::new(cut, &self.pages).run(&self.build, value, &self.probe, sinks);
        found.expect("memory").into_iter().fold(Found::default(), Found::plus)
    }

    fn cut(&self) -> Cut {
        let rows = self.build.len().max(self.probe.len());
        Cut::of(self.build.len(), rows, self.room).expect("not too many")
    }

    /// Both sides moved, and not joined.
    fn scattered<V: Value>(&self, value: impl Fn(usize) -> V + Sync) {
        let parts = self.cut().parts();
        let build = |keys: &[u64], first: usize| {
            scattered(parts, keys, |at| value(first + at), &self.pages).expect("memory").len()
        };
        let probe = |keys: &[u64], first: usize| {
            scattered(parts, keys, |at| (first + at) as Row, &self.pages).expect("memory").len()
        };
        each_thread(self.threads, &self.build, build);
        each_thread(self.threads, &self.probe, probe);
    }

    /// As many rows as radix moves, in their order, and read again.
    fn streamed<V: Value>(&self, value: impl Fn(usize) -> V + Sync) {
        let build = |keys: &[u64], first| stream(keys, |at| value(first + at), &self.pages);
        let probe = |keys: &[u64], first| stream(keys, |at| (first + at) as Row, &self.pages);
        each_thread(self.threads, &self.build, build);
        each_thread(self.threads, &self.probe, probe);
    }

    /// Reads as many random lines as there are probe rows, of as many as the table has.
    fn lines(&self, lines: &[[u64; 8]]) {
        /// More than any core keeps in flight.
        const AHEAD: usize = 64;
        let at =
            |row: usize| ((u128::from(hash_u64(row as u64)) * lines.len() as u128) >> 64) as usize;
        each_thread(self.threads, &self.probe, |keys, first| {
            let mut memory = Prefetching::<ToL1>::default();
            let mut sum = 0_u64;
            for row in first..first + keys.len() {
                memory.fetch(Place::of(&lines[at(row + AHEAD)]), Intent::Read);
                sum = sum.wrapping_add(lines[at(row)][0]);
            }
            std::hint::black_box(sum);
        });
    }

    fn joined<'a>(&'a self, name: &str, join: impl Fn() -> Found + 'a) -> Case<'a, ()> {
        Case::new(name, move |_: &mut ()| self.timed(|| Some(join())))
    }

    fn cases<V: Value>(&self, of: fn(usize) -> V) -> Vec<Case<'_, ()>> {
        let mut cases = vec![
            self.joined("buckets", move || self.buckets(of)),
            self.joined("radix", move || self.radix(of, None)),
        ];
        for passes in [1, 2] {
            let name = format!("radix in {passes}");
            cases.push(self.joined(&name, move || self.radix(of, Some(passes))));
        }
        for share in [1, 8] {
            let rows = self.probe.len().div_ceil(share);
            let name = format!("probes by part, 1/{share}");
            cases.push(self.joined(&name, move || self.probes_by_part(of, rows)));
        }
        cases.push(Case::new("scattered", move |_: &mut ()| {
            self.timed(|| {
                self.scattered(of);
                None
            })
        }));
        cases.push(Case::new("streamed", move |_: &mut ()| {
            self.timed(|| {
                self.streamed(of);
                None
            })
        }));
        cases.push(Case::new("lines", move |_: &mut ()| {
            let bytes = Table::bytes_for(self.build.len(), Load::HALF).expect("not too many");
            let mut lines = self.pages.any::<[u64; 8]>(bytes / 64).expect("memory");
            // Touched, if it is new.
            lines.fill([1; 8]);
            self.timed(|| {
                self.lines(&lines);
                None
            })
        }));
        cases
    }

    /// CPU time of one thread; of several, wall time.
    fn timed(&self, join: impl FnOnce() -> Option<Found>) -> Run {
        let start = Moment::now();
        let answer = join().map(|found| (found.hits, found.sum));
        let elapsed = start.elapsed();
        Run { seconds: if self.threads == 1 { elapsed.cpu_s } else { elapsed.wall_s }, answer }
    }
}

#[inline(always)]
fn look_up(
    table: &Table,
    keys: &[u64],
    answers: &mut Answers,
    row: impl Fn(usize) -> Row,
    found: &mut Found,
) {
    let memory = &mut Prefetching::<ToL1>::default();
    with_isa!(Detected::best(), isa => select::look_up(table, isa, keys, memory, answers));
    for (block, mut bits) in answers.found().iter().copied().enumerate() {
        while bits != 0 {
            let at = block * BLOCK + bits.trailing_zeros() as usize;
            found.emit(row(at), answers.values()[at]);
            bits &= bits - 1;
        }
    }
}

fn stream<V: Value>(keys: &[u64], value: impl Fn(usize) -> V, pages: &Supply) {
    let mut histogram = Histogram::of(1);
    histogram.add(keys, |_| 0);
    let mut scatter = Scatter::of(histogram, pages).expect("memory");
    scatter.add(keys, |_| 0, value);
    let scattered = scatter.finish();
    let keys = scattered.keys().iter().fold(0_u64, |sum, key| sum.wrapping_add(*key));
    let values = scattered.values().iter().map(|value| (*value).into());
    std::hint::black_box(values.fold(keys, u64::wrapping_add));
}

fn main() {
    let arguments = Arguments::read();
    let machine = Machine::here();
    let l2_bytes = machine.cache_bytes(2).map_or(1 << 20, |bytes| bytes as usize);
    let page_bytes = 2 << 20;
    let tlb = machine.tlb.reach_bytes(page_bytes).map(|reach| (reach / page_bytes) as usize);
    let room = Room {
        l2_bytes: arguments.number("--l2").unwrap_or(l2_bytes),
        tlb_entries: tlb,
        page_bytes: page_bytes as usize,
    };
    let sizes = match (arguments.small, arguments.number("--builds"), arguments.number("--probes"))
    {
        (true, ..) => vec![(20_000, 50_000)],
        (false, Some(builds), Some(probes)) => vec![(builds, probes)],
        _ => vec![(2 << 20, 16 << 20), (16 << 20, 64 << 20), (64 << 20, 64 << 20)],
    };
    let mut report = Report::new(&arguments, "Joins by partitions, and by one table");
    for (builds, probes) in sizes {
        for threads in arguments.number("--threads").map_or(vec![1, 2], |threads| vec![threads]) {
            // More than any case takes: the first touch of fresh memory is nobody's speed.
            let pages = Supply::from(Pages::Huge).with_pool(Pool::keeping(6 << 30));
            let inputs = Inputs::new(builds, probes, (&pages, room), threads);
            let partitions = inputs.cut().partitions();
            let rounds = arguments.rounds(3);
            for value_bytes in
                arguments.number("--value-bytes").map_or(vec![4, 8], |bytes| vec![bytes])
            {
                let cases = match value_bytes {
                    4 => inputs.cases(|row| row as u32),
                    _ => inputs.cases(|row| row as u64),
                };
                let times = in_turns(&arguments, rounds, &cases, &mut ());
                for timed in &times {
                    report.row(&[
                        ("case", json!(timed.name)),
                        ("builds", json!(builds)),
                        ("probes", json!(probes)),
                        ("threads", json!(threads)),
                        ("value_bytes", json!(value_bytes)),
                        ("partitions", json!(partitions)),
                        ("ms", json!(timed.seconds() * 1e3)),
                        ("mprobes_per_s", json!(probes as f64 / timed.seconds() / 1e6)),
                        ("of_buckets", json!(timed.times_as_fast_as(&times[0]))),
                    ]);
                }
            }
        }
    }
    report.finish(&[
        "CPU time of one thread, wall time of two; build and probe, median of interleaved rounds. \
         Streamed and lines are limits, of radix and of the probes of buckets.",
    ]);
}
