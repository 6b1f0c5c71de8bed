//! Probes of the one-line bucket table against the machine's limit on random lines, measured in the
//! same rounds on a field of the same size and pages, by as many threads.
//!
//! Every probe hits, and key, probe value and build value of each are written out in batches. With
//! `--bytes N` it measures a table of that size alone; sizes that memory has no room for are left
//! out.

mod measure;

use std::time::Duration;

use measure::{Arguments, Case, Report, Run, Timing, in_turns};
use serde_json::json;
use workahead_machine::Machine;
use workahead_machine::cpus::CpuSet;
use workahead_machine::limits::field::Field;
use workahead_machine::limits::lines::{Method, on_field};
use workahead_machine::pages::{PageBuffer, Pages};
use workahead_walks::bucket::select::{SelectionVector, look_up};
use workahead_walks::bucket::{Compare, First, Load, Output, Probe, Table};
use workahead_walks::hash::hash_u64;
use workahead_walks::isa::Detected;
use workahead_walks::memory::{Memory, Prefetching, ToL1};
use workahead_walks::random::Random;
use workahead_walks::technique::{Driver, Technique};
use workahead_walks::threads::{Shares, Split, together};
use workahead_walks::{Intent, Pause, Place, Row, with_isa};

/// Joined rows a batch: three columns that stay in L1.
const BATCH_ROWS: usize = 1024;

/// The probe side: rows `0..probes`.
struct Probes {
    keys: PageBuffer<u64>,
    values: PageBuffer<u64>,
    /// The expected answer.
    answer: (usize, u64),
}

/// The key of entry `i`: a number of a generator that repeats none.
fn key(entry: usize) -> u64 {
    Random::of(entry as u64).number()
}

/// The value of entry `i`.
fn value(entry: usize) -> u64 {
    entry as u64 * 2 + 1
}

/// A joined row as a number, so that their sum tells whether all are right.
fn joined(key: u64, probe_value: u64, build_value: u64) -> u64 {
    key.wrapping_add(probe_value.wrapping_mul(3)).wrapping_add(build_value.wrapping_mul(5))
}

impl Probes {
    fn new(probes: usize, entries: usize) -> Self {
        let mut random = Random::of(7);
        let column = || PageBuffer::<u64>::zeroed(probes, Pages::Huge).expect("memory for probes");
        let (mut keys, mut values) = (column(), column());
        let mut sum = 0_u64;
        for (row, (at_key, at_value)) in keys.iter_mut().zip(values.iter_mut()).enumerate() {
            let entry = random.below(entries as u32) as usize;
            (*at_key, *at_value) = (key(entry), row as u64);
            sum = sum.wrapping_add(joined(key(entry), row as u64, value(entry)));
        }
        Self { keys, values, answer: (probes, sum) }
    }
}

/// A table of `bytes`, half full, and a field of the same size on the same pages.
struct Footprint {
    pages: Pages,
    table: Table,
    field: Field,
}

impl Footprint {
    fn entries(bytes: usize) -> usize {
        // A line holds four, half of them empty.
        bytes / 64 * 4 / 2
    }

    fn new(bytes: usize, pages: Pages, cpus: &[usize], allowed: &CpuSet) -> Self {
        const CHUNK: usize = 1 << 20;
        let entries = Self::entries(bytes);
        let mut table = Table::for_entries(entries, Load::HALF, pages).expect("memory for a table");
        for first in (0..entries).step_by(CHUNK) {
            let chunk = first..(first + CHUNK).min(entries);
            let keys: Vec<u64> = chunk.clone().map(key).collect();
            let values: Vec<u64> = chunk.map(value).collect();
            table = table.extended(&keys, &values).expect("keys do not crowd");
        }
        assert!(!table.repeats(), "no key is there twice");
        let mut field = Field::new(bytes, pages).expect("memory for a field");
        field.touch(bytes, cpus, allowed).expect("allowed CPUs");
        Self { pages, table, field }
    }
}

/// Probes with some rows: hits and their sum.
fn probe(
    isa: impl Compare,
    table: &Table,
    probes: &Probes,
    technique: Technique,
    shares: impl Iterator<Item = workahead_walks::Rows>,
) -> (usize, u64) {
    let mut walk = Probe::<_, First>::new(table, isa, &probes.keys);
    let mut out = Output::<BATCH_ROWS>::new(&probes.keys, &probes.values, technique.width());
    let mut driver = Driver::of(technique).expect("a technique of one thread");
    let (mut hits, mut sum) = (0, 0_u64);
    let mut take = |out: &mut Output<'_, BATCH_ROWS>| {
        let [keys, probe_values, build_values] = out.columns();
        for ((key, probe_value), build_value) in keys.iter().zip(probe_values).zip(build_values) {
            sum = sum.wrapping_add(joined(*key, *probe_value, *build_value));
        }
        hits += out.len();
        out.clear();
    };
    for mut rows in shares {
        while driver.drive(isa, &mut walk, &mut rows, &mut out) == Pause::Full {
            take(&mut out);
        }
    }
    take(&mut out);
    (hits, sum)
}

/// Probes by a technique on each of `cpus`; the time is the slowest thread's.
fn probing<'a>(
    footprint: &'a Footprint,
    probes: &'a Probes,
    text: &'static str,
    (cpus, allowed): (&'a [usize], &'a CpuSet),
) -> Case<'a, ()> {
    let technique: Technique = text.parse().expect("a technique");
    Case::new(named(footprint, cpus, text), move |_: &mut ()| {
        let shares = Shares::new(Split::Morsels { rows: 1 << 16 }, probes.keys.len() as Row, 2);
        let ran = together(cpus, allowed, |thread| {
            let shares = shares.of(thread as u32);
            let table = &footprint.table;
            with_isa!(Detected::best(), isa => probe(isa, table, probes, technique, shares))
        })
        .expect("allowed CPUs");
        let answer = ran.iter().fold((0, 0_u64), |(hits, sum), ran| {
            (hits + ran.result.0, sum.wrapping_add(ran.result.1))
        });
        assert_eq!(answer, probes.answer, "{text} is wrong");
        let seconds = ran.iter().map(|ran| ran.elapsed.cpu_s).fold(0.0, f64::max);
        Run { seconds, answer: Some(answer) }
    })
}

/// Probes by vectorised lookups on each of `cpus`: their values, and copies of both inputs, in
/// batches as the others write them.
fn selecting<'a>(
    footprint: &'a Footprint,
    probes: &'a Probes,
    (cpus, allowed): (&'a [usize], &'a CpuSet),
) -> Case<'a, ()> {
    Case::new(named(footprint, cpus, "vectorised lookups"), move |_: &mut ()| {
        let shares = Shares::new(Split::Morsels { rows: 1 << 16 }, probes.keys.len() as Row, 2);
        let ran = together(cpus, allowed, |thread| {
            let shares = shares.of(thread as u32);
            with_isa!(Detected::best(), isa => select(isa, &footprint.table, probes, shares))
        })
        .expect("allowed CPUs");
        let answer = ran.iter().fold((0, 0_u64), |(hits, sum), ran| {
            (hits + ran.result.0, sum.wrapping_add(ran.result.1))
        });
        assert_eq!(answer, probes.answer, "vectorised lookups are wrong");
        let seconds = ran.iter().map(|ran| ran.elapsed.cpu_s).fold(0.0, f64::max);
        Run { seconds, answer: Some(answer) }
    })
}

#[inline(always)]
fn select(
    isa: impl Compare,
    table: &Table,
    probes: &Probes,
    shares: impl Iterator<Item = workahead_walks::Rows>,
) -> (usize, u64) {
    const ROWS: usize = 8192;
    let mut memory = Prefetching::<ToL1>::default();
    let mut answers = SelectionVector::default();
    let mut out = [[0; BATCH_ROWS]; 3];
    let (mut hits, mut sum) = (0, 0_u64);
    for mut share in shares {
        while let Some(first) = share.next() {
            let rows = first as usize..first as usize + ROWS.min(share.left() + 1);
            share.skip_rows(rows.len() as Row - 1);
            look_up(table, isa, &probes.keys[rows.clone()], &mut memory, &mut answers);
            assert_eq!(answers.hits(), rows.len(), "every probe hits");
            let columns = [&probes.keys[rows.clone()], &probes.values[rows], answers.values()];
            for at in (0..columns[0].len()).step_by(BATCH_ROWS) {
                let batch = columns.map(|column| &column[at..(at + BATCH_ROWS).min(column.len())]);
                for (out, column) in out.iter_mut().zip(batch) {
                    out[..column.len()].copy_from_slice(column);
                }
                let [keys, probe_values, build_values] = &out;
                let values = probe_values.iter().zip(build_values);
                for (key, (probe, build)) in keys.iter().zip(values).take(batch[0].len()) {
                    sum = sum.wrapping_add(joined(*key, *probe, *build));
                }
                hits += batch[0].len();
            }
        }
    }
    (hits, sum)
}

/// The time that this number of random lines takes at the limit, by the best of the methods.
fn limit<'a>(
    footprint: &'a Footprint,
    probes: &Probes,
    cpus: &'a [usize],
    time: Duration,
) -> Case<'a, ()> {
    let (lines, bytes) = (probes.keys.len() as f64, footprint.table.bytes());
    Case::new(named(footprint, cpus, LIMIT), move |_: &mut ()| {
        let best = Method::ALL.map(|method| {
            let rate = on_field(&footprint.field, bytes, cpus, method, time);
            rate.expect("allowed CPUs").per_cpu_s
        });
        Run { seconds: lines / best.into_iter().fold(f64::MIN_POSITIVE, f64::max), answer: None }
    })
}

/// The same loads as a probe with nothing to decide: keys hashed and announced ahead, each key's
/// line compared, one of its values and both inputs written out; no row ever looks at a second
/// line, and no branch depends on what was read. What is left between this and the limit is the
/// price of the three streams and of hashing, which no schedule can take away.
#[inline(always)]
fn bound(isa: impl Compare, table: &Table, probes: &Probes, rows: std::ops::Range<usize>) -> u64 {
    const AHEAD: usize = 32;
    let homes = table.buckets().len() as u64;
    let lines: &[[[u64; 4]; 2]] = bytemuck::cast_slice(table.buckets());
    let home = |key: u64| ((u128::from(hash_u64(key)) * u128::from(homes)) >> 64) as usize;
    let mut memory = Prefetching::<ToL1>::default();
    let mut batch = vec![[0_u64; 3]; BATCH_ROWS];
    let mut sum = 0_u64;
    for (ahead, row) in (rows.start + AHEAD..rows.end).zip(rows) {
        memory.fetch(Place::of(&lines[home(probes.keys[ahead])]), Intent::Read);
        let key = probes.keys[row];
        let [keys, values] = &lines[home(key)];
        let slot = isa.equal(keys, key).trailing_zeros() as usize % values.len();
        batch[row % BATCH_ROWS] = [key, probes.values[row], values[slot]];
        if row % BATCH_ROWS == BATCH_ROWS - 1 {
            sum = batch.iter().fold(sum, |sum, [key, probe, build]| {
                sum.wrapping_add(joined(*key, *probe, *build))
            });
        }
    }
    sum
}

/// Times [`bound`] on each of `cpus`, a part of the rows each.
fn bounding<'a>(
    footprint: &'a Footprint,
    probes: &'a Probes,
    (cpus, allowed): (&'a [usize], &'a CpuSet),
) -> Case<'a, ()> {
    Case::new(named(footprint, cpus, BOUND), move |_: &mut ()| {
        let part = probes.keys.len() / cpus.len();
        let ran = together(cpus, allowed, |thread| {
            let (table, rows) = (&footprint.table, thread * part..(thread + 1) * part);
            let sum = with_isa!(Detected::best(), isa => bound(isa, table, probes, rows));
            std::hint::black_box(sum)
        })
        .expect("allowed CPUs");
        let seconds = ran.iter().map(|ran| ran.elapsed.cpu_s).fold(0.0, f64::max);
        Run { seconds, answer: None }
    })
}

const BOUND: &str = "the same loads, nothing decided (bound)";
const LIMIT: &str = "random lines (limit)";

fn named(footprint: &Footprint, cpus: &[usize], what: &str) -> String {
    format!("{:?} pages, {} threads: {what}", footprint.pages, cpus.len())
}

/// The compared techniques. Few rows need a second line, but a schedule that waits for it at once
/// (distance) loses to one that does not (AMAC).
const TECHNIQUES: [&str; 9] = [
    "sequential",
    "amac:width=32",
    "amac:width=64",
    "amac:width=128",
    "amac:width=64,hint=l2",
    "rounds:width=128,hint=l1",
    "rounds:width=512,hint=none",
    "distance:rows=32",
    "distance:rows=64,hint=l2",
];

/// Rows for the cases of one footprint: each with its fraction of the limit it ran beside.
fn report(report: &mut Report<'_>, times: &[Timing], bytes: usize, probes: usize) {
    for timed in times {
        let group = timed.name.split_once(": ").map_or("", |(group, _)| group);
        let limit = times.iter().find(|limit| limit.name == format!("{group}: {LIMIT}"));
        report.row(&[
            ("case", json!(timed.name)),
            ("table_mib", json!(bytes >> 20)),
            ("mprobes_per_s", json!(probes as f64 / timed.seconds() / 1e6)),
            ("of_limit", json!(limit.map(|limit| timed.times_as_fast_as(limit)))),
        ]);
    }
}

fn main() {
    let arguments = Arguments::read();
    let machine = Machine::here();
    let allowed = machine.allowed_cpus();
    let cpus = (machine.cpus_for(2)).or_else(|_| machine.cpus_for(1)).expect("a CPU");
    let mut found = Report::new(&arguments, "Probes of the one-line bucket table, all hits");
    let (mut sizes, probes, time) = match (arguments.small, arguments.number("--bytes")) {
        (true, _) => (vec![1 << 20], 10_000, Duration::from_millis(1)),
        (false, Some(bytes)) => (vec![bytes], 8_000_000, Duration::from_millis(200)),
        (false, None) => (vec![64 << 20, 512 << 20, 4 << 30], 4_000_000, Duration::from_millis(60)),
    };
    let room = machine.memory.allowed_bytes.unwrap_or(u64::MAX) as usize;
    // A table, a field of its size, and as much again for all else.
    sizes.retain(|bytes| bytes * 3 <= room);
    for bytes in sizes {
        let probes = Probes::new(probes, Footprint::entries(bytes));
        let pages = if bytes > BOTH_PAGES_MAX { &PAGES[..1] } else { &PAGES };
        let footprints: Vec<_> =
            pages.iter().map(|pages| Footprint::new(bytes, *pages, &cpus, allowed)).collect();
        let mut cases = Vec::new();
        for footprint in &footprints {
            for cpus in (1..=cpus.len()).map(|threads| &cpus[..threads]) {
                cases.push(limit(footprint, &probes, cpus, time));
                cases.push(bounding(footprint, &probes, (cpus, allowed)));
                cases.push(selecting(footprint, &probes, (cpus, allowed)));
                let one = |text: &&'static str| probing(footprint, &probes, text, (cpus, allowed));
                cases.extend(TECHNIQUES.iter().map(one));
            }
        }
        let times = in_turns(&arguments, arguments.rounds(5), &cases, &mut ());
        report(&mut found, &times, bytes, probes.keys.len());
    }
    found.finish(&[
        "The limit is the best of plain loads and of prefetches to L1 and L2, on as many bytes, \
         pages and threads, in the same rounds. CPU time of the slowest thread.",
    ]);
}

const PAGES: [Pages; 2] = [Pages::Huge, Pages::Small];

/// Larger tables lie on huge pages only: the others are compared at 512 MiB.
const BOTH_PAGES_MAX: usize = 1 << 30;
