//! Counts of transactions, per client, then merged.

use std::time::Instant;

use hdrhistogram::Histogram;
use workahead_workloads::client::AttemptResult;

/// Three significant digits: a latency of a millisecond is kept to the microsecond.
const DIGITS: u8 = 3;

/// The result of a load.
#[derive(Debug, Clone)]
pub struct LoadResult {
    /// From the beginning of the measured part to the end of its last transaction.
    pub wall_s: f64,
    /// Of it, the time in which every client was at work: from the last one's start to the first
    /// one's end.
    pub all_at_work_s: f64,
    /// Every kind of the workload, in its order.
    pub kinds: Vec<Kind>,
    /// CPU time of the client threads in the measured part.
    pub client_cpu_s: f64,
    /// Intended starts that no client got to before the end.
    pub unserved: u64,
    /// How it ended.
    pub end: End,
}

/// How a load ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// As planned.
    Done,
    /// By a request to stop.
    Stopped,
    /// The server went away.
    Gone {
        /// The client that noticed first.
        client: u32,
        /// The error it got.
        says: String,
    },
}

/// Transactions of one kind.
#[derive(Debug, Clone)]
pub struct Kind {
    /// Its name in the workload.
    pub name: String,
    /// Transactions done, those rolled back on purpose too.
    pub done: u64,
    /// Transactions rolled back because their input demands it.
    pub rolled_back: u64,
    /// Attempts that were aborted in favour of other transactions.
    pub retries: u64,
    /// Rows read and changed.
    pub rows: u64,
    /// Statements sent.
    pub statements: u64,
    /// Sum of the transactions' checksums, which wraps.
    pub checksum: u64,
    /// Nanoseconds from the start, the intended one where there is a rate, to the answer.
    pub latency_ns: Histogram<u64>,
}

impl Kind {
    fn new(name: &str) -> Kind {
        let latency_ns = Histogram::new(DIGITS).expect("three digits are among those it can keep");
        let (done, rolled_back, retries) = (0, 0, 0);
        let (rows, statements, checksum) = (0, 0, 0);
        let name = name.to_owned();
        Kind { name, done, rolled_back, retries, rows, statements, checksum, latency_ns }
    }

    fn merge(&mut self, other: &Kind) {
        self.done += other.done;
        self.rolled_back += other.rolled_back;
        self.retries += other.retries;
        self.rows += other.rows;
        self.statements += other.statements;
        self.checksum = self.checksum.wrapping_add(other.checksum);
        let added = self.latency_ns.add(&other.latency_ns);
        debug_assert!(added.is_ok(), "it grows as needed");
    }
}

/// One client's part.
pub(super) struct Tally {
    kinds: Vec<Kind>,
    /// The measured part, as this client saw it.
    pub(super) span: Option<(Instant, Instant)>,
    /// When it began its own work in it.
    pub(super) began: Option<Instant>,
    pub(super) cpu_s: f64,
    pub(super) unserved: u64,
}

impl Tally {
    pub(super) fn new(kinds: &[String]) -> Tally {
        let kinds = kinds.iter().map(|name| Kind::new(name)).collect();
        Tally { kinds, span: None, began: None, cpu_s: 0.0, unserved: 0 }
    }

    pub(super) fn retry(&mut self, kind: usize) {
        if let Some(kind) = self.kinds.get_mut(kind) {
            kind.retries += 1;
        }
    }

    pub(super) fn done(&mut self, kind: usize, done: AttemptResult, latency_ns: u64) {
        let Some(kind) = self.kinds.get_mut(kind) else { return };
        kind.done += 1;
        kind.rolled_back += u64::from(done.rolled_back);
        kind.rows += done.rows;
        kind.statements += u64::from(done.statements);
        kind.checksum = kind.checksum.wrapping_add(done.checksum);
        // It grows with its values; `saturating_record` would cut them at what it has room for.
        let recorded = kind.latency_ns.record(latency_ns);
        debug_assert!(recorded.is_ok(), "64 bits have room for {latency_ns}");
    }
}

impl LoadResult {
    pub(super) fn merge(kinds: &[String], tallies: Vec<Tally>, end: End) -> LoadResult {
        let mut all = Tally::new(kinds);
        let last_start = tallies.iter().filter_map(|tally| tally.began).max();
        let first_end = tallies.iter().filter_map(|tally| Some(tally.span?.1)).min();
        for tally in tallies {
            for (sum, part) in all.kinds.iter_mut().zip(&tally.kinds) {
                sum.merge(part);
            }
            all.cpu_s += tally.cpu_s;
            all.unserved += tally.unserved;
            all.span = match (all.span, tally.span) {
                (Some((from, to)), Some((begun, ended))) => Some((from.min(begun), to.max(ended))),
                (one, other) => one.or(other),
            };
        }
        let wall_s = all.span.map_or(0.0, |(from, to)| (to - from).as_secs_f64());
        let all_at_work = first_end.zip(last_start).map(|(end, start)| end - start);
        let all_at_work_s = all_at_work.map_or(0.0, |time| time.as_secs_f64());
        let Tally { kinds, cpu_s: client_cpu_s, unserved, .. } = all;
        LoadResult { wall_s, all_at_work_s, kinds, client_cpu_s, unserved, end }
    }

    /// Adds a later load of the same clients; no time passes between the two.
    #[must_use]
    pub fn then(mut self, after: &LoadResult) -> LoadResult {
        for (sum, part) in self.kinds.iter_mut().zip(&after.kinds) {
            sum.merge(part);
        }
        LoadResult {
            wall_s: self.wall_s + after.wall_s,
            all_at_work_s: self.all_at_work_s + after.all_at_work_s,
            kinds: self.kinds,
            client_cpu_s: self.client_cpu_s + after.client_cpu_s,
            unserved: self.unserved + after.unserved,
            end: after.end.clone(),
        }
    }

    /// Transactions of all kinds.
    #[must_use]
    pub fn done(&self) -> u64 {
        self.kinds.iter().map(|kind| kind.done).sum()
    }

    /// Attempts given up, of all kinds.
    #[must_use]
    pub fn retries(&self) -> u64 {
        self.kinds.iter().map(|kind| kind.retries).sum()
    }

    /// Transactions a second; none when nothing was measured.
    #[must_use]
    pub fn per_s(&self) -> Option<f64> {
        (self.wall_s > 0.0).then(|| self.done() as f64 / self.wall_s)
    }

    /// Latencies of all kinds together.
    #[must_use]
    pub fn latency_ns(&self) -> Histogram<u64> {
        let mut all = Kind::new("");
        for kind in &self.kinds {
            all.merge(kind);
        }
        all.latency_ns
    }
}
